use proptest::prelude::*;

use super::*;

fn count(text: &str) -> usize {
    let mut ids = Vec::new();
    let mut words = Words::new(text);
    while words.next(&mut ids).is_some() {}
    ids.len()
}

fn pieces(text: &str) -> Vec<&str> {
    chunks(text).map(|range| &text[range]).collect()
}

/// What holds for every text: chunks are in order, whole characters, together all words, and none is too large.
fn check(text: &str) {
    let (mut end, mut tokens) = (0, 0);
    for range in chunks(text) {
        assert!(end <= range.start && range.start < range.end, "{range:?} after {end}");
        assert_eq!(count(&text[end..range.start]), 0, "words are missing before {range:?}");
        let chunk = &text[range.clone()];
        let size = count(chunk);
        // One word has at most 100 tokens.
        assert!(size <= FULL + TAIL || size <= 100 && !chunk.contains(' '), "{size} tokens");
        assert!(size > 0);
        tokens += size;
        end = range.end;
    }
    assert_eq!(count(&text[end..]), 0, "words are missing at the end");
    assert_eq!(tokens, count(text));
}

#[test]
fn nothing_has_no_chunks() {
    for text in ["", " ", "\n\n", "\u{0}\u{200b}", "\u{301}"] {
        assert_eq!(chunks(text).count(), 0, "{text:?}");
    }
}

#[test]
fn a_short_text_is_one_chunk_without_the_space_around_it() {
    assert_eq!(pieces("  ok\n"), ["ok"]);
    let text = "Some words. ".repeat(26);
    assert_eq!(count(&text), FULL + TAIL);
    assert_eq!(pieces(&text), [text.trim_end()]);
}

#[test]
fn chunks_end_where_sentences_end() {
    let text = "The fork is written beside its final name, and only then put in place. ".repeat(12);
    let found = pieces(&text);
    assert!(found.len() > 2);
    for chunk in &found {
        assert!(chunk.starts_with("The fork") && chunk.ends_with("place."), "{chunk}");
        assert!((ENOUGH..=FULL + TAIL).contains(&count(chunk)));
    }
    let quoted = "He said: \"This is not what was meant, and it never was.\" (So she left for the day.) ".repeat(8);
    for chunk in pieces(&quoted) {
        assert!(chunk.ends_with(['"', ')']), "{chunk}");
    }
    let chinese = "提交之前先运行测试，然后更新文档。".repeat(20);
    for chunk in pieces(&chinese) {
        assert!(chunk.ends_with('。'), "{chunk}");
    }
}

#[test]
fn a_paragraph_is_a_better_place_than_a_sentence() {
    let first = "One two three four five six seven eight. ".repeat(4);
    let text = format!("{first}\n\n{}", "Nine ten eleven twelve, and some more of it. ".repeat(8));
    assert_eq!(pieces(&text)[0], first.trim_end());
}

#[test]
fn a_long_sentence_is_cut_between_words() {
    let text = "alpha beta gamma delta ".repeat(100);
    let found = pieces(&text);
    assert!(found.len() > 5);
    for chunk in found {
        assert!(chunk.split(' ').all(|word| ["alpha", "beta", "gamma", "delta"].contains(&word)), "{chunk}");
    }
}

#[test]
fn marks_stay_with_their_character() {
    check(&"#\u{fe0f}\u{20e3}".repeat(200));
    for chunk in pieces(&"#\u{fe0f}\u{20e3}".repeat(200)) {
        assert!(chunk.starts_with('#') && chunk.ends_with('\u{20e3}'));
    }
    for chunk in pieces(&"。\u{301}".repeat(200)) {
        assert!(chunk.starts_with('。') && chunk.ends_with('\u{301}'));
    }
}

#[test]
fn a_megabyte_of_anything_is_cut() {
    for unit in ["word ", "x", "é", "漢", "#\u{20e3}", ".", "≠", "\u{1f600}", "\u{301}", "\n", "qqq.qqq ", "zqxj"] {
        let text = unit.repeat((1 << 20) / unit.len());
        check(&text);
    }
}

#[test]
fn a_chunk_is_given_before_the_text_is_read() {
    // Reading on would take thousands of times as long as what is asked for; the walk goes only a little ahead.
    let text = "Some words. ".repeat(100_000);
    let mut chunks = chunks(&text);
    let first = chunks.next().expect("a chunk");
    assert!(chunks.ahead.back().expect("words").range.end < first.end + 1000);
}

proptest! {
    #[test]
    fn any_text_is_cut_between_characters(text in "(\\PC|[ \n.,!a-z漢字é\u{301}\u{20e3}]{0,40}){0,60}") {
        check(&text);
    }
}
