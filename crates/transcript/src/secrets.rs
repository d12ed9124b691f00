//! Finding keys, tokens and passwords by the shapes that are known for them, so that they are not passed on.
//!
//! What is found is replaced by a mark. A shape that nobody knows is not found: this protects from accidents, not from
//! an adversary.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::BlockKind;

/// What stands in the place of a secret. Not longer than any secret, so that text never grows.
pub const MARK: &str = "[secret]";

/// Shapes, each with the texts of which one stands in everything that it finds.
const SHAPE: [(&[&str], &str); 28] = [
    // Private keys, whole or cut off; in JSON their line breaks are escaped.
    (
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr])+[A-Za-z0-9+/]{1,15}={1,2})?)",
    ),
    // Anthropic, OpenAI, OpenRouter, Stripe.
    (&["sk-"], r"\bsk-[A-Za-z0-9][A-Za-z0-9_-]{18,}"),
    (&["k_live_", "k_test_"], r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    // Amazon, Google, Azure.
    (&["AKIA", "ASIA", "AROA", "ABIA", "ACCA"], r"\b(?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    (&["AIza"], r"\bAIza[A-Za-z0-9_-]{35}"),
    (&["ya29."], r"\bya29\.[A-Za-z0-9_-]{20,}"),
    (&["GOCSPX-"], r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    (&["AccountKey="], r"\bAccountKey=[A-Za-z0-9+/=]{40,}"),
    // Forges and registries.
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    (&["github_pat_"], r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    (
        &["glpat-", "glptt-", "glrt-", "gldt-", "glcbt-", "glsoat-"],
        r"\bgl(?:pat|ptt|rt|dt|cbt|soat)-[A-Za-z0-9_-]{20,}",
    ),
    (&["npm_"], r"\bnpm_[A-Za-z0-9]{30,}"),
    (&["pypi-"], r"\bpypi-[A-Za-z0-9_-]{40,}"),
    (&["dckr_pat_"], r"\bdckr_pat_[A-Za-z0-9_-]{20,}"),
    (&["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    // Chat, mail, models, payments.
    (&["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"], r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    (&["xapp-"], r"\bxapp-[A-Za-z0-9-]{20,}"),
    (&["hooks.slack.com/services/"], r"hooks\.slack\.com/services/[A-Za-z0-9/_+-]{20,}"),
    (&["SG."], r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (&["hf_"], r"\bhf_[A-Za-z0-9]{30,}"),
    (&["key-"], r"\bkey-[0-9a-f]{32}\b"),
    (&["SK"], r"\bSK[0-9a-f]{32}\b"),
    (&["dop_v1_"], r"\bdop_v1_[0-9a-f]{60,}"),
    (&["shpat_", "shpca_", "shppa_", "shpss_"], r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    (&[":AA"], r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    (&["AGE-SECRET-KEY-1"], r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    (&["hvs."], r"\bhvs\.[A-Za-z0-9_-]{20,}"),
    // JSON Web Tokens.
    (&["eyJ"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
];

static SHAPES: LazyLock<Regex> = LazyLock::new(|| Regex::new(&any_shape()).expect("the shapes are legal"));

fn any_shape() -> String {
    // Word boundaries of ASCII: those of Unicode make the search many times slower wherever there is a letter beyond it.
    SHAPE.map(|(_, shape)| shape).join("|").replace(r"\b", r"(?-u:\b)")
}

/// Values that are secret by what they are called; group 1 stays, group 2 goes.
const NAME: [(&[&str], &str); 6] = [
    (
        &["authorization"],
        r#"((?i-u:authorization|proxy-authorization)["']?\s*[:=]\s*["']?(?i-u:bearer|basic|token)\s+)([A-Za-z0-9+/_.~=-]{12,})"#,
    ),
    (
        &[
            "apikey",
            "api_key",
            "api-key",
            "secret",
            "accesstoken",
            "access_token",
            "access-token",
            "authtoken",
            "auth_token",
            "auth-token",
            "passw",
        ],
        r#"((?:[A-Za-z0-9]+[_-])*(?i-u:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?token|auth[_-]?token|password|passwd|client[_-]?secret)\\?["']?\s*[:=]\s*\\?["']?)([^\s"'\\,;)}]{8,})"#,
    ),
    // A token that says nothing more of itself is a word of programs as well, so its value has to be longer.
    (&["token"], r#"((?:[A-Za-z0-9]+[_-])*(?i-u:token)\\?["']?\s*[:=]\s*\\?["']?)([A-Za-z0-9+/_.~-]{16,}=*)"#),
    // On a command line.
    (
        &["--passw", "--token", "--secret", "--api-key", "--access-token", "--auth-token"],
        r#"(--(?:passw(?:or)?d|token|secret|api-key|access-token|auth-token)[ =]["']?)([^\s"'\\,;)}]{8,})"#,
    ),
    (&["-u "], r#"(-u ["']?[A-Za-z0-9_.@+-]+:)([^\s"'\\:/]{6,})"#),
    (&["://"], r"([a-z][a-z0-9+.-]*://[^\s/:@]*:)([^\s/@]{4,})@"),
];

static NAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(&any_name()).expect("the shapes are legal"));

fn any_name() -> String {
    NAME.map(|(_, shape)| format!("(?:{shape})")).join("|")
}

/// What stands in everything that is found, whatever its case: first the shapes, then the names. Most texts hold none of
/// it, and to know that takes less than to make an expression of all shapes.
static SIGNS: LazyLock<[AhoCorasick; 2]> = LazyLock::new(|| {
    let signs = |all: &[(&[&str], &str)], any_case: bool| {
        let signs = all.iter().flat_map(|(signs, _)| signs.iter());
        AhoCorasick::builder().ascii_case_insensitive(any_case).build(signs).expect("there are few")
    };
    [signs(&SHAPE, false), signs(&NAME, true)]
});

/// Whether a text may hold a secret.
fn is_suspicious(text: &str) -> bool {
    let [shapes, names] = &*SIGNS;
    let goes_on = |sign: aho_corasick::Match| {
        let rest = &text.as_bytes()[sign.end()..];
        match text.as_bytes()[sign.start()] {
            // A password in an address.
            b':' => {
                rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b'/').any(|byte| *byte == b'@')
            }
            // A user with a password, and other options that tell by their names what follows.
            b'-' if text.as_bytes()[sign.range()].starts_with(b"-u") => {
                rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).any(|byte| *byte == b':')
            }
            b'-' => true,
            // The rest of a name, quotes, blanks, and what a value is given by.
            _ => {
                let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || b"_-".contains(byte);
                let is_between = |byte: &&u8| !byte.is_ascii_graphic() || b"\\\"'".contains(byte);
                let next = rest.iter().skip_while(is_name).find(|byte| !is_between(byte));
                next.is_some_and(|byte| b":=".contains(byte))
            }
        }
    };
    shapes.is_match(text) || names.find_iter(text).any(goes_on)
}

/// Any of them. Nearly every text holds none, and one pass tells; what may stand before a name is of no interest to it.
static ANY: LazyLock<Regex> = LazyLock::new(|| {
    let names = any_name().replace(r"(?:[A-Za-z0-9]+[_-])*", "").replace(r"[a-z][a-z0-9+.-]*://", "://");
    Regex::new(&format!("{}|{names}", any_shape())).expect("the shapes are legal")
});

/// Replaces every secret in `text`, and tells how many there were.
pub fn mask(text: &str) -> (Cow<'_, str>, usize) {
    let mut count = 0;
    if !is_suspicious(text) || !ANY.is_match(text) {
        return (Cow::Borrowed(text), 0);
    }
    let shaped = SHAPES.replace_all(text, |_: &Captures<'_>| {
        count += 1;
        MARK
    });
    let named = match &shaped {
        Cow::Borrowed(text) => mask_named(text, &mut count),
        Cow::Owned(text) => Cow::Owned(mask_named(text, &mut count).into_owned()),
    };
    (named, count)
}

/// Replaces every secret in the texts of a block, and tells how many there were.
pub fn mask_block(kind: &mut BlockKind) -> usize {
    let mut count = 0;
    let mut replace = |text: &mut String| {
        if let (Cow::Owned(masked), found) = mask(text) {
            count += found;
            *text = masked;
        }
    };
    match kind {
        BlockKind::Prompt { text, .. }
        | BlockKind::Answer { text, .. }
        | BlockKind::Thinking { text }
        | BlockKind::Output { text, .. }
        | BlockKind::Notice { text, .. }
        | BlockKind::Compaction { summary: text } => replace(text),
        BlockKind::Subagent { description, .. } => description.iter_mut().for_each(replace),
        BlockKind::Call { input, .. } => {
            let (masked, found) = mask_json(input);
            count += found;
            if let Cow::Owned(masked) = masked {
                *input = masked;
            }
        }
        BlockKind::Media { .. } => {}
    }
    count
}

/// Replaces every secret in a JSON value, and tells how many there were. What a value is called counts, too.
pub fn mask_json(value: &Value) -> (Cow<'_, Value>, usize) {
    let text = value.to_string();
    match mask(&text) {
        (_, 0) => (Cow::Borrowed(value), 0),
        (masked, count) => {
            let value = serde_json::from_str(&masked).unwrap_or_else(|_| Value::String(masked.into_owned()));
            (Cow::Owned(value), count)
        }
    }
}

fn mask_named<'a>(text: &'a str, count: &mut usize) -> Cow<'a, str> {
    let (mut masked, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = NAMED.captures_at(text, at) {
        let value = (2..found.len()).step_by(2).find_map(|group| found.get(group));
        let Some(value) = value else { break };
        if is_random(value.as_str()) {
            *count += 1;
            masked.push_str(&text[copied..value.start()]);
            masked.push_str(MARK);
            (copied, at) = (value.end(), value.end());
        } else {
            // What was taken for the value may be the name of another one: `secret: password=...`.
            at = value.start();
        }
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(masked + &text[copied..]),
    }
}

/// Whether a value looks made up by a machine or a careful person, and not like a name in a program.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    value != MARK
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && !value.contains("(")
        && !value.starts_with('$')
        && !value.starts_with('<')
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::string::string_regex;
    use proptest::test_runner::TestRunner;

    use super::*;

    #[test]
    fn whatever_has_one_of_the_shapes_has_one_of_its_signs() {
        let mut runner = TestRunner::deterministic();
        for (_, shape) in SHAPE.iter().chain(&NAME) {
            let (unbounded, shape) = (shape.replace(r"\b", "").replace("*?", "*"), Regex::new(shape).unwrap());
            let secrets = string_regex(&unbounded).unwrap();
            for _ in 0..100 {
                let secret = secrets.new_tree(&mut runner).unwrap().current();
                assert!(shape.is_match(&secret), "{shape}: {secret:?}");
                assert!(is_suspicious(&secret), "{shape}: {secret:?}");
            }
        }
        for harmless in ["the secret of the token is the password", "https://example.invalid/a@b", "keys: api, key"] {
            assert!(!is_suspicious(harmless), "{harmless}");
        }
    }

    #[test]
    fn secrets_go_and_everything_else_stays() {
        // Put together here, so that no scanner takes this file for a leak.
        let key = |start: &str, length: usize| format!("{start}{}", "a1B2c3D4e5F6g7H8".repeat(5)[..length].to_owned());
        let gone = [
            key("sk-ant-api03-", 40),
            key("sk-proj-", 40),
            key("ghp_", 36),
            key("github_pat_", 60),
            format!("AKIA{}", "ABCDEFGH23456789"),
            key("xoxb-", 30),
            key("AIza", 35),
            key("glpat-", 20),
            key("npm_", 36),
            key("hf_", 34),
            format!("{}.{}.{}", key("eyJ", 20), key("eyJ", 20), key("", 30)),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", key("", 60)),
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\\n{}", key("", 60)),
        ];
        for secret in &gone {
            let text = format!("before {secret}");
            let (masked, count) = mask(&text);
            assert_eq!((masked.as_ref(), count), ("before [secret]", 1), "{secret}");
        }
        let named = |text: &str, expected: &str| assert_eq!(mask(text).0, expected);
        named("Authorization: Bearer abcdef123456789", "Authorization: Bearer [secret]");
        named(r#"{"password": "hunter2hunter2"}"#, r#"{"password": "[secret]"}"#);
        named("export DB_PASSWORD=hunter2hunter2 # it", "export DB_PASSWORD=[secret] # it");
        named("AWS_SECRET_ACCESS_KEY=abc/123+xyzabc/123", "AWS_SECRET_ACCESS_KEY=[secret]");
        named("postgres://app:s3cretpw@db/x", "postgres://app:[secret]@db/x");
        named("secret: password: hunter2hunter2", "secret: password: [secret]");
        named("the secret = aws_secret_access_key = abc/123+xyz", "the secret = aws_secret_access_key = [secret]");
        named(r#"{"token":"abcdefabcdef12342"}"#, r#"{"token":"[secret]"}"#);
        named("GITHUB_TOKEN=abcdefabcdef12343 make", "GITHUB_TOKEN=[secret] make");
        named("login --password hunter2hunter2 --now", "login --password [secret] --now");
        named("curl -u app:hunter2hunter2 url", "curl -u app:[secret] url");
        named(
            "postgres://app:s3cretpw@db/x and password=hunter22",
            "postgres://app:[secret]@db/x and password=[secret]",
        );
        let cut_off = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\nand what else was said", key("", 60));
        named(&cut_off, "[secret]\nand what else was said");
        for text in [
            "let token = next_token_2(input);",
            "token: t1234567",
            "git push -u origin main:main",
            "docker run -u 1000:1000 --token-file x",
            "let password = read_password();",
            "password: $PASSWORD1",
            "api_key = config.api_key",
            "https://example.invalid:8080/a@b",
            "sk-short",
            "the token is in the cookie",
            "",
            "eyJhbGciOi",
        ] {
            assert_eq!(mask(text), (Cow::Borrowed(text), 0));
        }
    }

    #[test]
    fn a_value_is_secret_by_what_it_is_called() {
        let check = |value: Value, expected: Value, count: usize| {
            let mut kind = BlockKind::Call { id: String::new(), name: "http".into(), input: value.clone() };
            assert_eq!(mask_block(&mut kind), count, "{value}");
            assert_eq!(kind, BlockKind::Call { id: String::new(), name: "http".into(), input: expected });
        };
        let plain = serde_json::json!({"command": "ls", "lines": [1, "two"]});
        check(plain.clone(), plain, 0);
        check(
            serde_json::json!({"a": {"password": "hunter2hunter2"}, "b": "x\ny"}),
            serde_json::json!({"a": {"password": "[secret]"}, "b": "x\ny"}),
            1,
        );
    }
}
