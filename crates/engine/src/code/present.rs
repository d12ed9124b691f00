//! The present working tree as a git tree. Its objects are in a temporary folder, so nothing is added to the
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use diagnostics::OrLog;

use super::Result;
use super::snapshots::{LeftOut, tree_now};
use crate::ctx::Ctx;
use crate::workspace::git::Git;

/// A working tree as it is now.
pub(crate) struct Present {
    /// git, which also sees the temporary objects.
    pub git: Git,
    pub tree: String,
    pub left_out: Vec<LeftOut>,
    folder: PathBuf,
}

impl Present {
    /// Looks at the working tree around a directory.
    pub(crate) fn of(ctx: &Ctx, directory: &Path) -> Result<Self> {
        let git = ctx.git()?;
        let place = git.tree_place(directory).ok_or_else(|| git.no_working_tree(directory))?;
        let (git, folder) = git.with_own_objects(&place.top, &ctx.context().paths.cache.join("code"))?;
        let mut present = Present { git, tree: String::new(), left_out: Vec::new(), folder };
        (present.tree, present.left_out) = tree_now(ctx.context(), ctx.config()?, &present.git, &place)?;
        Ok(present)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).or_log(format_args!("remove {}", self.folder.display()));
    }
}
