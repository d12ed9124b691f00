//! Computes how much of a query a turn contains: each word counts by its rarity, regardless of frequency and field. A
//! pasted message is complete in a tool's output, where its words have little weight; a paraphrase is only partly
//! contained in any turn.

use std::collections::HashMap;

use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocId, DocSet, Searcher, SegmentReader, TERMINATED, Term};

use super::find::{is_run, rarity};
use crate::search::index::schema::Fields;
use crate::search::query::{AskedWord, words};

/// The words of a question, with what each is worth.
pub(crate) struct WordCoverage {
    words: Vec<(Counted, f32)>,
    /// What all of them are worth together.
    pub mass: f32,
}

/// Which terms make up a word.
struct Counted {
    /// Any of these is the word.
    whole: Vec<(Field, String)>,
    /// Or all of these, each in any of its forms.
    parts: Vec<Vec<(Field, String)>>,
    /// Whether some of the parts are a part of the word.
    is_run: bool,
}

impl WordCoverage {
    pub(crate) fn of(fields: Fields, searcher: &Searcher, asked: &[AskedWord]) -> tantivy::Result<WordCoverage> {
        let total = searcher.num_docs().max(1) as f32;
        let count = |field: Field, text: &str| searcher.doc_freq(&Term::from_field_text(field, text));
        let mut cover = WordCoverage { words: Vec::with_capacity(asked.len()), mass: 0.0 };
        for asked in asked {
            let mut worth = 0.0;
            for part in &asked.word.parts {
                let documents = count(fields.prose, part)?.max(count(fields.tools, part)?);
                worth += rarity(total, documents as f32);
            }
            cover.mass += worth;
            cover.words.push((Counted::of(fields, asked), worth));
        }
        Ok(cover)
    }

    /// The share of the query that each of these turns contains, from 0 to 1.
    pub(crate) fn of_turns(&self, searcher: &Searcher, turns: &[DocAddress]) -> tantivy::Result<Vec<f32>> {
        let mut covers = vec![0.0; turns.len()];
        let mut by_segment: HashMap<u32, Vec<(DocId, usize)>> = HashMap::new();
        for (place, turn) in turns.iter().enumerate() {
            by_segment.entry(turn.segment_ord).or_default().push((turn.doc_id, place));
        }
        for (segment, mut documents) in by_segment {
            documents.sort_unstable();
            let reader = searcher.segment_reader(segment);
            for (word, worth) in &self.words {
                for ((_, place), said) in documents.iter().zip(word.coverage(reader, &documents)?) {
                    covers[*place] += said * worth / self.mass.max(f32::MIN_POSITIVE);
                }
            }
        }
        Ok(covers)
    }
}

impl Counted {
    fn of(fields: Fields, asked: &AskedWord) -> Counted {
        let Fields { prose, stem, tools, .. } = fields;
        let forms = |part: &String| {
            let root = words::stem(part);
            let mut forms = vec![(prose, part.clone()), (tools, part.clone()), (stem, root.clone())];
            if root != *part {
                forms.extend([(prose, root.clone()), (tools, root)]);
            }
            forms
        };
        let word = &asked.word;
        let whole = word.whole.iter().flat_map(|whole| [(prose, whole.clone()), (tools, whole.clone())]).collect();
        let parts: Vec<_> = word.parts.iter().map(forms).collect();
        Counted { whole, parts, is_run: is_run(word) }
    }

    /// How much of the word these documents of a segment say, from 0 to 1.
    fn coverage(&self, reader: &SegmentReader, documents: &[(DocId, usize)]) -> tantivy::Result<Vec<f32>> {
        let mut whole = vec![false; documents.len()];
        for (field, text) in &self.whole {
            mark(reader, *field, text, documents, &mut whole)?;
        }
        let mut counts = vec![0_u16; documents.len()];
        let mut has = vec![false; documents.len()];
        for forms in &self.parts {
            has.fill(false);
            for (field, text) in forms {
                mark(reader, *field, text, documents, &mut has)?;
            }
            counts.iter_mut().zip(&has).for_each(|(count, has)| *count += u16::from(*has));
        }
        let by_parts = |count: u16| match usize::from(count) {
            all if all >= self.parts.len() => 1.0,
            _ if self.is_run => f32::from(count) / self.parts.len() as f32,
            _ => 0.0,
        };
        Ok(whole.into_iter().zip(counts).map(|(whole, count)| if whole { 1.0 } else { by_parts(count) }).collect())
    }
}

/// Marks the documents, which are in order, that have a term.
fn mark(
    reader: &SegmentReader,
    field: Field,
    text: &str,
    documents: &[(DocId, usize)],
    marks: &mut [bool],
) -> tantivy::Result<()> {
    let term = Term::from_field_text(field, text);
    let Some(mut postings) = reader.inverted_index(field)?.read_postings(&term, IndexRecordOption::Basic)? else {
        return Ok(());
    };
    for ((document, _), mark) in documents.iter().zip(marks) {
        if postings.doc() < *document {
            postings.seek(*document);
        }
        match postings.doc() {
            TERMINATED => break,
            doc => *mark |= doc == *document,
        }
    }
    Ok(())
}
