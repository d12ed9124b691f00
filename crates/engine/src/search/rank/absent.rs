//! Finds out which parts of a query match nothing. This is only checked if results are missing, so that a message can
//! name exactly these parts.

use tantivy::schema::Field;
use tantivy::{Searcher, Term};
use transcript::text;

use crate::search::index::schema::Fields;
use crate::search::index::upkeep::OpenIndex;
use crate::search::query::paths::normal_path;
use crate::search::query::{Limits, words};

/// Runs in scripts without spaces count as one word each, however much of them occurs; this lists the missing part of
/// each.
pub(crate) fn missing(fields: Fields, searcher: &Searcher, unknown: &mut Vec<String>) -> tantivy::Result<()> {
    let mut missing: Vec<String> = Vec::new();
    for word in std::mem::take(unknown) {
        let pairs: Vec<&str> = word.split(' ').collect();
        if !pairs.iter().all(|pair| is_pair(pair)) {
            missing.push(word);
            continue;
        }
        let mut goes_on = false;
        for pair in pairs {
            let is_there = is_somewhere(searcher, fields.prose, pair)? || is_somewhere(searcher, fields.tools, pair)?;
            match missing.last_mut().filter(|_| goes_on) {
                _ if is_there => {}
                Some(run) => run.extend(pair.chars().last()),
                None => missing.push(pair.to_owned()),
            }
            goes_on = !is_there;
        }
    }
    *unknown = missing;
    Ok(())
}

/// Which of the filters keeps everything out, whatever else was asked.
pub(crate) fn blocking_filters(
    look: &OpenIndex,
    limits: &Limits,
    searcher: Option<&Searcher>,
) -> tantivy::Result<Vec<String>> {
    let mut told = Vec::new();
    if let Some(directory) = limits.directory.as_deref().filter(|directory| !directory.is_dir()) {
        told.push(format!("directory {} not found", text::one_line(&directory.to_string_lossy())));
    }
    if let Some(branch) = &limits.branch
        && !look.catalog.entries.iter().any(|entry| entry.is_shown() && entry.summary.was_on(branch))
    {
        told.push(format!("no session worked on branch `{}`", text::one_line(branch)));
    }
    if let (Some(words), Some(searcher)) = (&look.words, searcher) {
        let is_there = |field, term: &str| is_somewhere(searcher, field, &words::exact(term));
        if let Some(tool) = &limits.tool
            && !is_there(words.fields.tool, &tool.to_lowercase())?
        {
            told.push(format!("no session used the tool `{}`", text::one_line(tool)));
        }
        if let Some(file) = &limits.file
            && !is_there(words.fields.path, &normal_path(file))?
        {
            told.push(format!("no session touched the file `{}`", text::one_line(file)));
        }
    }
    Ok(told)
}

fn is_somewhere(searcher: &Searcher, field: Field, term: &str) -> tantivy::Result<bool> {
    Ok(searcher.doc_freq(&Term::from_field_text(field, term))? > 0)
}

fn is_pair(word: &str) -> bool {
    let mut chars = word.chars();
    let mut is_one = || chars.next().is_some_and(|c| words::is_single(c.encode_utf8(&mut [0; 4])));
    is_one() && is_one() && chars.next().is_none()
}
