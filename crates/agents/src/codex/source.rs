//! Opening a rollout: plain, or compressed as Codex leaves those that it has not used for long.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::files::open_regular;
use crate::lines::LineReader;

/// The bytes of a rollout. Offsets always count in the plain text.
pub(super) enum Source {
    Plain(File),
    Compressed(Box<StreamingDecoder<io::BufReader<File>, FrameDecoder>>),
}

/// How much of an oversized line is read to find out its type.
const BEGINNING: u64 = 4096;

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        if !is_compressed(path) {
            return Ok(Source::Plain(file));
        }
        let decoder = StreamingDecoder::new(io::BufReader::new(file)).map_err(io::Error::other)?;
        Ok(Source::Compressed(Box::new(decoder)))
    }

    /// The bytes between two offsets. A compressed file is read from its beginning for that.
    pub(super) fn range(path: &Path, from: u64, to: u64) -> io::Result<io::Take<Source>> {
        let mut source = Source::open(path)?;
        match &mut source {
            Source::Plain(file) => file.seek(SeekFrom::Start(from))?,
            Source::Compressed(decoder) => io::copy(&mut decoder.take(from), &mut io::sink())?,
        };
        Ok(source.take(to - from))
    }

    /// The lines up to the offset `to`.
    pub(super) fn lines(path: &Path, to: Option<u64>) -> io::Result<LineReader<Source>> {
        Source::lines_from(path, 0, to)
    }

    /// The lines between two offsets; a compressed file is always read from its beginning.
    pub(super) fn lines_from(path: &Path, from: u64, to: Option<u64>) -> io::Result<LineReader<Source>> {
        let mut source = Source::open(path)?;
        let from = match &mut source {
            Source::Plain(file) if from > 0 => file.seek(SeekFrom::Start(from))?,
            _ => 0,
        };
        Ok(LineReader::new(source, from, to))
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::Plain(file) => file.read(buffer),
            Source::Compressed(decoder) => decoder.read(buffer),
        }
    }
}

/// The beginning of a line that is too long to be held. Nothing for a compressed file, which cannot be read from
/// the middle.
pub(super) fn beginning_of_line(path: &Path, offset: u64) -> Option<Vec<u8>> {
    if is_compressed(path) {
        return None;
    }
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    Some(beginning)
}

pub(super) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}
