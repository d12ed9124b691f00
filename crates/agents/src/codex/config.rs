//! `config.toml`: the MCP server in it, and editing it without touching anything else.

use toml_edit::{Array, DocumentMut, Item, Table, value};
use transcript::Agent;

use crate::about::about;
use crate::setup::{Problem, SERVER_ARGUMENTS, SERVER_NAME, ServerEntry};

/// The table of servers.
const SERVERS: &str = "mcp_servers";

/// The seconds that Codex waits for a tool call. Its default of one minute is short for the answer of a worker.
const TOOL_TIMEOUT: i64 = 3700;

/// Parses the file.
pub(super) fn parse(text: &str) -> Result<DocumentMut, Problem> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        Problem { line: text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1, message }
    })
}

/// Whether the file leaves hooks switched on.
pub(super) fn has_hooks_enabled(document: &DocumentMut) -> bool {
    let feature = |name: &str| document.get("features").and_then(|features| features.get(name)).and_then(Item::as_bool);
    feature("hooks") != Some(false) && feature("codex_hooks") != Some(false)
}

/// What the file has under the name of tine's server.
pub(super) fn find_server(document: &DocumentMut) -> ServerEntry {
    let Some(entry) = document.get(SERVERS).and_then(|servers| servers.get(SERVER_NAME)) else {
        return ServerEntry::Missing;
    };
    let arguments = entry.get("args").and_then(Item::as_array);
    let words = arguments.map(|words| words.iter().map(toml_edit::Value::as_str).collect::<Vec<_>>());
    let is_ours = words.is_some_and(|words| words == SERVER_ARGUMENTS.map(Some));
    let program = entry.get("command").and_then(Item::as_str);
    program.filter(|_| is_ours).map_or(ServerEntry::Foreign, |program| ServerEntry::Ours(program.to_owned()))
}

/// Adds the server, or corrects the program that it calls.
pub(super) fn add_server(text: &str, program: &str) -> Result<String, Problem> {
    let mut document = parse(text)?;
    let variables = server_variables(&document);
    let position = last_position(document.as_table()) + 1;
    if !document.contains_key(SERVERS) {
        document.insert(SERVERS, Item::Table(implicit()));
    }
    let refused = || Problem { line: 1, message: format!("`{SERVERS}` is not a table") };
    let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut).ok_or_else(refused)?;
    match servers.get_mut(SERVER_NAME).and_then(Item::as_table_like_mut) {
        Some(entry) => drop(entry.insert("command", value(program))),
        None => {
            let mut entry = Table::new();
            entry.set_position(Some(position));
            entry.decor_mut().set_prefix("\n");
            entry.insert("command", value(program));
            entry.insert("args", value(SERVER_ARGUMENTS.into_iter().collect::<Array>()));
            entry.insert("env_vars", value(variables.iter().map(String::as_str).collect::<Array>()));
            entry.insert("tool_timeout_sec", value(TOOL_TIMEOUT));
            servers.insert(SERVER_NAME, Item::Table(entry));
        }
    }
    Ok(document.to_string())
}

/// Removes the server if it is tine's, and the table if it is empty then and not in `kept`.
pub(super) fn remove_server(text: &str, kept: &[String]) -> Result<String, Problem> {
    let mut document = parse(text)?;
    if !matches!(find_server(&document), ServerEntry::Ours(_)) {
        return Ok(text.to_owned());
    }
    if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
        servers.remove(SERVER_NAME);
        if servers.is_empty() && !kept.iter().any(|kept| kept == SERVERS) {
            document.remove(SERVERS);
        }
    }
    Ok(document.to_string())
}

/// The tables that tine adds to: trust in hooks, and servers.
pub(super) fn containers(text: &str) -> Vec<String> {
    let Ok(document) = parse(text) else {
        return Vec::new();
    };
    let is_written = |item: &&Item| !item.as_table().is_some_and(Table::is_implicit);
    let hooks = document.get("hooks");
    let state = hooks.and_then(|hooks| hooks.get("state"));
    let found = [("hooks", hooks), ("hooks/state", state), (SERVERS, document.get(SERVERS))];
    found.into_iter().filter(|(_, item)| item.filter(is_written).is_some()).map(|(name, _)| name.to_owned()).collect()
}

/// The environment variables that Codex passes on to the server; it passes no others. They identify the user's terminal
/// and the folders of agents and tine, and contain what agents started by tine need. The providers in this
/// configuration may name more keys.
fn server_variables(document: &DocumentMut) -> Vec<String> {
    const TERMINAL_AND_FILES: [&str; 21] = [
        "TMUX",
        "TMUX_PANE",
        "WEZTERM_PANE",
        "WEZTERM_UNIX_SOCKET",
        "KITTY_WINDOW_ID",
        "KITTY_LISTEN_ON",
        "ZELLIJ",
        "ZELLIJ_PANE_ID",
        "ZELLIJ_SESSION_NAME",
        "TERM",
        "TERM_PROGRAM",
        "COLORTERM",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XDG_RUNTIME_DIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "TINE_CONFIG",
        "TINE_REGISTRY",
        "TINE_CACHE",
    ];
    const NETWORK: [&str; 6] =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
    let of_agents = || Agent::ALL.into_iter().map(|agent| &about(agent).variables);
    let access = of_agents().flat_map(|variables| variables.credentials.iter().chain(variables.endpoints));
    let names = TERMINAL_AND_FILES
        .into_iter()
        .chain(of_agents().flat_map(|variables| variables.locations.iter().copied()))
        .chain(access.copied())
        .chain(NETWORK);
    // Some agents use variables that others use, too.
    let mut known = std::collections::HashSet::new();
    let mut names: Vec<String> = names.filter(|name| known.insert(*name)).map(str::to_owned).collect();
    let providers = document.get("model_providers").and_then(Item::as_table_like);
    for (_, provider) in providers.into_iter().flat_map(|providers| providers.iter()) {
        let key = provider.get("env_key").and_then(Item::as_str).map(str::to_owned);
        names.extend(key.filter(|key| !names.contains(key)));
    }
    names
}

/// A table without a header.
pub(super) fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

/// The position of the last table of a document, after which Codex itself would add one.
pub(super) fn last_position(table: &Table) -> isize {
    let below = |item: &Item| match item {
        Item::Table(table) => last_position(table),
        Item::ArrayOfTables(tables) => tables.iter().map(last_position).max().unwrap_or(0),
        _ => 0,
    };
    let inner = table.iter().map(|(_, item)| below(item)).max().unwrap_or(0);
    inner.max(table.position().unwrap_or(0))
}
