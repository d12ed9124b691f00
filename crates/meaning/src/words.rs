//! Splits a text into the model's words: BERT's uncased normalisation, with the position of each word in the text.
//!
//! Control characters and accents are removed, letters become lower case, punctuation and Chinese characters are
//! separate. The text is read once and never copied, so the unused part of a long text costs nothing. Names of special
//! tokens in a text (`[SEP]`) are ordinary words: a transcript must not control the model.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::vocabulary::{self, UNKNOWN, Vocabulary};

/// Longer words, in characters, are unknown to the model, whatever they are.
const LONGEST: usize = 100;

/// One word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its bytes in the text, with what was left out of it (accents, joiners).
    pub range: Range<usize>,
    /// How many tokens it is.
    pub tokens: usize,
}

/// Walks a text word by word.
pub(crate) struct Words<'t> {
    chars: Peekable<CharIndices<'t>>,
    /// What the last character became and has not been used yet.
    pending: VecDeque<Part>,
    /// The word as the vocabulary has it.
    normal: String,
    vocabulary: &'static Vocabulary,
}

/// What a character of the text becomes.
struct Part {
    kind: Kind,
    /// The character's bytes in the text, and those of what follows it and is left out.
    range: Range<usize>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The end of a word, if there is one.
    Space,
    /// A separate word.
    Alone(char),
    /// A character of a longer word.
    Inside(char),
}

impl<'t> Words<'t> {
    pub(crate) fn new(text: &'t str) -> Words<'t> {
        Words {
            chars: text.char_indices().peekable(),
            pending: VecDeque::new(),
            normal: String::new(),
            vocabulary: Vocabulary::get(),
        }
    }

    /// The next word; its tokens are added to `ids`.
    pub(crate) fn next(&mut self, ids: &mut Vec<u32>) -> Option<Word> {
        self.normal.clear();
        let (mut range, mut length) = (None::<Range<usize>>, 0);
        while let Some(part) = self.next_part() {
            match part.kind {
                Kind::Inside(c) => {
                    range.get_or_insert(part.range.clone()).end = part.range.end;
                    length += 1;
                    if length <= LONGEST {
                        self.normal.push(c);
                    }
                }
                Kind::Alone(_) if range.is_some() => {
                    self.pending.push_front(part);
                    break;
                }
                Kind::Alone(c) => {
                    self.normal.push(c);
                    range = Some(part.range);
                    break;
                }
                Kind::Space if range.is_some() => break,
                Kind::Space => {}
            }
        }
        let range = range?;
        let before = ids.len();
        if length > LONGEST {
            ids.push(UNKNOWN);
        } else {
            self.vocabulary.pieces(&self.normal, ids);
        }
        Some(Word { range, tokens: ids.len() - before })
    }

    fn next_part(&mut self) -> Option<Part> {
        while self.pending.is_empty() {
            let (start, c) = self.chars.next()?;
            let mut end = start + c.len_utf8();
            if !is_left_out(c) {
                while let Some((at, c)) = self.chars.next_if(|(_, c)| is_left_out(*c)) {
                    end = at + c.len_utf8();
                }
            }
            let pending = &mut self.pending;
            normalise(c, |kind| pending.push_back(Part { kind, range: start..end }));
        }
        self.pending.pop_front()
    }
}

/// The average number of pieces per word in a text: little more than one in the language of the model, and more the
/// less it understands. Numbers and punctuation do not count.
pub fn pieces_per_word(text: &str) -> f32 {
    let (mut words, mut pieces) = (0_usize, 0_usize);
    let mut ids = Vec::new();
    let mut walk = Words::new(text);
    while let Some(word) = walk.next(&mut ids) {
        let said = &text[word.range];
        if said.starts_with(char::is_alphabetic) {
            words += 1;
            pieces += if ids == [UNKNOWN] { said.chars().count() } else { word.tokens };
        }
        ids.clear();
    }
    if words == 0 { 1.0 } else { pieces as f32 / words as f32 }
}

/// Whether the model supports a text: it was trained on the Latin alphabet, so most letters must be Latin, and words
/// must outnumber other characters. Its vocabulary has pieces of words in other alphabets, but it does not understand
/// them.
///
/// ```
/// assert!(meaning::can_read("the login page redirects") && meaning::can_read("los avisos se envían"));
/// assert!(!meaning::can_read("로그인 페이지가 계속") && !meaning::can_read("| 12.4 | 99.1 | 3 |"));
/// ```
pub fn can_read(text: &str) -> bool {
    let (mut latin, mut letters, mut signs) = (0_usize, 0_usize, 0_usize);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        signs += 1;
        letters += usize::from(c.is_alphabetic());
        latin += usize::from(c.is_alphabetic() && matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'));
    }
    2 * latin > letters && 4 * letters > signs
}

/// Whether a text is one word that the model knows as a whole: one that is common in its language, and spelt right.
///
/// ```
/// assert!(["outdated", "collection", "Stale"].into_iter().all(meaning::is_word));
/// assert!(!["colection", "garbage collection", "pgbouncer", ""].into_iter().any(meaning::is_word));
/// ```
pub fn is_word(text: &str) -> bool {
    // Asked of a word or two, by who may need nothing else of the vocabulary: making it takes longer than looking.
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return vocabulary::lists(&text.to_ascii_lowercase());
    }
    let mut ids = Vec::new();
    let mut walk = Words::new(text);
    let is_one = walk.next(&mut ids).is_some_and(|word| word.range == (0..text.len()) && word.tokens == 1);
    is_one && ids != [UNKNOWN]
}

/// Gives what a character becomes; nothing, if it is left out.
fn normalise(c: char, mut give: impl FnMut(Kind)) {
    if c.is_ascii_alphanumeric() {
        return give(Kind::Inside(c.to_ascii_lowercase()));
    }
    if c.is_whitespace() {
        return give(Kind::Space);
    }
    if is_left_out(c) {
        return;
    }
    let alone = is_chinese(c);
    decompose_canonical(c, |c| {
        if c.general_category() != GeneralCategory::NonspacingMark {
            c.to_lowercase()
                .for_each(|c| give(if alone || is_punctuation(c) { Kind::Alone(c) } else { Kind::Inside(c) }));
        }
    });
}

/// Control, format and private characters, and marks such as accents. The reference also leaves out vertical tabs, form
/// feeds and U+0085 and so joins the words around them; here they are spaces.
fn is_left_out(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !c.is_whitespace();
    }
    match c.general_category() {
        GeneralCategory::NonspacingMark | GeneralCategory::Format | GeneralCategory::PrivateUse => true,
        GeneralCategory::Control => !c.is_whitespace(),
        _ => c == char::REPLACEMENT_CHARACTER,
    }
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks of ideographs that the model was taught one by one. Kana and Hangul are not among them.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b73f}'
        | '\u{2b740}'..='\u{2b81f}'
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}
