//! An error that another process of tine reported.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};

use crate::advice::Advice;

/// An error as one process of tine reports it to another, with everything that users and programs see of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{message}")]
pub struct ReportedError {
    /// A kind for programs.
    pub kind: &'static str,
    /// The message.
    pub message: String,
    /// The next step for the user.
    pub hint: Option<String>,
}

impl ReportedError {
    /// What another process gets to know of an error.
    pub(crate) fn new(error: &dyn std::error::Error, Advice { kind, hint }: Advice) -> Self {
        ReportedError { kind, message: error.to_string(), hint }
    }

    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        Advice { kind: self.kind, hint: self.hint.clone() }
    }
}

// By hand, because a derived one would borrow the kind from its input.
impl<'de> Deserialize<'de> for ReportedError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Owned {
            kind: String,
            message: String,
            hint: Option<String>,
        }
        let Owned { kind, message, hint } = Owned::deserialize(deserializer)?;
        Ok(ReportedError { kind: interned(kind), message, hint })
    }
}

/// The same text for as long as the process runs. There are only as many as there are kinds of errors.
fn interned(kind: String) -> &'static str {
    static KINDS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    match kinds.iter().find(|known| **known == kind) {
        Some(known) => known,
        None => {
            let kind: &'static str = kind.leak();
            kinds.push(kind);
            kind
        }
    }
}
