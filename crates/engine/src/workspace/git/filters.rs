//! Looking at a working tree without running its filters. `git status` runs `filter.NAME.clean` for every file that may
//! have changed, and a repository can configure any program there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::status::to_path;
use super::{Git, finish, guard};

impl Git {
    /// Whether an untrusted repository has uncommitted changes. Filters configured by the repository don't run; those
    /// of the user and the system do. If a file with such a filter was touched, it may count as changed.
    pub(crate) fn is_dirty_unfiltered(&self, directory: &Path) -> bool {
        let mut command = self.command(directory);
        guard(&mut command);
        self.disarm(directory, &mut command);
        // Submodules have their own filters, so each is checked separately.
        command.args(["status", "--porcelain", "--ignore-submodules=dirty"]);
        match finish(&mut command) {
            Ok(changes) if changes.is_empty() => self.has_dirty_submodule(directory),
            changes => changes.is_ok(),
        }
    }

    /// Keeps a command from running the filters that the repository itself configures, and those for large files from the
    /// network.
    pub(super) fn disarm(&self, directory: &Path, command: &mut Command) {
        for (number, (key, value)) in self.own_filters(directory).iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
            command.env("GIT_CONFIG_COUNT", (number + 1).to_string());
        }
        command.env("GIT_LFS_SKIP_SMUDGE", "1");
    }

    fn has_dirty_submodule(&self, directory: &Path) -> bool {
        let Some(top) = self.top(directory) else { return false };
        let entries = self.output(&top, ["ls-files", "-z", "--stage"]).unwrap_or_default();
        let submodules = entries.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let paths = submodules.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let mut trees = paths.map(|path| top.join(to_path(path)));
        trees.any(|tree| tree.join(".git").symlink_metadata().is_ok() && self.is_dirty_unfiltered(&tree))
    }

    /// The programs that the repository itself names as filters, each with what takes its place: what the user or the
    /// system configures under the same name, or nothing.
    fn own_filters(&self, directory: &Path) -> BTreeMap<String, String> {
        let words = ["config", "-z", "--show-scope", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"];
        let list = self.output(directory, words).unwrap_or_default();
        let mut fields = list.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let (mut own, mut others) = (Vec::new(), BTreeMap::new());
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            match &*scope {
                "system" | "global" | "command" => drop(others.insert(key.to_owned(), value.to_owned())),
                _ => own.push(key.to_owned()),
            }
        }
        let instead = |key: String| {
            let nothing = if key.ends_with(".required") { "false" } else { "" };
            let value = others.get(&key).cloned().unwrap_or_else(|| nothing.to_owned());
            (key, value)
        };
        own.into_iter().map(instead).collect()
    }
}
