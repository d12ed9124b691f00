//! The real agents: where the `./test` script installed them, and how tests drive them.
//!
//! The versions are pinned by `crates/testkit/agents/package-lock.json`. This module finds and starts them; it never
//! installs anything.

mod claude;
mod codex;
mod gemini;
mod install;
mod opencode;

pub use claude::ClaudeDriver;
pub use codex::CodexDriver;
pub(crate) use codex::thread_id;
pub use gemini::GeminiDriver;
pub use install::{cache_directory, installed, installed_mcp_client, installed_qmd};
pub use opencode::OpenCodeDriver;

/// The versions of Claude Code that tests drive, the primary one first.
pub const CLAUDE_VERSIONS: [&str; 2] = ["2.1.325", "2.1.197"];

/// The versions of Codex that tests drive, the primary one first.
pub const CODEX_VERSIONS: [&str; 2] = ["0.166.0", "0.140.0"];

/// The versions of Gemini CLI that tests drive, the primary one first.
pub const GEMINI_VERSIONS: [&str; 1] = ["0.61.0"];

/// The versions of OpenCode that tests drive, the primary one first.
pub const OPENCODE_VERSIONS: [&str; 1] = ["1.18.33"];
