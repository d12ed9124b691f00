//! Gemini CLI's structured stream: the Agent Client Protocol, `gemini --acp`.
//!
//! `-o stream-json` has no requests for permission: without a terminal, the client denies what it would have to ask.

use crate::chat::AcpAgent;

/// Gemini CLI as an agent that speaks the protocol.
pub(super) static GEMINI: AcpAgent = AcpAgent {
    arguments: &["--acp"],
    model: Some("--model"),
    mode: Some("--approval-mode"),
    modes: &["default", "autoEdit", "plan", "yolo"],
};
