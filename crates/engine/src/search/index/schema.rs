//! The fields of a document in the index, and how their text is split into terms.

use tantivy::Index;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// The transcript, by [`crate::sessions::catalog::file_key`].
    pub file: Field,
    pub turn: Field,
    /// Transcript and turn together, for replacing a turn.
    pub place: Field,
    /// The time of the turn, in seconds since 1970.
    pub at: Field,
    /// The offset of the turn in the transcript; [`NO_OFFSET`] if unknown.
    pub offset: Field,
    pub prose: Field,
    /// The stems of prose that differ from the words.
    pub stem: Field,
    pub tools: Field,
    /// The suffixes of paths that were read or written.
    pub path: Field,
    pub tool: Field,
}

/// The offset of a turn that can only be reached from the beginning.
pub(crate) const NO_OFFSET: u64 = u64::MAX;

pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = |record: IndexRecordOption, norms: bool| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer("terms").set_index_option(record).set_fieldnorms(norms);
        TextOptions::default().set_indexing_options(indexing)
    };
    let fields = Fields {
        file: schema.add_u64_field("file", INDEXED | FAST),
        turn: schema.add_u64_field("turn", FAST),
        place: schema.add_u64_field("place", INDEXED),
        at: schema.add_i64_field("at", FAST),
        offset: schema.add_u64_field("offset", FAST),
        prose: schema.add_text_field("prose", text(IndexRecordOption::WithFreqs, true)),
        stem: schema.add_text_field("stem", text(IndexRecordOption::WithFreqs, true)),
        tools: schema.add_text_field("tools", text(IndexRecordOption::Basic, true)),
        path: schema.add_text_field("path", text(IndexRecordOption::Basic, false)),
        tool: schema.add_text_field("tool", text(IndexRecordOption::Basic, false)),
    };
    (schema.build(), fields)
}

/// The key of a turn in the index.
pub(crate) fn place_key(file: u64, turn: u32) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(&turn.to_le_bytes(), file)
}

/// Registers the tokenizer of [`schema`].
pub(crate) fn with_tokenizer(index: Index) -> Index {
    index.tokenizers().register("terms", TextAnalyzer::from(Split::default()));
    index
}

/// A tokenizer for terms joined by single spaces.
#[derive(Clone, Default)]
struct Split {
    token: Token,
}

struct SplitStream<'a> {
    rest: &'a str,
    token: &'a mut Token,
}

impl Tokenizer for Split {
    type TokenStream<'a> = SplitStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> SplitStream<'a> {
        self.token.reset();
        SplitStream { rest: text, token: &mut self.token }
    }
}

impl TokenStream for SplitStream<'_> {
    fn advance(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        let end = self.rest.bytes().position(|byte| byte == b' ').unwrap_or(self.rest.len());
        self.token.text.clear();
        self.token.text.push_str(&self.rest[..end]);
        self.token.position = self.token.position.wrapping_add(1);
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
