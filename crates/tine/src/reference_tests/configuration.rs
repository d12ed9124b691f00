//! `docs/configuration.md`: the settings, from the schema of the configuration types, and the environment variables, from the
//! table in `environment.rs`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::GENERATED;

const INTRODUCTION: &str = "\
tine needs no configuration. Settings go into `$XDG_CONFIG_HOME/tine/config.toml`, which is `~/.config/tine/config.toml` unless
that variable is set. `tine doctor` reports unreadable files and unknown keys. A leading `~` in a path is your home
directory.";

const EXAMPLE: &str = r#"[worktree]
place = "~/trees/{name}/{branch}"
bring = [".env", "node_modules"]
setup = "npm ci"

[agents.claude]
command = "~/bin/claude"

[profiles.careful]
agent = "claude"
args = ["--permission-mode", "plan"]
model = "opus"
env = { HTTPS_PROXY = "http://localhost:8080" }

[hooks]
notes = "~/notes/{name}.md"

[mcp]
elsewhere = "ask"
"#;

#[test]
fn docs_configuration_md_is_up_to_date() {
    let example: engine::Config = toml::from_str(EXAMPLE).expect("an example that can be read");
    assert_ne!(example, engine::Config::default());
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<engine::Config>().to_value();
    let mut page = format!("<!-- {GENERATED} -->\n\n# Configuration\n\n{INTRODUCTION}\n\n```toml\n{EXAMPLE}```\n");
    let mut keys = Vec::new();
    write_table(&mut page, &mut keys, "", &schema);
    keys.retain(|key| !key.starts_with("profiles."));
    assert_eq!(keys, engine::config_keys(), "the keys that are documented are those that are known");
    let _ = write!(page, "\n## Environment variables\n\n{}", variables());
    testkit::golden::assert_file("docs/configuration.md", &page);
}

/// A table of the file: its settings, then the tables in it.
fn write_table(page: &mut String, keys: &mut Vec<String>, path: &str, schema: &Value) {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let is_table = |schema: &Value| schema.get("properties").is_some();
    let named = |schema: &Value| schema["additionalProperties"].get("properties").is_some();
    let (tables, settings): (Vec<_>, Vec<_>) =
        properties.iter().partition(|(_, schema)| is_table(schema) || named(schema));
    if !settings.is_empty() {
        let _ = write!(page, "\n## [{path}]\n\n{}\n\n| key | type | default | |\n|---|---|---|---|\n", text(schema));
        for (key, schema) in settings {
            let default = schema.get("default").filter(|value| !value.is_null()).map(|value| format!("`{value}`"));
            let default = default.unwrap_or_default();
            let _ = writeln!(page, "| `{key}` | {} | {default} | {} |", kind(schema), text(schema));
            keys.push(format!("{path}.{key}"));
        }
    }
    for (key, table) in tables {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match named(table) {
            true => {
                let mut inner = table["additionalProperties"].clone();
                inner["description"] = table["description"].clone();
                write_table(page, keys, &format!("{path}.NAME"), &inner);
            }
            false => write_table(page, keys, &path, table),
        }
    }
}

fn text(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

/// The type of a setting in words.
fn kind(schema: &Value) -> String {
    let choices = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
    if let Some(choices) = choices {
        let words = choices.iter().map(kind).filter(|word| word != "null");
        return words.collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        let words = values.iter().filter(|value| !value.is_null()).map(|value| format!("`{value}`"));
        return words.collect::<Vec<_>>().join(" or ");
    }
    match (&schema["const"], &schema["type"]) {
        (Value::String(value), _) => format!("`\"{value}\"`"),
        (_, Value::String(name)) => type_name(name).to_owned(),
        (_, Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.map(type_name).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}

fn type_name(name: &str) -> &str {
    match name {
        "array" => "list of strings",
        "object" => "table of strings",
        other => other,
    }
}

/// The table in the module comment of `environment.rs`.
fn variables() -> String {
    let source = include_str!("../environment.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("//! ")).filter(|line| line.starts_with('|'));
    rows.map(|row| format!("{row}\n")).collect()
}
