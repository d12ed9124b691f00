//! Submodules in a new worktree. They are made from those that the source has on disk, so no network is needed, and no
//! address that a repository names is ever asked.

use std::fs;
use std::path::{Path, PathBuf};

use super::Git;
use super::status::to_path;
use crate::workspace::Result;
use crate::workspace::directory::stays_inside;

impl Git {
    /// Makes in `to` the submodules that are there in `from`, with theirs. With `carry`, they are brought to the same
    /// commit and changes as well. Returns what was left out, in words.
    pub(crate) fn copy_submodules(&self, from: &Path, to: &Path, carry: bool) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for path in self.submodules(to)? {
            let (source, target) = (from.join(&path), to.join(&path));
            if !stays_inside(to, &path) || source.join(".git").symlink_metadata().is_err() {
                continue;
            }
            if target.join(".git").symlink_metadata().is_err()
                && let Err(message) = self.make_submodule(from, to, &path)
            {
                let path = transcript::text::one_line(&path.to_string_lossy());
                told.push(format!("the submodule `{path}` was not created: {}", transcript::text::one_line(&message)));
                continue;
            }
            if carry {
                self.follow_head(&source, &target)?;
                told.extend(self.carry(&source, &target)?);
            } else {
                told.extend(self.copy_submodules(&source, &target, false)?);
            }
        }
        Ok(told)
    }

    /// The paths of all submodules.
    fn submodules(&self, tree: &Path) -> Result<Vec<PathBuf>> {
        if fs::symlink_metadata(tree.join(".gitmodules")).is_err() {
            return Ok(Vec::new());
        }
        let list = self.output(tree, ["ls-files", "-z", "--stage"]).map_err(Self::failed(tree))?;
        let submodules = list.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        Ok(submodules.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1)).map(to_path).collect())
    }

    fn make_submodule(&self, from: &Path, to: &Path, path: &Path) -> std::result::Result<(), String> {
        let name = self.submodule_name(to, path).ok_or("it is not in .gitmodules")?;
        let (source, target) = (from.join(path), to.join(path));
        let local = self.own_folder(&source).map_err(|error| error.to_string())?;
        // Local repositories are allowed for this one call, in which the only address is the one that is given here.
        let address = format!("submodule.{name}.url={}", local.display());
        if name.contains('=') || name.contains('\n') {
            return Err("git does not accept its name".into());
        }
        let mut arguments: Vec<&std::ffi::OsStr> = Vec::new();
        for option in ["-c", "protocol.file.allow=always", "-c", &address, "-c", "submodule.recurse=false"] {
            arguments.push(option.as_ref());
        }
        for word in ["submodule", "--quiet", "update", "--init", "--checkout", "--"] {
            arguments.push(word.as_ref());
        }
        arguments.push(path.as_ref());
        self.change(to, arguments)?;
        // It fetches from where the source's does.
        if let Ok(origin) = self.run(&source, ["config", "--get", "remote.origin.url"]) {
            self.change(&target, ["config", "remote.origin.url", &origin])?;
        }
        Ok(())
    }

    fn submodule_name(&self, tree: &Path, path: &Path) -> Option<String> {
        let arguments = ["config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"];
        let list = self.output(tree, arguments).ok()?;
        let mut pairs = list.split(|byte| *byte == 0).filter_map(|pair| {
            let mut parts = pair.splitn(2, |byte| *byte == b'\n');
            Some((parts.next()?, to_path(parts.next()?)))
        });
        let (key, _) = pairs.find(|(_, known)| known == path)?;
        let name = key.strip_prefix(b"submodule.")?.strip_suffix(b".path")?;
        String::from_utf8(name.to_owned()).ok()
    }

    /// Checks out the commit that another clone of a submodule is at.
    fn follow_head(&self, from: &Path, to: &Path) -> Result<()> {
        let head = self.head(from)?;
        if self.head(to).is_ok_and(|own| own == head) {
            return Ok(());
        }
        if self.run(to, ["cat-file", "-e", &head]).is_err() {
            let local = self.own_folder(from)?;
            let arguments =
                ["fetch".as_ref(), "--quiet".as_ref(), "--no-tags".as_ref(), local.as_os_str(), head.as_ref()];
            self.change(to, arguments).map_err(Self::failed(to))?;
        }
        self.change(to, ["checkout", "--quiet", "--detach", &head]).map(|_| ()).map_err(Self::failed(to))
    }
}
