//! Finds out which session wrote a line.

use std::path::PathBuf;

use engine::Quiet;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::mcp::tool::{Arguments, Call, CallError, QUOTED, ToolEffect};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct BlameLine {
    /// Absolute path of a file
    file: PathBuf,
    /// Number of a line, from 1. Leave it out for the whole file
    #[schemars(range(min = 1))]
    line: Option<usize>,
}

impl Arguments for BlameLine {
    const NAME: &'static str = "blame_line";
    const TITLE: &'static str = "Find who wrote a line";
    const DESCRIPTION: &'static str = "Returns the session and the turn that wrote a line of a file, its prompt, \
        and the command that forks the session there. A line that no session recorded has no author. \
        Example: {\"file\": \"/work/app/src/auth.rs\", \"line\": 12}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        /// The number of lines of a whole file that are returned.
        const LONGEST: usize = 2_000;
        if !self.file.is_absolute() {
            return Err(CallError::argument("file", "must be an absolute path"));
        }
        let mut blame = call.tine.blame(&self.file, self.line, &Quiet)?;
        if let Some(line) = self.line.filter(|_| blame.lines.is_empty()) {
            return Err(CallError::argument("line", format!("the file has no line {line}")));
        }
        blame.lines.truncate(LONGEST);
        let mut told = json!(blame);
        told["note"] = json!(QUOTED);
        Ok(told)
    }
}
