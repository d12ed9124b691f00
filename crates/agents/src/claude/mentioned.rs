//! Finds the side files of a session that belong to a fork at an earlier turn: those that it mentions.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use transcript::SessionId;

use super::subagents::{First, Meta};
use crate::files::open_regular;

/// A file, and the words by one of which it is mentioned.
struct Candidate {
    file: PathBuf,
    words: Vec<String>,
}

/// Leaves out of the `files` below `folder` what neither `transcript` mentions nor a subagent that stays. They are those of
/// `session`, if not of others as well.
pub(super) fn mentioned(
    folder: &Path,
    files: Vec<PathBuf>,
    session: &SessionId,
    transcript: &Path,
) -> io::Result<Vec<PathBuf>> {
    let candidate = |file: PathBuf| Candidate { words: words(folder, &file, session), file };
    let mut rest: Vec<Candidate> = files.into_iter().map(candidate).collect();
    let mut unread = vec![transcript.to_owned()];
    let mut stay = Vec::new();
    while let (Some(text), false) = (unread.pop(), rest.is_empty()) {
        let words: BTreeSet<&String> = rest.iter().flat_map(|candidate| &candidate.words).collect();
        let words: Vec<String> = words.into_iter().cloned().collect();
        let finder = AhoCorasick::new(&words).map_err(io::Error::other)?;
        let mut found = HashSet::new();
        for mention in finder.stream_find_iter(open_regular(&text)?) {
            found.insert(words[mention?.pattern().as_usize()].as_str());
        }
        let is_found = |candidate: &mut Candidate| candidate.words.iter().any(|word| found.contains(word.as_str()));
        for candidate in rest.extract_if(.., is_found) {
            if is_transcript(&candidate.file) {
                unread.push(folder.join(&candidate.file));
            }
            stay.push(candidate.file);
        }
    }
    stay.sort();
    Ok(stay)
}

/// A subagent is mentioned by its id, by the call that started it, or, where no meta file names that, by what it was asked;
/// anything else by its name.
fn words(folder: &Path, file: &Path, session: &SessionId) -> Vec<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".meta.json").or_else(|| name.strip_suffix(".jsonl"));
    let Some(id) = stem.and_then(|stem| stem.strip_prefix("agent-")) else {
        // Checkpoints are named in separate records, and one name may be a prefix of another.
        return vec![if name.contains("@v") { format!("{name}\"") } else { name.into_owned() }];
    };
    let meta = Meta::read(&folder.join(file).with_file_name(format!("agent-{id}.meta.json")));
    let call = meta.and_then(|meta| meta.tool_use_id);
    let asked = || {
        let first = First::read(&folder.join(file))?;
        first.quoted.filter(|_| first.session.as_deref() == Some(session.as_str()))
    };
    let call = call.or_else(asked);
    [id.to_owned()].into_iter().chain(call).filter(|word| !word.is_empty()).collect()
}

fn is_transcript(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "jsonl")
}
