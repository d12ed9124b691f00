//! The context windows of Codex's models, for sessions whose transcript doesn't name it.
//!
//! Codex writes `model_context_window` into `task_started` and `token_count`. These values are what 0.166.0 wrote for
//! its default model on 18 November 2026.

/// Sizes that there are.
pub(super) const SIZES: &[u64] = &[USUAL];

/// The window of a model if Codex did not report one.
pub(super) const USUAL: u64 = 258_400;
