//! The model against the original one in f32 (tests/data/reference.py), and what vectors are for.

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::*;

struct Reference {
    text: String,
    ids: Vec<u32>,
    vector: Option<[f32; DIMENSIONS]>,
}

fn reference() -> Vec<Reference> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../tests/data/reference.json")).expect("JSON");
    let read = |case: &Value| Reference {
        text: case["text"].as_str().expect("a text").to_owned(),
        ids: case["ids"].as_array().expect("ids").iter().map(|id| id.as_u64().expect("an id") as u32).collect(),
        vector: case["vector"].as_array().map(|vector| {
            let values: Vec<f32> = vector.iter().map(|value| value.as_f64().expect("a number") as f32).collect();
            values.try_into().expect("384 values")
        }),
    };
    cases.iter().map(read).collect()
}

#[test]
fn tokens_are_the_reference_s() {
    for case in reference() {
        // The reference gives an empty text the two tokens that stand around it.
        let expected = if case.ids == [BEGIN, END] { Vec::new() } else { case.ids };
        assert_eq!(all_tokens(&case.text), expected, "{:?}", case.text);
    }
}

#[test]
fn names_of_special_tokens_in_a_text_are_words() {
    for special in ["[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]"] {
        let tokens = tokens(special);
        assert!(tokens.len() >= 5, "{special}: {tokens:?}");
        assert!(tokens[1..tokens.len() - 1].iter().all(|id| *id >= 999), "{special}: {tokens:?}");
    }
}

#[test]
fn vectors_are_close_to_the_reference_s() {
    let is_known = |case: &Reference| !tokens(&case.text).is_empty();
    let cases: Vec<Reference> =
        reference().into_iter().filter(|case| case.vector.is_some() && is_known(case)).collect();
    assert!(cases.len() >= 12);
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    let vectors = Embedder::new().embed_all(&texts, 2);
    let mut mean = 0.0;
    for (case, vector) in cases.iter().zip(&vectors) {
        let cosine = vector.cosine(&Vector::new(&case.vector.expect("filtered above")));
        mean += cosine / cases.len() as f32;
        // A single word and languages that it was not taught suffer most from eight bits.
        let least = if case.text.is_ascii() && case.text.len() > 10 { 0.98 } else { 0.95 };
        assert!(cosine >= least, "{cosine} {}", case.text);
    }
    assert!(mean >= 0.985, "{mean}");
}

#[test]
fn a_text_has_the_same_vector_alone_and_among_others() {
    let texts: Vec<String> =
        reference().into_iter().filter(|case| case.vector.is_some()).map(|case| case.text).take(6).collect();
    let (alone, among) = (Embedder::new(), Embedder::new());
    let vectors = among.embed_all(&texts, 3);
    for (text, vector) in texts.iter().zip(&vectors) {
        assert_eq!(&alone.embed(text), vector, "{text}");
        assert_eq!(&among.embed(text), vector, "{text}");
    }
    assert_eq!(alone.embed_all(&texts[..2], 1), vectors[..2]);
    assert_eq!(alone.embed_all::<&str>(&[], 1), []);
}

#[test]
fn nothing_is_loaded_before_it_is_needed() {
    let embedder = Embedder::new();
    for nothing in ["", " \n\t ", "\u{0}\u{1b}\u{200b}\u{fffd}", "\u{301}"] {
        assert_eq!(embedder.embed(nothing), Vector::NOTHING, "{nothing:?}");
    }
    assert_eq!(format!("{embedder:?}"), "Embedder { plain: false, packed: false }");
    embedder.embed("one");
    assert_eq!(format!("{embedder:?}"), "Embedder { plain: true, packed: false }");
    embedder.embed_all(&["one", "two", "three", "four"], 1);
    assert_eq!(format!("{embedder:?}"), "Embedder { plain: true, packed: true }");
}

#[test]
fn paraphrases_are_closer_than_other_texts() {
    let embedder = Embedder::new();
    let check = |text: &str, paraphrase: &str, other: &str| {
        let vectors = embedder.embed_all(&[text, paraphrase, other, ""], 1);
        let (near, far) = (vectors[0].cosine(&vectors[1]), vectors[0].cosine(&vectors[2]));
        assert!(near > far + 0.1, "{text}: {near} {far}");
    };
    check(
        "The login page redirects in a loop after the session cookie expires.",
        "Users are sent back to sign-in again and again once their cookie is too old.",
        "Orders can be exported as CSV, one row per line item.",
    );
    check("Why is the build so slow?", "Compiling takes ages.", "The invoice has the wrong address.");
    check(
        "two writers corrupt the file at the same time",
        "a race condition between concurrent processes damages data",
        "choose a nicer colour for the buttons",
    );
    check("make the tests stop failing at random", "flaky test suite", "deploy to the production cluster");
    // An English model: in other languages it goes by what words look like, which is still more than nothing.
    check(
        "Die Datenbank antwortet sehr langsam.",
        "Die Abfragen der Datenbank dauern zu lange.",
        "Der Knopf soll eine andere Farbe haben.",
    );
    check(
        "La base de datos responde muy despacio.",
        "Las consultas a la base de datos tardan demasiado.",
        "El botón debería tener otro color.",
    );
}

#[test]
fn what_the_model_does_not_know_is_like_nothing() {
    let embedder = Embedder::new();
    for text in ["数据库查询很慢", "按钮应该换一种颜色", "🚀🚀 👍 🎉", &"QUJD".repeat(100)] {
        assert_eq!(embedder.embed(text), Vector::NOTHING, "{text}");
    }
    for text in ["数据库 queries are slow", "done 🚀", "ログインできない"] {
        assert_ne!(embedder.embed(text), Vector::NOTHING, "{text}");
    }
}

#[test]
fn a_long_text_counts_by_its_beginning() {
    let embedder = Embedder::new();
    let beginning = "Forks of a session share its history. ".repeat(40);
    let long = format!("{beginning}{}", "Something else entirely follows here. ".repeat(30_000));
    assert!(long.len() > 1 << 20);
    assert_eq!(tokens(&long).len(), MOST_TOKENS);
    assert_eq!(embedder.embed(&long), embedder.embed(&beginning));
    for long in ["x".repeat(1 << 20), "\u{301}".repeat(1 << 19), "\u{1b}[0m".repeat(1 << 18), " ".repeat(1 << 20)] {
        assert!(tokens(&long).len() <= MOST_TOKENS);
    }
}

#[test]
fn controls_inside_of_a_text_do_not_change_it() {
    let embedder = Embedder::new();
    assert_eq!(embedder.embed("fork\u{0} the\u{200b} ses\u{ad}sion\u{7}"), embedder.embed("fork the session"));
}

#[test]
fn the_constant_names_the_files() {
    let mut hasher = Xxh3::new();
    hasher.update(&WEIGHTS.0);
    hasher.update(include_bytes!("../../model/vocab.txt"));
    assert_eq!(MODEL, hasher.digest(), "{:#x}", hasher.digest());
}
