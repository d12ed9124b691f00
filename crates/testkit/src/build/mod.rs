//! Synthetic sessions of the agents, written in the format that the real ones wrote when they were recorded.
//!
//! A session is described turn by turn and comes out the same for the same seed: ids, times and all. Claude Code's
//! lines follow 2.1.325 (or 2.1.197), Codex's follow 0.166.0 (paginated) or 0.140.0 (legacy). What the agents put
//! around a conversation, such as system prompts, is there in kind but shorter and in our own words. The real agents
//! resume these files; `tests/real_agents/built.rs` asks them.
//!
//! ```
//! use serde_json::json;
//! use testkit::build::ClaudeSession;
//!
//! let home = tempfile::tempdir().unwrap();
//! let path = ClaudeSession::new("11111111-1111-4111-8111-111111111111")
//!     .cwd("/home/me/app")
//!     .turn(|turn| turn.prompt("What is here?").tool("Bash", json!({"command": "ls"}), "README.md").text("A README."))
//!     .turn(|turn| turn.prompt("Thanks.").text("You are welcome."))
//!     .write(home.path());
//! assert!(path.ends_with("projects/-home-me-app/11111111-1111-4111-8111-111111111111.jsonl"));
//! ```

mod claude;
mod codex;
mod corpus;
mod gemini;
mod opencode;
mod random;
mod turn;
pub mod versions;
mod words;

pub use claude::{ClaudeSession, claude_project_directory};
pub use codex::{CodexSession, Dialect};
pub use corpus::{Corpus, CorpusSession, big_claude_session, big_codex_session};
pub use gemini::{GeminiSession, gemini_project_directory};
pub use opencode::OpenCodeSession;
pub(crate) use random::Clock;
pub use random::Random;
pub use turn::{Step, Tool, Turn};
pub use words::{Words, made_up};

use serde_json::Value;

/// Adds the fields of one object to another, in their order.
fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}
