//! The real agents talk to the model double; what tine reads of it is held against what the model saw.
//!
//! Needs the feature `real-agents` and the agents that `./test` installs.

mod around;
mod called;
mod claude;
mod codex;
mod fork;
mod killed;
mod launch;
mod mcp;
mod methods;
mod named;
mod panes;
mod qmd;
mod setup;
mod told;
mod typed;
