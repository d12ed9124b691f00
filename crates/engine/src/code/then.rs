//! The files of a working tree at the end of a turn, as what differs from the commit that was checked out then.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::rebuild::rebuild;
use super::snapshots::{self, Snapshot};
use super::{CodeAt, CodeSource, FileVerdict, LeftOut};
use crate::advice::FileError;
use crate::code::{Error, Result};
use crate::ctx::Ctx;
use crate::sessions::session::Session;
use crate::workspace::directory::stays_inside;
use crate::workspace::git::Git;
use crate::workspace::git::objects::{BlobReader, Mode, TreeChange, TreeEntry};

/// A working tree as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeThen {
    /// The top of the working tree, or the directory of a session outside any repository.
    pub repository: PathBuf,
    /// The commit that was checked out, if there was one.
    pub head: Option<String>,
    pub source: CodeSource,
    /// How certain files are; see [`CodeAt::files`].
    pub files: Vec<FileVerdict>,
    /// The files that differ from the commit.
    pub changed: Vec<FileThen>,
    pub left_out: Vec<LeftOut>,
}

/// A file that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileThen {
    /// Its path in the working tree.
    pub path: PathBuf,
    /// What it was; `None` if there was no such file.
    pub then: Option<(Mode, Held)>,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Bytes(Vec<u8>),
    /// A blob of the repository.
    Object(String),
}

/// The working tree at the end of a turn, from a snapshot if there is one. Nothing is written.
pub(crate) fn tree_then(ctx: &Ctx, session: &Session, turn: u32) -> Result<TreeThen> {
    let Some(found) = snapshots::find(ctx, session, turn)? else { return rebuild(ctx, session, turn) };
    let Snapshot { repository, tree, head, left_out, .. } = found;
    let git = ctx.git()?;
    let mut changed = Vec::new();
    if let Some(before) = head.as_deref().and_then(|head| git.tree_of(&repository, head)) {
        for difference in git.tree_changes(&repository, &before, &tree)? {
            let then = difference.after.map(|(mode, object)| (mode, Held::Object(object)));
            // Submodules come with their commits.
            if !matches!(then, Some((Mode::Submodule, _))) {
                changed.push(FileThen { path: difference.path, then });
            }
        }
    }
    Ok(TreeThen { repository, head, source: CodeSource::Snapshot, files: Vec::new(), changed, left_out })
}

impl TreeThen {
    /// Makes the files of `tree`, which is at the commit, what they were, and reads them back.
    pub(crate) fn lay_over(&self, git: &Git, tree: &Path) -> Result<()> {
        let mut blobs = git.blob_reader(&self.repository)?;
        // Deletions first: a file may be where a folder belongs.
        let (deleted, written): (Vec<&FileThen>, Vec<&FileThen>) =
            self.changed.iter().partition(|file| file.then.is_none());
        for file in deleted.into_iter().chain(written) {
            if !stays_inside(tree, &file.path) {
                return Err(Error::NotRestored(file.path.clone()));
            }
            let path = tree.join(&file.path);
            let bytes = file.bytes(&mut blobs)?;
            let mode = file.then.as_ref().map(|(mode, _)| *mode);
            put(tree, &file.path, mode, bytes.as_deref())
                .map_err(|source| FileError::Write { path: path.clone(), source })?;
            if !is_same(&path, bytes.as_deref()) {
                return Err(Error::NotRestored(file.path.clone()));
            }
        }
        Ok(())
    }

    /// Writes it into the repository.
    pub(super) fn write(self, ctx: &Ctx, session: &Session, turn: u32) -> Result<CodeAt> {
        let missing = || Error::NoCode { session: session.view.label().to_owned(), turn };
        let git = ctx.git()?;
        let TreeThen { repository, head, source, files, changed, left_out } = self;
        if !git.is_in_repository(&repository) {
            return Err(missing());
        }
        let base = head.as_deref().and_then(|head| git.tree_of(&repository, head));
        let mut writer = git.object_writer(&repository, &ctx.context().paths.cache.join("objects"))?;
        let mut blobs = Vec::new();
        for file in &changed {
            if let Some((_, Held::Bytes(bytes))) = &file.then {
                blobs.push(writer.blob(bytes)?);
            }
        }
        let mut ids = writer.ids(&blobs)?.into_iter();
        let changes: Vec<TreeChange> = changed
            .into_iter()
            .filter_map(|FileThen { path, then }| match then {
                None => Some(TreeChange::Remove(path)),
                Some((mode, Held::Bytes(_))) => Some(TreeChange::Set(TreeEntry { path, mode, object: ids.next()? })),
                Some((mode, Held::Object(object))) => Some(TreeChange::Set(TreeEntry { path, mode, object })),
            })
            .collect();
        let tree = writer.tree(base.as_deref(), &changes)?;
        writer.finish()?;
        Ok(CodeAt { repository, tree, head, source, files, left_out })
    }
}

impl FileThen {
    fn bytes(&self, blobs: &mut BlobReader) -> Result<Option<Vec<u8>>> {
        match &self.then {
            None => Ok(None),
            Some((_, Held::Bytes(bytes))) => Ok(Some(bytes.clone())),
            Some((_, Held::Object(object))) => match blobs.read(object)? {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(Error::NotRestored(self.path.clone())),
            },
        }
    }
}

/// Whether a path holds what it should.
fn is_same(path: &Path, bytes: Option<&[u8]>) -> bool {
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    let found = match is_link {
        true => fs::read_link(path).map(|target| target.as_os_str().as_encoded_bytes().to_vec()),
        false => fs::read(path),
    };
    match (bytes, found) {
        (Some(bytes), Ok(found)) => *bytes == found,
        (None, Err(error)) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        (None, Ok(_)) | (Some(_), Err(_)) => false,
    }
}

fn put(tree: &Path, inside: &Path, mode: Option<Mode>, bytes: Option<&[u8]>) -> io::Result<()> {
    let path = tree.join(inside);
    match fs::remove_file(&path) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(error);
        }
        _ => {}
    }
    let Some(bytes) = bytes else {
        for folder in inside.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            // A folder that holds something else stays.
            if fs::remove_dir(tree.join(folder)).is_err() {
                break;
            }
        }
        return Ok(());
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    #[cfg(unix)]
    if mode == Some(Mode::Symlink) {
        use std::os::unix::ffi::OsStrExt;
        return std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(bytes), &path);
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if mode == Some(Mode::Executable) { 0o777 } else { 0o666 });
    options.open(&path)?.write_all(bytes)
}
