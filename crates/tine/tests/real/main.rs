//! The real agents talk to the model double; what tine reads of it is held against what the model saw.
//!
//! Needs the feature `real-agents` and the agents that `./test` installs.

mod chat;
mod claude;
mod code_recorded;
mod code_then;
mod codex;
mod conversation;
mod fork;
mod fork_and_open;
mod fork_killed;
mod fork_methods;
mod fork_with_hooks;
mod gemini;
mod launch;
mod mcp;
mod mcp_from_agent;
mod names;
mod old_versions;
mod opencode;
mod pane_input;
mod panes;
mod qmd;
mod setup;
mod translate;
mod workbench;
