//! The real agents against the model double: what the rest of the tests takes for granted about both.
//!
//! Each case runs for every pinned version. The tests need the feature `real-agents`, which `./test` enables, and the
//! agents that it installed; without those they fail and say so.

mod built;
mod claude;
mod claude_interactive;
mod codex;
mod codex_interactive;
