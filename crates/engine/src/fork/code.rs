//! Which state of the files a fork in a new worktree begins with: that of its last turn, that of now, or a commit.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::{Request, RequestedWorkspace, Where};
use crate::code;
use crate::code::then::{TreeThen, tree_then};
use crate::code::{Certainty, CodeSource, FileVerdict};
use crate::ctx::Ctx;
use crate::fork::{Error, Result};

/// Which files the worktree of a fork begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CodeChoice {
    /// Those of the fork's last turn if it isn't the session's last and they can be restored, otherwise the commit.
    #[default]
    Auto,
    /// Those of the fork's last turn.
    Then,
    /// Those of now, with uncommitted changes.
    Now,
    /// Those of the commit that is checked out.
    None,
}

impl CodeChoice {
    /// What users can choose.
    pub const CHOICES: [CodeChoice; 3] = [CodeChoice::Then, CodeChoice::Now, CodeChoice::None];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            CodeChoice::Auto => "auto",
            CodeChoice::Then => "then",
            CodeChoice::Now => "now",
            CodeChoice::None => "none",
        }
    }
}

/// The files that a fork begins with, as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCode {
    /// The turn after which they were so.
    pub turn: u32,
    /// Whether the user asked for them. Otherwise doubts must be confirmed.
    pub is_chosen: bool,
    pub(crate) tree: Arc<TreeThen>,
}

/// The JSON of the files that a fork begins with.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeView {
    /// The turn after which the files were so.
    pub turn: u32,
    /// The commit that was checked out then, where the worktree begins.
    pub commit: Option<String>,
    /// The same in words.
    pub summary: String,
    /// How many files of the session are certain.
    pub exact: usize,
    /// How many files follow from recorded edits.
    pub consistent: usize,
    /// The files that may have been different.
    pub doubtful: Vec<CodeFile>,
    /// The files of which nothing is known.
    pub unknown: Vec<CodeFile>,
    /// Paths that are not restored: outside the working tree, in other repositories, or not known.
    pub left_out: Vec<PathBuf>,
}

/// A file that is not certain.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeFile {
    /// Its path in the working tree.
    pub path: PathBuf,
    /// Why, such as the command that may have changed it.
    pub why: Option<String>,
}

impl PlannedCode {
    /// Decides which files the fork begins with. `None`: those that are there now.
    pub(super) fn choose(ctx: &Ctx, request: &Request, turns: u32, whole: bool) -> Result<Option<Self>> {
        let is_chosen = request.code == CodeChoice::Then;
        let Where::Worktree { base: None, .. } = request.workspace else {
            return if is_chosen { Err(Error::CodeNeedsWorktree) } else { Ok(None) };
        };
        let is_wanted = match request.code {
            CodeChoice::Then => true,
            CodeChoice::Auto => !whole && !request.carry,
            CodeChoice::Now | CodeChoice::None => false,
        };
        if !is_wanted || turns == 0 {
            return Ok(None);
        }
        let tree = match tree_then(ctx, &request.source, turns) {
            Ok(tree) => tree,
            Err(error) if is_chosen => return Err(error.into()),
            Err(code::Error::NoCode { .. }) => return Ok(None),
            Err(error) => {
                ctx.warn(error.to_string());
                return Ok(None);
            }
        };
        if tree.head.is_none() {
            return match is_chosen {
                true => Err(Error::NoCommitThen { session: request.source.view.label().to_owned(), turn: turns }),
                false => Ok(None),
            };
        }
        Ok(Some(PlannedCode { turn: turns, is_chosen, tree: Arc::new(tree) }))
    }

    /// The files about which there are doubts.
    pub fn doubtful(&self) -> impl Iterator<Item = &FileVerdict> {
        self.tree.files.iter().filter(|file| file.certainty == Certainty::Doubtful)
    }

    /// Whether the user must decide whether the doubts matter.
    pub fn asks(&self) -> bool {
        !self.is_chosen && self.doubtful().next().is_some()
    }

    /// How many files there are of each kind, and why some are doubtful: `tree at turn 7: 14 files exact, 2 consistent, 1
    /// doubtful (`sed -i` in turn 5)`.
    pub fn summary(&self) -> String {
        /// The number of doubts that are shown in full.
        const SHOWN: usize = 3;
        if self.tree.source == CodeSource::Snapshot {
            return format!("tree at turn {}: exact, from a snapshot", self.turn);
        }
        let count = |certainty: Certainty| self.tree.files.iter().filter(|file| file.certainty == certainty).count();
        let mut parts = Vec::new();
        for certainty in Certainty::ALL.into_iter().rev() {
            let (number, word) = (count(certainty), certainty.as_str());
            if number == 0 {
                continue;
            }
            let noun = match (parts.is_empty(), number) {
                (true, 1) => " file",
                (true, _) => " files",
                (false, _) => "",
            };
            let mut text = format!("{number}{noun} {word}");
            if certainty == Certainty::Doubtful {
                let mut reasons: Vec<String> = Vec::new();
                for reason in self.doubtful().filter_map(|file| file.why.clone()) {
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
                let more = reasons.len().saturating_sub(SHOWN);
                reasons.truncate(SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                text.push_str(&format!(" ({}{more})", reasons.join("; ")));
            }
            parts.push(text);
        }
        if parts.is_empty() {
            parts.push("as committed".to_owned());
        }
        format!("tree at turn {}: {}", self.turn, parts.join(", "))
    }

    /// What the user should know before using it.
    pub(super) fn warnings(&self) -> Vec<String> {
        /// The number of paths that are named.
        const NAMED: usize = 3;
        let named = |paths: &mut dyn Iterator<Item = String>| {
            let all: Vec<String> = paths.collect();
            let shown = all[..all.len().min(NAMED)].join(", ");
            if all.len() > NAMED { format!("{shown} and {} more", all.len() - NAMED) } else { shown }
        };
        let mut warnings = Vec::new();
        for file in self.doubtful().take(NAMED) {
            let path = transcript::text::one_line(&file.path.to_string_lossy());
            let doubt = file.why.as_deref().unwrap_or_default();
            warnings.push(format!("`{path}` may have been different after turn {}: {doubt}", self.turn));
        }
        if !self.tree.left_out.is_empty() {
            let mut paths =
                self.tree.left_out.iter().map(|file| transcript::text::one_line(&file.path.to_string_lossy()));
            warnings.push(format!("the fork lacks files whose content then is unknown: {}", named(&mut paths)));
        }
        warnings
    }

    /// Its JSON.
    pub fn view(&self) -> CodeView {
        let of = |certainty: Certainty| -> Vec<CodeFile> {
            let files = self.tree.files.iter().filter(|file| file.certainty == certainty);
            files.map(|file| CodeFile { path: file.path.clone(), why: file.why.clone() }).collect()
        };
        let left_out = self.tree.left_out.iter();
        CodeView {
            turn: self.turn,
            commit: self.tree.head.clone(),
            summary: self.summary(),
            exact: of(Certainty::Exact).len(),
            consistent: of(Certainty::Consistent).len(),
            doubtful: of(Certainty::Doubtful),
            unknown: of(Certainty::Unknown),
            left_out: left_out.map(|file| file.path.clone()).collect(),
        }
    }
}

impl RequestedWorkspace {
    /// The commit that a worktree begins at, if it isn't the one that is checked out.
    pub(super) fn base(&self) -> Option<&str> {
        let then = self.code.as_ref().and_then(|code| code.tree.head.as_deref());
        match &self.workspace {
            Where::Worktree { base, .. } => then.or(base.as_deref()),
            Where::Same | Where::Directory(_) | Where::Copy(_) => None,
        }
    }
}
