//! The MCP server in a JSON list of servers: `{"mcpServers": {NAME: {…}}}`.
//!
//! An entry is tine's if it is called `tine` and calls a program with `mcp` alone. Any other entry of that name stays.

use jsonc_parser::ast::Value;
use serde_json::json;

use super::jsonc::{self, Key};
use super::{Problem, SERVER_ARGUMENTS, SERVER_NAME, ServerEntry};

const SERVERS: &str = "mcpServers";

/// The server's entry.
pub(crate) fn server(program: &str) -> serde_json::Value {
    json!({ "type": "stdio", "command": program, "args": SERVER_ARGUMENTS, "env": {} })
}

/// What is listed under tine's name.
pub(crate) fn find(text: &str) -> Result<ServerEntry, Problem> {
    let root = jsonc::parse(text)?;
    let servers = root.as_ref().and_then(|root| jsonc::member(root, SERVERS));
    let Some(entry) = servers.and_then(|servers| jsonc::member(servers, SERVER_NAME)) else {
        return Ok(ServerEntry::Missing);
    };
    let word = |value: &Value<'_>| value.as_string_lit().map(|word| word.value.to_string());
    let arguments: Vec<Option<String>> =
        jsonc::member(entry, "args").map(|args| jsonc::elements(args).iter().map(word).collect()).unwrap_or_default();
    let is_ours = arguments.iter().map(Option::as_deref).eq(SERVER_ARGUMENTS.map(Some));
    let program = jsonc::member(entry, "command").and_then(word);
    Ok(program.filter(|_| is_ours).map_or(ServerEntry::Foreign, ServerEntry::Ours))
}

/// Adds the server, or replaces it.
pub(crate) fn add(text: &str, program: &str) -> Result<String, Problem> {
    let refused = || Problem { line: 1, message: format!("`{SERVERS}` is not an object") };
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let path = [Key::Name(SERVERS), Key::Name(SERVER_NAME)];
    let text = jsonc::remove(text, &path).unwrap_or_else(|| text.to_owned());
    let added = match containers(&text).is_empty() {
        true => jsonc::insert(&text, &[], Some(SERVERS), &json!({ SERVER_NAME: server(program) })),
        false => jsonc::insert(&text, &path[..1], Some(SERVER_NAME), &server(program)),
    };
    added.ok_or_else(refused)
}

/// Removes the server, and the list if it is empty then and not in `kept`.
pub(crate) fn remove(text: &str, kept: &[String]) -> String {
    let path = [Key::Name(SERVERS), Key::Name(SERVER_NAME)];
    let text = jsonc::remove(text, &path).unwrap_or_else(|| text.to_owned());
    let root = jsonc::parse(&text).ok().flatten();
    let is_empty = root.as_ref().and_then(|root| jsonc::member(root, SERVERS)).is_some_and(jsonc::is_empty);
    match is_empty && !kept.iter().any(|kept| kept == SERVERS) {
        true => jsonc::remove(&text, &path[..1]).unwrap_or(text),
        false => text,
    }
}

/// The list itself, if there is one.
pub(crate) fn containers(text: &str) -> Vec<String> {
    let root = jsonc::parse(text).ok().flatten();
    let has = root.as_ref().is_some_and(|root| jsonc::member(root, SERVERS).is_some());
    has.then(|| SERVERS.to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_added_and_removed() {
        for before in
            ["{\n  \"a\": 1\n}\n", "{\"mcpServers\": {\"x\": {\"command\": \"y\"}}}", "{\n  \"mcpServers\": {}\n}\n"]
        {
            let kept = containers(before);
            let with = add(before, "/bin/tine").unwrap();
            assert_eq!(find(&with).unwrap(), ServerEntry::Ours("/bin/tine".into()), "{with}");
            assert_eq!(add(&add(before, "/old/tine").unwrap(), "/bin/tine").unwrap(), with);
            assert_eq!(remove(&with, &kept), before);
        }
        let own = r#"{"mcpServers": {"tine": {"command": "other", "args": ["serve"]}}}"#;
        assert_eq!(find(own).unwrap(), ServerEntry::Foreign);
        assert!(add(r#"{"mcpServers": 3}"#, "tine").is_err());
    }
}
