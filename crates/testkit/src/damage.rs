//! Damage to files: what crashes, disks, other programs and hostile people do to them.
//!
//! Everything is drawn from a seeded [`Random`], so a failing case can be repeated.

use serde_json::{Map, Value, json};

use crate::build::Random;

/// Texts that have broken programs before.
pub const HOSTILE_TEXTS: [&str; 24] = [
    "",
    " ",
    "-",
    "--",
    "--help",
    "@",
    "@-1",
    "@99999999999999999999",
    ".",
    "..",
    "../../../../etc/passwd",
    "/",
    "~",
    "$(touch broken)",
    "`touch broken`; touch broken",
    "\u{1b}]0;owned\u{7}\u{1b}[2J",
    "\u{9b}2J",
    "\u{202e}gnp.exe\u{2066}",
    "zero\u{200b}width\u{2060}\u{feff}",
    "line\nbreak\r\u{2028}\u{85}",
    "nul\u{0}byte",
    "e\u{301}\u{301}\u{301}\u{301}👩‍👩‍👧‍👦漢字",
    "%s%n%x {} {0} \\u0000 \"quotes' `",
    "<script>alert(1)</script><!-- ]]> &amp;",
];

/// Changes the bytes of a file in one to four places.
pub fn damage_bytes(content: &[u8], random: &mut Random) -> Vec<u8> {
    let mut content = content.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(content.len() + 1);
        let rest = content.len() - at;
        let length = random.below(rest.min(4096) + 1);
        match random.below(7) {
            0 => content.truncate(at),
            1 => content[at..at + length].fill(0),
            2 => drop(content.drain(at..at + length)),
            3 => {
                let piece = content[at..at + length].to_vec();
                content.splice(at..at, piece);
            }
            4 => {
                let noise: Vec<u8> = (0..random.below(64)).map(|_| random.bits() as u8).collect();
                content.splice(at..at, noise);
            }
            _ => {
                for _ in 0..=random.below(16) {
                    if !content.is_empty() {
                        let at = random.below(content.len());
                        content[at] ^= 1 << random.below(8);
                    }
                }
            }
        }
    }
    content
}

/// Changes the records of a file of JSON lines in one to four places. Most lines stay valid JSON, so the damage reaches
/// whoever interprets the records.
pub fn damage_records(content: &[u8], random: &mut Random) -> Vec<u8> {
    let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut records: Vec<Value> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for _ in 0..=random.below(4) {
        if records.is_empty() {
            records.push(odd_value(random));
        }
        // The first records say whose file it is, so they are hit more often.
        let limit = if random.below(3) == 0 { records.len().min(3) } else { records.len() };
        let at = random.below(limit);
        let other = random.below(records.len());
        match random.below(10) {
            0 => drop(records.remove(at)),
            1 => records.insert(other, records[at].clone()),
            2 => records.swap(at, other),
            3 => records.insert(at, odd_value(random)),
            4 => relink(&mut records, at, other),
            _ => damage_value(&mut records[at], random),
        }
    }
    let mut damaged: Vec<u8> = records.iter().flat_map(|record| format!("{record}\n").into_bytes()).collect();
    if random.below(8) == 0 {
        damaged.pop();
    }
    damaged
}

/// Changes a JSON value somewhere inside.
pub fn damage_value(value: &mut Value, random: &mut Random) {
    let is_deeper = random.below(4) != 0;
    match value {
        Value::Object(fields) if is_deeper && !fields.is_empty() => damage_fields(fields, random),
        Value::Array(items) if is_deeper && !items.is_empty() => {
            let at = random.below(items.len());
            damage_value(&mut items[at], random);
        }
        _ => *value = odd_value(random),
    }
}

fn damage_fields(fields: &mut Map<String, Value>, random: &mut Random) {
    let at = random.below(fields.len());
    let Some(name) = fields.keys().nth(at).cloned() else { return };
    match random.below(8) {
        0 => drop(fields.shift_remove(&name)),
        1 => {
            let value = fields.shift_remove(&name).unwrap_or_default();
            fields.insert((*random.choose(&HOSTILE_TEXTS)).to_owned(), value);
        }
        2 => drop(fields.insert((*random.choose(&HOSTILE_TEXTS)).to_owned(), odd_value(random))),
        _ => damage_value(&mut fields[&name], random),
    }
}

/// Makes one record the parent of another, or of itself.
fn relink(records: &mut [Value], at: usize, other: usize) {
    let uuid = records[other].get("uuid").cloned().unwrap_or_else(|| json!("00000000-0000-4000-8000-000000000000"));
    if let Some(fields) = records[at].as_object_mut() {
        fields.insert("parentUuid".to_owned(), uuid);
    }
}

/// A JSON value that nobody expects where it turns up.
pub fn odd_value(random: &mut Random) -> Value {
    match random.below(14) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e300),
        5 => json!([]),
        6 => json!({}),
        7 => (0..100).fold(json!("deep"), |inner, _| json!([inner])),
        8 => (0..100).fold(json!("deep"), |inner, _| json!({ "content": inner })),
        9 => json!("x".repeat(random.below(200_000))),
        10 => json!({ "type": "text", "text": random.choose(&HOSTILE_TEXTS) }),
        11 => json!([[], {}, null, 0, "text", { "type": [] }]),
        _ => json!(random.choose(&HOSTILE_TEXTS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_does_the_same_damage() {
        let content: Vec<u8> =
            (0..20).flat_map(|n| format!("{{\"uuid\":\"{n}\",\"a\":[1,2]}}\n").into_bytes()).collect();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let [one, two] = [(); 2].map(|()| damage_records(&content, &mut Random::new(seed)));
            assert_eq!(one, two);
            seen.insert(one);
            let [one, two] = [(); 2].map(|()| damage_bytes(&content, &mut Random::new(seed)));
            assert_eq!(one, two);
            seen.insert(one);
        }
        assert!(seen.len() > 90, "only {} different results", seen.len());
    }

    #[test]
    fn an_empty_file_can_be_damaged() {
        for seed in 0..50 {
            damage_bytes(b"", &mut Random::new(seed));
            damage_records(b"", &mut Random::new(seed));
        }
    }
}
