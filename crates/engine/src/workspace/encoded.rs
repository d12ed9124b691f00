//! Paths as plain text. Paths are bytes, and JSON and trailers are text, so all but the plain characters of a path are
//! percent-encoded.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that is stored as plain text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodedPath(pub PathBuf);

impl Serialize for EncodedPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for EncodedPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text).map(EncodedPath).ok_or_else(|| serde::de::Error::custom("invalid path"))
    }
}

/// A path as plain text without spaces.
pub(crate) fn encode(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    path.as_os_str().as_encoded_bytes().iter().fold(String::new(), |mut text, byte| {
        match is_plain(*byte) {
            true => text.push(*byte as char),
            false => write!(text, "%{byte:02x}").expect("text grows"),
        }
        text
    })
}

/// The path in such a text.
pub(crate) fn decode(text: &str) -> Option<PathBuf> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        bytes.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    Some(to_path(&bytes))
}

#[cfg(unix)]
fn to_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn to_path(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}
