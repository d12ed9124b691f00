//! What can be wrong with the configuration.

use std::path::PathBuf;

use transcript::text::one_line;

use crate::advice::{Advice, FileError, wraps};

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is not valid.
    #[error("{}, line {line}: {}", .path.display(), one_line(.message))]
    Invalid {
        /// The configuration file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// The configuration has no such profile.
    #[error("profile `{}` not found", one_line(.name))]
    NoProfile {
        /// The requested name.
        name: String,
        /// The profiles that exist.
        known: Vec<String>,
        /// The configuration file.
        file: PathBuf,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(FileError),
}

wraps!(File);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Invalid { .. } => {
                Advice::new("bad_config", "correct the line or remove it; every setting has a default")
            }
            Error::NoProfile { known, file, .. } => Advice::new(
                "no_profile",
                match known.is_empty() {
                    true => format!("define it as `[profiles.NAME]` in {}", file.display()),
                    false => format!("{} defines {}", file.display(), known.join(", ")),
                },
            ),
            passed_on!() => self.passed_on(),
        }
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let file = || PathBuf::from("/home/kim/.config/tine/config.toml");
    let message = || "unknown variant `al`, expected `ask` or `allow`".to_owned();
    crate::advice::samples![
        Invalid { path: file(), line: 7, message: message() },
        NoProfile { name: "fast".into(), known: Vec::new(), file: file() },
        NoProfile { name: "fast".into(), known: vec!["cheap".into(), "slow".into()], file: file() };
        wraps File
    ]
}
