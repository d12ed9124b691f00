//! The context windows of Claude Code's models.
//!
//! Transcripts don't contain the window: `cost-state` has a `modelUsage` without it, and the model of a record lacks
//! the `[1m]` suffix. These values are the `contextWindow` that 2.1.325 reported for each model in the `result` of a
//! headless run on 18 November 2026. 2.1.197 has 200,000 for every model without `[1m]`. Its default model for new
//! sessions has the suffix, but resumed sessions lose it.

/// Sizes that there are.
pub(super) const SIZES: &[u64] = &[SMALL, LARGE];

const SMALL: u64 = 200_000;
const LARGE: u64 = 1_000_000;

/// Models with the small window. Every other one, also one that the client doesn't know, has the large window; `opus-4-1`
/// and older ones are replaced by the newest.
const WITH_SMALL: &[&str] = &["claude-3", "claude-opus-4-5", "claude-opus-4-6", "claude-sonnet-4", "claude-haiku-4"];

/// The last version that is known to have the small window for every model that isn't chosen with `[1m]`.
const LAST_SMALL: [u32; 3] = [2, 1, 197];

/// The window of a model in a version, or of the default one.
pub(super) fn window_of(model: Option<&str>, version: Option<&str>) -> u64 {
    let is_old = version.and_then(numbers).is_some_and(|version| version <= LAST_SMALL);
    let has_small = |model: &str| is_old || WITH_SMALL.iter().any(|small| model.starts_with(small));
    let is_small = |model: &str| !model.ends_with("[1m]") && has_small(model);
    if model.is_some_and(is_small) { SMALL } else { LARGE }
}

/// Whether a version gives the model the same instructions in every directory, so that a fork in another one can use what
/// the provider has in its cache. Found by experiment.
pub(super) fn has_one_prompt(version: Option<&str>) -> bool {
    version.and_then(numbers).is_some_and(|version| version > LAST_SMALL)
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut numbers = version.splitn(3, '.').map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_the_windows_that_the_client_reported() {
        let check = |model: &str, expected: u64| {
            assert_eq!(window_of(Some(model), Some("2.1.325")), expected, "{model}");
            assert_eq!(window_of(Some(model), None), expected, "{model}");
        };
        for model in ["claude-opus-5-5", "claude-sonnet-5", "claude-haiku-5-5", "claude-opus-4-8", "claude-opus-4-7"] {
            check(model, 1_000_000);
        }
        for model in ["claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-3-7-sonnet-20250219"]
        {
            check(model, 200_000);
        }
        check("claude-sonnet-4-5[1m]", 1_000_000);
        check("some-model", 1_000_000);
        assert_eq!(window_of(None, None), 1_000_000);
    }

    /// Sessions of older versions were given the window that newer ones have.
    #[test]
    fn an_older_version_has_the_large_window_only_where_it_is_chosen() {
        let check = |model: Option<&str>, version: &str, expected: u64| {
            assert_eq!(window_of(model, Some(version)), expected, "{model:?} in {version}");
        };
        check(Some("claude-opus-4-8"), "2.1.197", 200_000);
        check(Some("claude-opus-4-8[1m]"), "2.1.197", 1_000_000);
        check(Some("some-model"), "1.0.17", 200_000);
        check(Some("claude-opus-4-8"), "2.1.325", 1_000_000);
        check(Some("claude-opus-4-8"), "2.2.0", 1_000_000);
        check(Some("claude-opus-4-8"), "a version", 1_000_000);
        check(None, "2.1.197", 1_000_000);
    }
}
