//! The context windows of Claude Code's models.
//!
//! Transcripts don't contain the window: `cost-state` has a `modelUsage` without it, and the model of a record lacks
//! the `[1m]` suffix. These values are the `contextWindow` that 2.1.325 reported for each model in the `result` of a
//! headless run on 18 November 2026. 2.1.197 has 200,000 for every model without `[1m]`, but its default model has the
//! suffix.

/// Sizes that there are.
pub(super) const SIZES: &[u64] = &[SMALL, LARGE];

const SMALL: u64 = 200_000;
const LARGE: u64 = 1_000_000;

/// Models with the small window. Every other one, also one that the client doesn't know, has the large window; `opus-4-1`
/// and older ones are replaced by the newest.
const WITH_SMALL: &[&str] = &["claude-3", "claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4", "claude-haiku-4"];

/// The window of a model, or of the default one.
pub(super) fn window_of(model: Option<&str>) -> u64 {
    let is_small = |model: &str| !model.ends_with("[1m]") && WITH_SMALL.iter().any(|small| model.starts_with(small));
    if model.is_some_and(is_small) { SMALL } else { LARGE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_the_windows_that_the_client_reported() {
        let check = |model: &str, expected: u64| assert_eq!(window_of(Some(model)), expected, "{model}");
        for model in ["claude-opus-5-5", "claude-sonnet-5", "claude-haiku-5-5", "claude-opus-4-8", "claude-opus-4-7"] {
            check(model, 1_000_000);
        }
        for model in ["claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-3-7-sonnet-20250219"]
        {
            check(model, 200_000);
        }
        check("claude-sonnet-4-5[1m]", 1_000_000);
        check("some-model", 1_000_000);
        assert_eq!(window_of(None), 1_000_000);
    }
}
