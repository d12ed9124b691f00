//! Finding keys, tokens and passwords by the shapes that are known for them, so that they are not passed on.
//!
//! What is found is replaced by a mark. A shape that nobody knows is not found: this protects from accidents, not from
//! an adversary.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Value;

use crate::BlockKind;

/// What stands in the place of a secret. Not longer than any secret, so that text never grows.
pub const MARK: &str = "[secret]";

/// A way in which a secret is known.
struct Shape {
    /// Of these texts, one stands in everything that it finds.
    signs: &'static [&'static str],
    /// What it looks like, or what stands before it and then, in group 1, the secret.
    expression: &'static str,
}

const fn shape(signs: &'static [&'static str], expression: &'static str) -> Shape {
    Shape { signs, expression }
}

/// Secrets that are known by what they look like.
const LOOKS: [Shape; 33] = [
    // Private keys, whole or cut off; in JSON their line breaks are escaped.
    shape(
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])+[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr])+[A-Za-z0-9+/]{1,15}={1,2})?)",
    ),
    // Anthropic, OpenAI, OpenRouter, Stripe.
    shape(&["sk-"], r"\bsk-[A-Za-z0-9][A-Za-z0-9_-]{18,}"),
    shape(&["k_live_", "k_test_"], r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    // Amazon, Google, Azure.
    shape(&["AKIA", "ASIA", "AROA", "ABIA", "ACCA"], r"\b(?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    shape(&["AIza"], r"\bAIza[A-Za-z0-9_-]{35}"),
    shape(&["ya29."], r"\bya29\.[A-Za-z0-9_-]{20,}"),
    shape(&["GOCSPX-"], r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
    shape(&["AccountKey="], r"\bAccountKey=[A-Za-z0-9+/=]{40,}"),
    // Forges and registries.
    shape(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    shape(&["github_pat_"], r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    shape(
        &["glpat-", "glptt-", "glrt-", "gldt-", "glcbt-", "glsoat-"],
        r"\bgl(?:pat|ptt|rt|dt|cbt|soat)-[A-Za-z0-9_-]{20,}",
    ),
    shape(&["npm_"], r"\bnpm_[A-Za-z0-9]{30,}"),
    shape(&["pypi-"], r"\bpypi-[A-Za-z0-9_-]{40,}"),
    shape(&["dckr_pat_"], r"\bdckr_pat_[A-Za-z0-9_-]{20,}"),
    shape(&["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    // Chat, mail, models, payments, services.
    shape(&["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"], r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    shape(&["xapp-"], r"\bxapp-[A-Za-z0-9-]{20,}"),
    shape(&["hooks.slack.com/services/"], r"hooks\.slack\.com/services/[A-Za-z0-9/_+-]{20,}"),
    shape(&["SG."], r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    shape(&["hf_"], r"\bhf_[A-Za-z0-9]{30,}"),
    shape(&["gsk_"], r"\bgsk_[A-Za-z0-9]{40,}"),
    shape(&["xai-"], r"\bxai-[A-Za-z0-9]{40,}"),
    shape(&["key-"], r"\bkey-[0-9a-f]{32}\b"),
    shape(&["SK"], r"\bSK[0-9a-f]{32}\b"),
    shape(&["dop_v1_"], r"\bdop_v1_[0-9a-f]{60,}"),
    shape(&["shpat_", "shpca_", "shppa_", "shpss_"], r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    shape(&[":AA"], r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    shape(&["AGE-SECRET-KEY-1"], r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    shape(&["hvs."], r"\bhvs\.[A-Za-z0-9_-]{20,}"),
    shape(&["lin_api_"], r"\blin_api_[A-Za-z0-9]{30,}"),
    shape(&["figd_"], r"\bfigd_[A-Za-z0-9_-]{30,}"),
    shape(&["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], r"\bdp\.(?:pt|st|ct|sa)\.(?:[A-Za-z0-9_-]+\.)?[A-Za-z0-9]{30,}"),
    // JSON Web Tokens.
    shape(&["eyJ"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
];

/// Secrets that are known by what they are called or how they are passed on.
const NAMES: [Shape; 9] = [
    shape(
        &["authorization"],
        r#"(?i-u:authorization)["']?\s*[:=]\s*["']?(?i-u:bearer|basic|token)\s+([A-Za-z0-9+/_.~=-]{12,})"#,
    ),
    shape(
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
        r#"(?i-u:api[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|access[_-]?token|auth[_-]?token|password|passwd)\\?["']?\s*[:=]\s*\\?["']?([^\s"'\\,;)}]{8,})"#,
    ),
    // A token that says nothing more of itself is a word of programs as well, so its value has to be longer.
    shape(&["token"], r#"(?i-u:token)\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9+/_.~-]{16,}=*)"#),
    // On a command line.
    shape(
        &["--passw", "--token", "--secret", "--api-key", "--access-token", "--auth-token"],
        r#"--(?:passw(?:or)?d|token|secret|api-key|access-token|auth-token)[ =]["']?([^\s"'\\,;)}]{8,})"#,
    ),
    shape(&["-u "], r#"-u ["']?[A-Za-z0-9_.@+-]+:([^\s"'\\:/]{6,})"#),
    shape(&["mysql"], r#"mysql[a-z]* (?:[^\n|;&]* )?-p["']?([^\s"'\\=-][^\s"'\\]{5,})"#),
    shape(&["sshpass"], r#"sshpass -p ?["']?([^\s"'\\]{6,})"#),
    // The file `.netrc`.
    shape(&["machine"], r"machine\s+\S+\s+login\s+\S+\s+password\s+(\S{6,})"),
    shape(&["://"], r"[a-z0-9+.-]://[^\s/:@]*:([^\s/@]{4,})@"),
];

const COUNT: usize = LOOKS.len() + NAMES.len();

/// A set of shapes, a bit for each: first the looks, then the names.
type Shapes = u64;

const LOOK: Shapes = (1 << LOOKS.len()) - 1;
const _: () = assert!(COUNT <= Shapes::BITS as usize);

/// The expression of a shape. Most texts have the signs of none, the others of one or two: to make all of them would take
/// longer than many a search.
fn expression(number: usize) -> &'static Regex {
    static MADE: [OnceLock<Regex>; COUNT] = [const { OnceLock::new() }; COUNT];
    MADE[number].get_or_init(|| {
        let shape = LOOKS.iter().chain(&NAMES).nth(number).expect("one of them");
        // Word boundaries of ASCII: those of Unicode make the search many times slower wherever there is a letter beyond it.
        Regex::new(&shape.expression.replace(r"\b", r"(?-u:\b)")).expect("the shapes are legal")
    })
}

/// What stands in everything that is found: of the names, whatever its case.
struct Signs {
    all: AhoCorasick,
    /// Which shape each of them is a sign of.
    shapes: Vec<usize>,
}

static SIGNS: LazyLock<[Signs; 2]> = LazyLock::new(|| {
    let signs = |shapes: &[Shape], first: usize, any_case: bool| {
        let all = shapes.iter().flat_map(|shape| shape.signs);
        let numbers = (first..).zip(shapes).flat_map(|(number, shape)| shape.signs.iter().map(move |_| number));
        Signs {
            all: AhoCorasick::builder().ascii_case_insensitive(any_case).build(all).expect("there are few"),
            shapes: numbers.collect(),
        }
    };
    [signs(&LOOKS, 0, false), signs(&NAMES, LOOKS.len(), true)]
});

/// The shapes that a text may have, by their signs.
fn suspected(text: &str) -> Shapes {
    let [looks, names] = &*SIGNS;
    let bits = |signs: &Signs, goes_on: &dyn Fn(&[u8], &[u8]) -> bool| {
        let is_one =
            |sign: &aho_corasick::Match| goes_on(&text.as_bytes()[sign.range()], &text.as_bytes()[sign.end()..]);
        // Nearly every text has none; only one that has is asked for all of them.
        match signs.all.find_iter(text).any(|sign| is_one(&sign)) {
            false => 0,
            true => {
                let all = signs.all.find_overlapping_iter(text).filter(is_one);
                all.fold(0, |bits: Shapes, sign| bits | 1 << signs.shapes[sign.pattern().as_usize()])
            }
        }
    };
    bits(looks, &|_, _| true) | bits(names, &is_followed)
}

/// Whether a secret may follow a sign of a name.
fn is_followed(sign: &[u8], rest: &[u8]) -> bool {
    let word = || rest.iter().take_while(|byte| !byte.is_ascii_whitespace());
    match sign {
        // A password in an address, and a user with one.
        [b':', ..] => word().take_while(|byte| **byte != b'/').any(|byte| *byte == b'@'),
        [b'-', b'u' | b'U', ..] => word().any(|byte| *byte == b':'),
        // Other options, programs and files that tell by their names what follows.
        [b'-', ..] | [b'm' | b'M', ..] => true,
        _ if sign.eq_ignore_ascii_case(b"sshpass") => true,
        // The rest of a name, quotes, blanks, and what a value is given by.
        _ => {
            let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || b"_-".contains(byte);
            let is_between = |byte: &&u8| !byte.is_ascii_graphic() || b"\\\"'".contains(byte);
            let next = rest.iter().skip_while(is_name).find(|byte| !is_between(byte));
            next.is_some_and(|byte| b":=".contains(byte))
        }
    }
}

/// Replaces every secret in `text`, and tells how many there were.
pub fn mask(text: &str) -> (Cow<'_, str>, usize) {
    let mut count = 0;
    let suspects = suspected(text);
    let masked = match replace(text, suspects & LOOK, |_| true, &mut count) {
        Cow::Borrowed(text) => replace(text, suspects & !LOOK, is_random, &mut count),
        Cow::Owned(text) => Cow::Owned(replace(&text, suspected(&text) & !LOOK, is_random, &mut count).into_owned()),
    };
    (masked, count)
}

/// Replaces what has one of these shapes, from left to right, where it `is_secret`.
fn replace<'a>(text: &'a str, shapes: Shapes, is_secret: fn(&str) -> bool, count: &mut usize) -> Cow<'a, str> {
    let (mut masked, mut copied) = (String::new(), 0);
    let shapes = (0..COUNT).filter(|number| shapes & 1 << number != 0);
    let mut next: Vec<(usize, Place)> =
        shapes.filter_map(|number| Some((number, Place::find(text, 0, number)?))).collect();
    while let Some((_, first)) = next.iter().min_by_key(|(_, place)| place.start) {
        let value = first.value.clone();
        let at = if is_secret(&text[value.clone()]) {
            *count += 1;
            masked.push_str(&text[copied..value.start]);
            masked.push_str(MARK);
            copied = value.end;
            value.end
        } else {
            // What was taken for the value may be the name of another one: `secret: password=...`.
            value.start
        };
        next.retain_mut(|(number, place)| {
            place.start >= at || Place::find(text, at, *number).map(|behind| *place = behind).is_some()
        });
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(masked + &text[copied..]),
    }
}

/// Where a shape was found: where it begins, and the secret.
struct Place {
    start: usize,
    value: Range<usize>,
}

impl Place {
    fn find(text: &str, from: usize, number: usize) -> Option<Place> {
        let expression = expression(number);
        if number < LOOKS.len() {
            return expression.find_at(text, from).map(|found| Place { start: found.start(), value: found.range() });
        }
        let found = expression.captures_at(text, from)?;
        Some(Place { start: found.get(0)?.start(), value: found.get(1)?.range() })
    }
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
        for (number, Shape { expression: shape, .. }) in LOOKS.iter().chain(&NAMES).enumerate() {
            let secrets = string_regex(&shape.replace(r"\b", "").replace("*?", "*")).unwrap();
            for _ in 0..100 {
                let secret = secrets.new_tree(&mut runner).unwrap().current();
                assert!(expression(number).is_match(&secret), "{shape}: {secret:?}");
                assert!(suspected(&secret) & 1 << number != 0, "{shape}: {secret:?}");
            }
        }
        for harmless in ["the secret of the token is the password", "https://example.invalid/a@b", "keys: api, key"] {
            assert_eq!(suspected(harmless), 0, "{harmless}");
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
            key("gsk_", 52),
            key("xai-", 64),
            key("lin_api_", 40),
            key("figd_", 40),
            key("dp.pt.", 43),
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
        named("mysql -h db -u app -phunter2hunter2 shop", "mysql -h db -u app -p[secret] shop");
        named("mysqldump -phunter2hunter2 shop", "mysqldump -p[secret] shop");
        named("sshpass -p 'hunter2hunter2' ssh host", "sshpass -p '[secret]' ssh host");
        named("machine h login me\n\tpassword hunter2hunter2", "machine h login me\n\tpassword [secret]");
        named("curl -u app:hunter2hunter2 url", "curl -u app:[secret] url");
        named(
            "postgres://app:s3cretpw@db/x and password=hunter22",
            "postgres://app:[secret]@db/x and password=[secret]",
        );
        let several = format!("a token={} b {} c {} d", key("", 20), key("hf_", 34), key("ghp_", 36));
        named(&several, "a token=[secret] b [secret] c [secret] d");
        let cut_off = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\nand what else was said", key("", 60));
        named(&cut_off, "[secret]\nand what else was said");
        for text in [
            "let token = next_token_2(input);",
            "token: t1234567",
            "git push -u origin main:main",
            "docker run -u 1000:1000 --token-file x",
            "let password = read_password();",
            "mysql -p shop2 && mkdir -p a1b2c3d4",
            "the machine has no login; its password is a1b2c3d4",
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
