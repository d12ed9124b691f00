//! Embeds texts as vectors: a small language model inside the binary, and a file of vectors to search in.
//!
//! [`chunks()`] cuts prose into pieces, [`Embedder`] turns each into a [`Vector`], [`VectorWriter`] appends them to a file and
//! [`VectorFile`] finds the nearest to a question. Which texts there are, what their keys mean and how scores are mixed with
//! those of words is left to the engine. Nothing here is loaded, allocated or read before the first text is embedded.
//!
//! ```
//! use meaning::{Embedder, Key, VectorFile, VectorWriter, chunks};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("vectors");
//! let notes = ["The login page redirects in a loop.", "Orders can be exported as CSV."];
//! let embedder = Embedder::new();
//! let mut writer = VectorWriter::open(&path)?;
//! for (document, note) in (0..).zip(notes) {
//!     let parts: Vec<&str> = chunks(note).map(|range| &note[range]).collect();
//!     let vectors = embedder.embed_all(&parts, 1);
//!     writer.append((0..).zip(&vectors).map(|(part, vector)| (Key { document, part }, vector)))?;
//! }
//! let found = VectorFile::open(&path)?.nearest(&embedder.embed("signing in does not work"), 1, |_| true);
//! assert_eq!(found.hits[0].key.document, 0);
//! # Ok(())
//! # }
//! ```

mod chunks;
mod embedder;
mod error;
mod file;
mod vector;
mod vocabulary;
mod words;

pub use chunks::{Chunks, chunks};
pub use embedder::{Embedder, MODEL};
pub use error::Error;
pub use file::{Hit, Key, Nearest, VectorFile, VectorWriter};
pub use vector::{DIMENSIONS, Vector};
pub use words::{can_read, is_word, pieces_per_word};
