//! Finding keys, tokens and passwords by the shapes that are known for them, so that they are not passed on.
//!
//! Matches are replaced by a mark. Unknown shapes are not found: this protects against accidents, not against an
//! adversary.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde_json::Value;

use crate::{BlockKind, text};

/// The replacement of a secret. Not longer than any secret, so that text never grows.
pub const MARK: &str = "[secret]";

/// A way in which a secret is known.
struct Shape {
    /// Every match contains one of these texts.
    signs: &'static [&'static str],
    /// The shape of the secret, or the text before it and, in group 1, the secret.
    expression: &'static str,
}

const fn shape(signs: &'static [&'static str], expression: &'static str) -> Shape {
    Shape { signs, expression }
}

/// Secrets that are known by what they look like.
const LOOKS: [Shape; 67] = [
    // Private keys, whole or truncated; in JSON, their line breaks are escaped.
    shape(
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nrt])+(?:(?:Version|Comment|Hash|Charset|Proc-Type|DEK-Info): [^\n\\]*|(?:[0-9]+(?:\s|\\t)+|[^\s\\]{0,80}[:→|](?:\s|\\t)*)?[A-Za-z0-9+/=]{16,}))*(?:(?:\s|\\[nr])+[A-Za-z0-9+/]{1,15}={1,2})?)",
    ),
    // Anthropic, OpenAI, OpenRouter, Stripe.
    shape(&["sk-"], r"sk-[A-Za-z0-9][A-Za-z0-9_-]{18,}"),
    shape(&["k_live_", "k_test_"], r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    // Amazon, Google, Azure.
    shape(&["AKIA", "ASIA", "AROA", "ABIA", "ACCA"], r"(?:AKIA|ASIA|AROA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    shape(&["AIza"], r"AIza[A-Za-z0-9_-]{35}"),
    shape(&["ya29."], r"ya29\.[A-Za-z0-9_-]{20,}"),
    shape(&["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    shape(&["AccountKey="], r"AccountKey=[A-Za-z0-9+/=]{40,}"),
    // Forges and registries.
    shape(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{30,}"),
    shape(&["github_pat_"], r"github_pat_[A-Za-z0-9_]{30,}"),
    shape(
        &["glpat-", "glptt-", "glrt-", "gldt-", "glcbt-", "glsoat-"],
        r"gl(?:pat|ptt|rt|dt|cbt|soat)-[A-Za-z0-9_-]{20,}",
    ),
    shape(&["npm_"], r"npm_[A-Za-z0-9]{30,}"),
    shape(&["pypi-"], r"pypi-[A-Za-z0-9_-]{40,}"),
    shape(&["dckr_pat_"], r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    shape(&["cio"], r"cio[A-Za-z0-9]{32}\b"),
    // Chat, mail, models, payments, services.
    shape(&["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"], r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    shape(&["xapp-"], r"xapp-[A-Za-z0-9-]{20,}"),
    shape(&["hooks.slack.com/services/"], r"hooks\.slack\.com/services/[A-Za-z0-9/_+-]{20,}"),
    shape(&["SG."], r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    shape(&["hf_"], r"hf_[A-Za-z0-9]{30,}"),
    shape(&["gsk_"], r"gsk_[A-Za-z0-9]{40,}"),
    shape(&["xai-"], r"xai-[A-Za-z0-9]{40,}"),
    shape(&["key-"], r"key-[0-9a-f]{32}\b"),
    shape(&["SK"], r"SK[0-9a-f]{32}\b"),
    shape(&["dop_v1_"], r"dop_v1_[0-9a-f]{60,}"),
    shape(&["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    shape(&[":AA"], r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    shape(&["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    shape(&["hvs."], r"hvs\.[A-Za-z0-9_-]{20,}"),
    shape(&["lin_api_"], r"lin_api_[A-Za-z0-9]{30,}"),
    shape(&["figd_"], r"figd_[A-Za-z0-9_-]{30,}"),
    shape(&["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], r"dp\.(?:pt|st|ct|sa)\.(?:[A-Za-z0-9_-]+\.)?[A-Za-z0-9]{30,}"),
    shape(&["whsec_"], r"whsec_[A-Za-z0-9+/=]{24,}"),
    shape(&[".com/api/webhooks/"], r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{30,}"),
    shape(&["dapi"], r"dapi[0-9a-f]{32}"),
    shape(&["ntn_", "secret_"], r"(?:ntn|secret)_[A-Za-z0-9]{40,}"),
    shape(&["pplx-"], r"pplx-[A-Za-z0-9]{40,}"),
    shape(&["r8_"], r"r8_[A-Za-z0-9]{30,}"),
    shape(&["NRAK-"], r"NRAK-[A-Z0-9]{20,}"),
    shape(&["PMAK-"], r"PMAK-[0-9a-f-]{40,}"),
    shape(&["EAAA"], r"EAAA[A-Za-z0-9_-]{50,}"),
    shape(&["sq0csp-", "sq0atp-"], r"sq0(?:csp|atp)-[A-Za-z0-9_-]{20,}"),
    shape(&["ATATT3"], r"ATATT3[A-Za-z0-9_=-]{50,}"),
    shape(&["rubygems_"], r"rubygems_[0-9a-f]{40,}"),
    shape(&["glsa_", "glc_"], r"gl(?:sa|c)_[A-Za-z0-9_+/=]{30,}"),
    shape(&["pul-"], r"pul-[0-9a-f]{40}"),
    shape(&["fo1_"], r"fo1_[A-Za-z0-9_-]{40,}"),
    shape(&["sbp_"], r"sbp_[0-9a-f]{40}"),
    shape(&["sk.eyJ"], r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}"),
    shape(&["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{30,}"),
    shape(&[".atlasv1."], r"[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_-]{40,}"),
    shape(&["sntrys_", "sntryu_"], r"sntry[su]_[A-Za-z0-9_=+/.-]{40,}"),
    shape(&["dt0c01."], r"dt0c01\.[A-Z0-9]{20,}\.[A-Z0-9]{60,}"),
    shape(&["GR1348941"], r"GR1348941[A-Za-z0-9_-]{20,}"),
    shape(&["tskey-"], r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    shape(&["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"], r"[0-9a-f]{32}-us[1-9][0-9]?\b"),
    shape(&["HRKU-"], r"HRKU-[A-Za-z0-9_-]{30,}"),
    shape(&["xkeysib-"], r"xkeysib-[0-9a-f]{40,}(?:-[A-Za-z0-9]+)?"),
    shape(&["ABSK"], r"ABSK[A-Za-z0-9+/=]{80,}"),
    shape(&[":APA91b"], r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}"),
    shape(&["CCIPAT_"], r"CCIPAT_[A-Za-z0-9_]{30,}"),
    shape(&["Q~"], r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}"),
    // PuTTY's private keys, whole or truncated.
    shape(
        &["Private-Lines: "],
        r"Private-Lines: [0-9]+(?:(?s:.*?)Private-(?:MAC|Hash): [0-9a-f]{40,}|(?:(?:\s|\\[nrt])+(?:[0-9]+(?:\s|\\t)+|[^\s\\]{0,80}[:→|](?:\s|\\t)*)?[A-Za-z0-9+/=]{16,})+)",
    ),
    // Fly, as in `FlyV1 fm2_…,fm2_…`.
    shape(&["fm1r_", "fm1a_", "fm2_"], r"fm(?:1r|1a|2)_[A-Za-z0-9+/=_-]{20,}"),
    // A bot of Discord: the digits of its number in Base64, a time and a signature.
    shape(
        &[
            "MTA", "MTE", "MTI", "MTM", "MTQ", "MTU", "MTY", "MTc", "MTg", "MTk", "MjA", "MjE", "MjI", "MjM", "MjQ",
            "MjU", "MjY", "Mjc", "Mjg", "Mjk", "MzA", "MzE", "MzI", "MzM", "MzQ", "MzU", "MzY", "Mzc", "Mzg", "Mzk",
            "NDA", "NDE", "NDI", "NDM", "NDQ", "NDU", "NDY", "NDc", "NDg", "NDk", "NTA", "NTE", "NTI", "NTM", "NTQ",
            "NTU", "NTY", "NTc", "NTg", "NTk", "NjA", "NjE", "NjI", "NjM", "NjQ", "NjU", "NjY", "Njc", "Njg", "Njk",
            "NzA", "NzE", "NzI", "NzM", "NzQ", "NzU", "NzY", "Nzc", "Nzg", "Nzk", "ODA", "ODE", "ODI", "ODM", "ODQ",
            "ODU", "ODY", "ODc", "ODg", "ODk", "OTA", "OTE", "OTI", "OTM", "OTQ", "OTU", "OTY", "OTc", "OTg", "OTk",
        ],
        r"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5}[A-Za-z0-9_-]{3,8}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    // A password as bcrypt keeps it.
    shape(&["$2$", "$2a$", "$2b$", "$2x$", "$2y$"], r"\$2[abxy]?\$[0-9]{2}\$[./A-Za-z0-9]{53}"),
    // JSON Web Tokens.
    shape(&["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
];

/// Secrets that are known by what they are called or how they are passed on.
const NAMES: [Shape; 17] = [
    shape(
        &["authorization"],
        r#"(?i-u:authorization)["']?\s*[:=]\s*["']?(?i-u:bearer|basic|token)\s+([A-Za-z0-9+/_.~=-]{12,})"#,
    ),
    // In quotes, a password may have blanks.
    shape(&["passw", "passphrase"], r#"(?i-u:password|passwd|passphrase)\\?["']?\s*[:=]\s*\\?"([^"\\\n]{8,100})\\?""#),
    shape(&["passw", "passphrase"], r#"(?i-u:password|passwd|passphrase)["']?\s*[:=]\s*'([^'\\\n]{8,100})'"#),
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
            "passphrase",
            "signing_key",
            "signing-key",
            "signingkey",
            "encryption_key",
            "encryption-key",
            "encryptionkey",
            "private_key",
            "private-key",
            "privatekey",
            "sharedaccesskey",
        ],
        r#"(?i-u:(?:api|signing|encryption|private)[_-]?key|secret(?:[_-]?(?:access[_-]?)?key(?:[_-]?base)?)?|sharedaccesskey|access[_-]?token|auth[_-]?token|password|passwd|passphrase)\\?["']?\s*[:=]\s*\\?["']?([^\s"'\\,;)}]{8,})"#,
    ),
    // Airtable. Its sign is a part of many words, so `is_followed` looks closer.
    shape(&["pat"], r"\b(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})\b"),
    // A bare `token` is also an ordinary word in programs, so its value must be longer.
    shape(&["token"], r#"(?i-u:token)\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9+/_.~-]{16,}=*)"#),
    // The same word is used for a directory.
    shape(&["pwd"], r#"(?i-u:pwd)\\?["']?\s*[:=]\s*\\?["']?([^\s"'\\,;)}/~.$][^\s"'\\,;)}]{7,})"#),
    shape(&["password is ", "passphrase is "], r#"(?i-u:password|passphrase) is ["'`]?([^\s"'`\\,;)}]{8,})"#),
    shape(&["cookie"], r#"(?i-u:cookie)["']?\s*:\s*["']?[^\s=;]+=([^\s;"'\\]{16,})"#),
    shape(&["auth\"", "auth\\\"", "_auth"], r#"(?i-u:_auth\\?"?|auth\\?")\s*[:=]\s*\\?"?([A-Za-z0-9+/]{20,}=*)"#),
    shape(&["?sig=", "&sig="], r"(?i-u:[?&]sig=)([A-Za-z0-9%+/]{30,})"),
    // On a command line.
    shape(
        &["--passw", "--token", "--secret", "--api-key", "--access-token", "--auth-token"],
        r#"--(?:passw(?:or)?d|token|secret|api-key|access-token|auth-token)[ =]["']?([^\s"'\\,;)}]{8,})"#,
    ),
    shape(&["-u "], r#"-u ["']?[A-Za-z0-9_.@+-]+:([^\s"'\\:/]{6,})"#),
    shape(&["mysql"], r#"mysql[a-z]* (?:[^\n|;&]* )?-p["']?([^\s"'\\=-][^\s"'\\]{5,})"#),
    shape(&["sshpass "], r#"sshpass -p ?["']?([^\s"'\\]{6,})"#),
    // The file `.netrc`.
    shape(&["machine"], r"machine\s+\S+\s+login\s+\S+\s+password\s+(\S{6,})"),
    shape(&["://"], r"[a-z0-9+.-]://[^\s/:@]*:([^\s/@]{4,})@"),
];

const COUNT: usize = LOOKS.len() + NAMES.len();

/// A set of shapes, a bit for each: first the looks, then the names.
type Shapes = u128;

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

/// Texts of which every match contains one, ignoring the case of names.
struct RequiredTexts {
    all: AhoCorasick,
    /// Which shape each of them is a sign of.
    shapes: Vec<usize>,
}

static SIGNS: LazyLock<[RequiredTexts; 2]> = LazyLock::new(|| {
    let signs = |shapes: &[Shape], first: usize, any_case: bool| {
        let all = shapes.iter().flat_map(|shape| shape.signs);
        let numbers = (first..).zip(shapes).flat_map(|(number, shape)| shape.signs.iter().map(move |_| number));
        RequiredTexts {
            all: AhoCorasick::builder().ascii_case_insensitive(any_case).build(all).expect("there are few"),
            shapes: numbers.collect(),
        }
    };
    [signs(&LOOKS, 0, false), signs(&NAMES, LOOKS.len(), true)]
});

/// The shapes that a text may have, by their signs.
fn possible_shapes(text: &str) -> Shapes {
    let [looks, names] = &*SIGNS;
    let shape = |signs: &RequiredTexts, sign: aho_corasick::Match| 1 << signs.shapes[sign.pattern().as_usize()];
    let is_followed =
        |sign: &aho_corasick::Match| is_followed(&text.as_bytes()[sign.range()], &text.as_bytes()[sign.end()..]);
    let named = names.all.find_overlapping_iter(text).filter(is_followed);
    let mut shapes: Shapes = named.fold(0, |shapes, sign| shapes | shape(names, sign));
    // Nearly every text has none of the others, which is sooner known than which.
    if looks.all.is_match(text) {
        let look = looks.all.find_overlapping_iter(text);
        shapes = look.fold(shapes, |shapes, sign| shapes | shape(looks, sign));
    }
    shapes
}

/// Whether a secret may follow a sign of a name.
fn is_followed(sign: &[u8], rest: &[u8]) -> bool {
    let word = || rest.iter().take_while(|byte| !byte.is_ascii_whitespace());
    match sign {
        // A password in an address, and a user with one.
        [b':', ..] => word().take_while(|byte| **byte != b'/').any(|byte| *byte == b'@'),
        [b'-', b'u' | b'U', ..] => word().any(|byte| *byte == b':'),
        [b'p' | b'P', b'a' | b'A', b't' | b'T'] => rest.get(14) == Some(&b'.'),
        // Other options, programs and files whose names reveal what follows.
        [b'-', ..] | [b'm' | b'M', ..] => true,
        [.., b'=' | b' '] => true,
        // The rest of a name, quotes, blanks, and what a value is given by.
        _ => {
            let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || b"_-".contains(byte);
            let is_between = |byte: &&u8| !byte.is_ascii_graphic() || b"\\\"'".contains(byte);
            let next = rest.iter().skip_while(is_name).find(|byte| !is_between(byte));
            next.is_some_and(|byte| b":=".contains(byte))
        }
    }
}

/// Replaces every secret in `text`, and returns how many there were. Control sequences inside a secret are removed with
/// it: otherwise a display that strips them would show the secret.
pub fn mask(text: &str) -> (Cow<'_, str>, usize) {
    let (masked, count) = mask_plain(text);
    if text.as_bytes().contains(&0x1b) {
        let cleaned = text::clean(text);
        if let (Cow::Owned(cleaned), more) = mask_plain(&cleaned)
            && more > count
        {
            return (Cow::Owned(cleaned), more);
        }
    }
    (masked, count)
}

fn mask_plain(text: &str) -> (Cow<'_, str>, usize) {
    let mut count = 0;
    let suspects = possible_shapes(text);
    let masked = match replace(text, suspects & LOOK, |_| true, &mut count) {
        Cow::Borrowed(text) => replace(text, suspects & !LOOK, is_random, &mut count),
        Cow::Owned(text) => {
            Cow::Owned(replace(&text, possible_shapes(&text) & !LOOK, is_random, &mut count).into_owned())
        }
    };
    (masked, count)
}

/// Replaces text with one of these shapes, from left to right, if it `is_secret`.
fn replace<'a>(text: &'a str, shapes: Shapes, is_secret: fn(&str) -> bool, count: &mut usize) -> Cow<'a, str> {
    let (mut masked, mut copied) = (String::new(), 0);
    let shapes = (0..COUNT).filter(|number| shapes & 1 << number != 0);
    let mut next: Vec<(usize, Place)> =
        shapes.filter_map(|number| Some((number, Place::find(text, 0, number)?))).collect();
    while let Some((first, place)) = next.iter().min_by_key(|(_, place)| place.start) {
        let (first, value) = (*first, place.value.clone());
        let is_secret = is_secret(&text[value.clone()]);
        if is_secret {
            *count += 1;
            masked.push_str(&text[copied..value.start]);
            masked.push_str(MARK);
            copied = value.end;
        }
        next.retain_mut(|(number, place)| {
            let from = match is_secret {
                true if place.start < value.end => value.end,
                // The apparent value may be the name of another one: `secret: password=...`.
                false if *number == first => value.start,
                _ => return true,
            };
            Place::find(text, from, *number).map(|behind| *place = behind).is_some()
        });
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(masked + &text[copied..]),
    }
}

/// The position of a match, and the secret.
struct Place {
    start: usize,
    value: Range<usize>,
}

impl Place {
    fn find(text: &str, from: usize, number: usize) -> Option<Place> {
        let expression = expression(number);
        if number < LOOKS.len() {
            let mut from = from;
            loop {
                let found = expression.find_at(text, from)?;
                if is_beginning(text.as_bytes(), found.start()) {
                    return Some(Place { start: found.start(), value: found.range() });
                }
                from = text.ceil_char_boundary(found.start() + 1);
            }
        }
        let found = expression.captures_at(text, from)?;
        Some(Place { start: found.get(0)?.start(), value: found.get(1)?.range() })
    }
}

/// Replaces every secret in the texts of a block, and returns how many there were.
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

/// Replaces every secret in a JSON value, and returns how many there were. The names of values count too.
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

/// How long an escape is at most.
const LONGEST: usize = 32;

/// Whether a word may start here: not after a letter or digit, unless that ends an escape, such as a line break in
/// JSON, an encoded character in a URL or a colour.
fn is_beginning(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(LONGEST)..at];
    let Some(last) = before.last().filter(|last| last.is_ascii_alphanumeric()) else { return true };
    let parameters = |byte: &u8| byte.is_ascii_digit() || b";?".contains(byte);
    match before {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'%', high, _] if high.is_ascii_hexdigit() && last.is_ascii_hexdigit() => true,
        [rest @ .., _] if last.is_ascii_alphabetic() => {
            let end = rest.iter().rposition(|byte| !parameters(byte)).unwrap_or(0);
            let sequence = rest.get(..=end).and_then(|rest| rest.strip_suffix(b"["));
            let begins = |introducer: &&[u8]| sequence.is_some_and(|sequence| sequence.ends_with(introducer));
            [b"\x1b".as_slice(), b"\\u001b", b"\\u001B", b"\\x1b", b"\\033", b"\\e"].iter().any(begins)
        }
        _ => false,
    }
}

/// Whether a value looks random, and not like a name in a program.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    if value.contains(' ') {
        return is_passphrase(value);
    }
    value != MARK
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && !value.contains("(")
        // A variable, a placeholder, the rest of a path as `token::kind_2`.
        && !value.starts_with(['$', '<', ':'])
}

/// Words of labels and messages that also occur in quotes next to the word `password`.
const PROSE: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "at",
    "be",
    "can",
    "cannot",
    "characters",
    "confirm",
    "current",
    "does",
    "enter",
    "field",
    "for",
    "forgot",
    "has",
    "in",
    "incorrect",
    "invalid",
    "is",
    "it",
    "least",
    "must",
    "new",
    "no",
    "not",
    "of",
    "old",
    "or",
    "password",
    "passwords",
    "please",
    "repeat",
    "required",
    "reset",
    "should",
    "the",
    "to",
    "too",
    "was",
    "with",
    "wrong",
    "you",
    "your",
];

/// Whether words in quotes are a password, and not a label or a message: three of them, or a digit, and none of prose.
fn is_passphrase(value: &str) -> bool {
    let words = || value.split(' ').filter(|word| !word.is_empty());
    let is_prose = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        PROSE.iter().any(|prose| prose.eq_ignore_ascii_case(word))
    };
    let is_long = words().nth(2).is_some() || value.contains(|c: char| c.is_ascii_digit());
    is_long && !value.contains(['(', '$', '<', '{', '%', '[']) && !words().any(is_prose)
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
