//! `tine diff`: what changed between two turns, or between a turn and now. git compares the trees and shows the result;
//! no program that the repository configures runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::present::Present;
use super::snapshots::LeftOut;
use super::{CodeAt, CodeSource, Error, Result};
use crate::ctx::Ctx;
use crate::workspace::git::Git;

/// Two trees to compare.
pub struct CodeDiff {
    git: Git,
    repository: PathBuf,
    from: CodeAt,
    /// `None` for the present working tree.
    to: Option<CodeAt>,
    trees: (String, String),
    left_out: BTreeSet<PathBuf>,
    /// Keeps the objects of the present tree.
    _present: Option<Present>,
}

/// How a comparison is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// Every changed line.
    Patch,
    /// How many lines changed in which file.
    Stat,
}

/// A comparison as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffView {
    from: DiffSide,
    /// Nothing for the present working tree.
    to: Option<DiffSide>,
    files: Vec<ChangedFile>,
    added: u64,
    removed: u64,
    /// Files that could not be compared, because one of the sides lacks them.
    left_out: Vec<String>,
}

/// One side of a comparison.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiffSide {
    repository: PathBuf,
    tree: String,
    head: Option<String>,
    source: CodeSource,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// Its path before, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Added lines; nothing for a file that isn't text.
    pub added: Option<u64>,
    /// Removed lines.
    pub removed: Option<u64>,
}

/// Prepares a comparison.
pub(crate) fn diff(ctx: &Ctx, from: CodeAt, to: Option<CodeAt>) -> Result<CodeDiff> {
    let repository = from.repository_now(ctx)?;
    let mut left_out: BTreeSet<PathBuf> = from.left_out.iter().map(|left| left.path.clone()).collect();
    let mut add = |more: &[LeftOut]| left_out.extend(more.iter().map(|left| left.path.clone()));
    let (git, tree, present) = match &to {
        Some(to) => {
            let git = ctx.git()?;
            if git.tree_of(&repository, &to.tree).is_none() {
                return Err(Error::OtherRepository { one: repository, other: to.repository.clone() });
            }
            add(&to.left_out);
            (git, to.tree.clone(), None)
        }
        None => {
            let present = Present::of(ctx, &repository)?;
            add(&present.left_out);
            (present.git.clone(), present.tree.clone(), Some(present))
        }
    };
    let trees = (from.tree.clone(), tree);
    Ok(CodeDiff { git, repository, from, to, trees, left_out, _present: present })
}

impl CodeDiff {
    /// The command that prints the comparison of `paths`, or of everything, to its standard output.
    pub fn command(&self, form: DiffForm, color: bool, width: Option<usize>, paths: &[PathBuf]) -> Command {
        let mut options: Vec<OsString> = Vec::new();
        options.push(if color { "--color=always" } else { "--color=never" }.into());
        match form {
            DiffForm::Patch => options.push("--patch".into()),
            DiffForm::Stat => {
                options.push(width.map_or("--stat".to_owned(), |width| format!("--stat={width}")).into());
            }
        }
        self.diff_command(&options, paths)
    }

    /// Files that cannot be compared, because one of the sides lacks them.
    pub fn left_out(&self) -> impl Iterator<Item = &Path> {
        self.left_out.iter().map(PathBuf::as_path)
    }

    /// The differing files among `paths`, or all.
    pub fn view(&self, paths: &[PathBuf]) -> Result<DiffView> {
        let mut command = self.diff_command(&["--numstat".into(), "-z".into()], paths);
        let list = Git::finish(&mut command, &self.repository)?;
        let files = changed_files(&list);
        let side = |code: &CodeAt| DiffSide {
            repository: code.repository.clone(),
            tree: code.tree.clone(),
            head: code.head.clone(),
            source: code.source,
        };
        Ok(DiffView {
            from: side(&self.from),
            to: self.to.as_ref().map(side),
            added: files.iter().filter_map(|file| file.added).sum(),
            removed: files.iter().filter_map(|file| file.removed).sum(),
            files,
            left_out: self.left_out.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        })
    }

    fn diff_command(&self, options: &[OsString], paths: &[PathBuf]) -> Command {
        let mut command = self.git.query_command(&self.repository);
        command.args(["diff", "--no-ext-diff", "--no-textconv", "--submodule=short", "--find-renames"]);
        command.args(options).args([&self.trees.0, &self.trees.1]).arg("--");
        let spec = |magic: &str, path: &Path| {
            let mut spec = OsString::from(format!(":({magic})"));
            spec.push(path);
            spec
        };
        command.args(paths.iter().map(|path| spec("top,literal", path)));
        command.args(self.left_out.iter().map(|path| spec("top,literal,exclude", path)));
        command
    }
}

/// Parses git's list of numbers.
fn changed_files(list: &[u8]) -> Vec<ChangedFile> {
    let mut fields = list.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files = Vec::new();
    while let Some(record) = fields.next() {
        let mut words = record.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (words.next(), words.next(), words.next()) else { continue };
        let (added, removed) = (added.parse().ok(), removed.parse().ok());
        let (before, path) = match path.is_empty() {
            false => (None, path.to_owned()),
            // A rename has both names after the numbers.
            true => {
                let (Some(before), Some(path)) = (fields.next(), fields.next()) else { break };
                (Some(before.into_owned()), path.into_owned())
            }
        };
        files.push(ChangedFile { path, before, added, removed });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_renames_and_binary_files() {
        let list = b"1\t2\ta b\x00-\t-\tpicture\x000\t3\t\x00old\x00new\x00";
        let file = |path: &str, before: Option<&str>, added, removed| ChangedFile {
            path: path.into(),
            before: before.map(str::to_owned),
            added,
            removed,
        };
        let expected = [
            file("a b", None, Some(1), Some(2)),
            file("picture", None, None, None),
            file("new", Some("old"), Some(0), Some(3)),
        ];
        assert_eq!(changed_files(list), expected);
    }
}
