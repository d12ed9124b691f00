//! The context windows of Gemini CLI's models, as its own table (0.61.0) has them.

/// Sizes that there are.
pub(super) const SIZES: &[u64] = &[SMALL, LARGE];

const SMALL: u64 = 256_000;
const LARGE: u64 = 1_048_576;

/// The window of a model, or of the default one. Every model that the client doesn't know has the large one.
pub(super) fn window_of(model: Option<&str>) -> u64 {
    if model.is_some_and(|model| model.starts_with("gemma-4")) { SMALL } else { LARGE }
}
