//! The context windows of OpenCode's models: from the user's settings, or from the list of models that OpenCode keeps in
//! its cache.

use std::fs;

use jsonc_parser::ast::Value;

use super::home::OpenCodeFolders;
use crate::setup::jsonc;

/// Sizes that there are. Providers have many others; only the usual ones are offered.
pub(super) const SIZES: &[u64] = &[128_000, 200_000, 1_000_000];

/// The window of a model that neither file describes.
const USUAL: u64 = 200_000;

/// The window of `provider/model`.
pub(super) fn window_of(home: &OpenCodeFolders, model: Option<&str>) -> u64 {
    let Some((provider, model)) = model.and_then(|model| model.split_once('/')) else { return USUAL };
    configured(home, provider, model).or_else(|| listed(home, provider, model)).unwrap_or(USUAL)
}

fn configured(home: &OpenCodeFolders, provider: &str, model: &str) -> Option<u64> {
    let mut files: Vec<_> = home.config_file.iter().cloned().collect();
    files.extend(["opencode.jsonc", "opencode.json", "config.json"].map(|name| home.config.join(name)));
    files.into_iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let root = jsonc::parse(&text).ok()??;
        let path = ["provider", provider, "models", model, "limit", "context"];
        let found = path.into_iter().try_fold(&root, |value, name| jsonc::member(value, name));
        found.and_then(Value::as_number_lit).and_then(|number| number.value.parse().ok())
    })
}

fn listed(home: &OpenCodeFolders, provider: &str, model: &str) -> Option<u64> {
    let text = fs::read(home.cache.join("models.json")).ok()?;
    let all: serde_json::Value = serde_json::from_slice(&text).ok()?;
    all.get(provider)?.get("models")?.get(model)?.get("limit")?.get("context")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEnvironment;

    #[test]
    fn settings_come_before_the_list_of_models() {
        let folder = tempfile::tempdir().unwrap();
        let home =
            OpenCodeFolders::new(&AgentEnvironment { home: folder.path().to_owned(), ..AgentEnvironment::default() });
        let write = |folder: &std::path::Path, name: &str, text: &str| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(name), text).unwrap();
        };
        let models = r#"{"p":{"models":{"a":{"limit":{"context":400000}},"b":{"limit":{"context":64000}}}}}"#;
        write(&home.cache, "models.json", models);
        let settings = r#"{ // mine
            "provider": {"p": {"models": {"a": {"limit": {"context": 32000, "output": 1}}}}}, }"#;
        write(&home.config, "opencode.json", settings);
        let check = |model: Option<&str>, expected: u64| assert_eq!(window_of(&home, model), expected, "{model:?}");
        check(Some("p/a"), 32_000);
        check(Some("p/b"), 64_000);
        check(Some("q/b"), 200_000);
        check(Some("b"), 200_000);
        check(None, 200_000);
    }
}
