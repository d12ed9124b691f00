//! Refs outside the branches and tags, which tine keeps for itself.

use std::path::Path;

use super::Git;
use crate::workspace::Result;

/// A ref that points to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitRef {
    /// Its full name.
    pub name: String,
    pub commit: String,
    pub tree: String,
    /// The time of the commit, in seconds since 1970.
    pub committed: i64,
    /// The commit's message.
    pub message: String,
}

impl Git {
    /// The refs that match a pattern, in which `*` stands for one part of a name or a piece of it.
    pub(crate) fn commit_refs(&self, directory: &Path, pattern: &str) -> Result<Vec<CommitRef>> {
        let fields = ["refname", "objectname", "tree", "committerdate:unix", "contents"];
        let format = fields.map(|field| format!("%({field})%00")).concat();
        let words = ["for-each-ref", &format!("--format={format}"), "--", pattern];
        let list = self.output(directory, words).map_err(Self::failed(directory))?;
        let list = String::from_utf8_lossy(&list);
        let mut fields = list.split('\0').map(|field| field.strip_prefix('\n').unwrap_or(field));
        let mut refs = Vec::new();
        while let (Some(name), Some(commit), Some(tree), Some(time), Some(message)) =
            (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
        {
            // Whatever else a ref points to has no tree.
            let Ok(committed) = time.parse() else { continue };
            let [name, commit, tree, message] = [name, commit, tree, message].map(str::to_owned);
            refs.push(CommitRef { name, commit, tree, committed, message });
        }
        Ok(refs)
    }
}
