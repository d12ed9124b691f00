//! Tools that several agents have: the same act under another name, with other names for its arguments.

use serde_json::{Map, Value};

use super::ToolCall;

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Runs a command.
    Shell,
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Replaces a text in a file.
    Edit,
    /// Searches in files.
    Search,
    /// Finds files by their names.
    Find,
    /// Fetches a web page.
    Fetch,
    /// Searches the web.
    WebSearch,
    /// Keeps a list of things to do.
    Todo,
    /// Starts a subagent.
    Subagent,
}

impl Act {
    /// The arguments without which a call is not this act, by their common names.
    fn required(self) -> &'static [&'static str] {
        match self {
            Act::Shell => &["command"],
            Act::Read => &["path"],
            Act::Write => &["path", "content"],
            Act::Edit => &["path", "old", "new"],
            Act::Search | Act::Find => &["pattern"],
            Act::Fetch => &["url"],
            Act::WebSearch => &["query"],
            Act::Todo => &["items"],
            Act::Subagent => &["prompt"],
        }
    }
}

/// How an agent calls a tool that others have as well.
#[derive(Debug, Clone, Copy)]
pub struct ToolWords {
    /// What it does.
    pub act: Act,
    /// The tool.
    pub name: &'static str,
    /// The names of its arguments: the common one, and the agent's own. The others are kept as they are.
    pub arguments: &'static [(&'static str, &'static str)],
    /// What an entry of a list calls its text.
    pub entry_text: Option<&'static str>,
}

impl ToolWords {
    fn own<'a>(&self, common: &'a str) -> &'a str {
        self.arguments.iter().find(|(name, _)| *name == common).map_or(common, |(_, own)| own)
    }

    fn common<'a>(&self, own: &'a str) -> &'a str {
        self.arguments.iter().find(|(_, name)| *name == own).map_or(own, |(common, _)| common)
    }
}

/// Renames a call from one agent's tool to the other's, if both have it; every argument is kept. Returns false and leaves
/// the call as it is otherwise.
pub fn convert_call(call: &mut ToolCall, from: &[ToolWords], to: &[ToolWords]) -> bool {
    let Some(own) = from.iter().find(|words| words.name == call.name) else { return false };
    let Some(other) = to.iter().find(|words| words.act == own.act) else { return false };
    let Value::Object(fields) = &call.input else { return false };
    let has = |name: &&str| fields.get(own.own(name)).is_some_and(|value| value.is_string() || value.is_array());
    if !own.act.required().iter().all(has) {
        return false;
    }
    let names: Vec<&str> = fields.keys().map(|key| other.own(own.common(key))).collect();
    let is_reversible = fields.keys().zip(&names).all(|(key, name)| own.own(other.common(name)) == key.as_str());
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    if !is_reversible || unique.len() != fields.len() {
        return false;
    }
    let mut renamed = Map::new();
    for (value, name) in fields.values().zip(names) {
        let value = match (own.entry_text, other.entry_text, value) {
            (Some(text), Some(other_text), Value::Array(entries)) => match rename_entries(entries, text, other_text) {
                Some(entries) => Value::Array(entries),
                None => return false,
            },
            (_, _, value) => value.clone(),
        };
        renamed.insert(name.to_owned(), value);
    }
    call.name = other.name.to_owned();
    call.input = Value::Object(renamed);
    true
}

fn rename_entries(entries: &[Value], text: &str, other: &str) -> Option<Vec<Value>> {
    let rename = |entry: &Value| {
        let mut entry = entry.as_object()?.clone();
        if text != other {
            if entry.contains_key(other) {
                return None;
            }
            let value = entry.remove(text)?;
            entry.insert(other.to_owned(), value);
        }
        Some(Value::Object(entry))
    };
    entries.iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ONE: &[ToolWords] = &[
        ToolWords { act: Act::Shell, name: "Bash", arguments: &[], entry_text: None },
        ToolWords { act: Act::Read, name: "Read", arguments: &[("path", "file_path")], entry_text: None },
        ToolWords { act: Act::Todo, name: "Todo", arguments: &[("items", "todos")], entry_text: Some("content") },
    ];
    const OTHER: &[ToolWords] = &[
        ToolWords { act: Act::Shell, name: "exec", arguments: &[("command", "cmd")], entry_text: None },
        ToolWords { act: Act::Todo, name: "plan", arguments: &[("items", "plan")], entry_text: Some("step") },
    ];

    #[test]
    fn a_tool_that_both_have_is_renamed_and_back() {
        let check = |name: &str, input: Value, expected: Option<(&str, Value)>| {
            let call = ToolCall { id: "c".into(), name: name.into(), input };
            let mut converted = call.clone();
            assert_eq!(convert_call(&mut converted, ONE, OTHER), expected.is_some(), "{call:?}");
            if let Some((name, input)) = expected {
                assert_eq!((converted.name.as_str(), &converted.input), (name, &input));
                assert!(convert_call(&mut converted, OTHER, ONE));
            }
            assert_eq!(converted, call);
        };
        let list = json!({"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]});
        let plan = json!({"plan": [{"step": "a", "status": "pending", "activeForm": "b"}]});
        check("Bash", json!({"command": "ls", "timeout": 5}), Some(("exec", json!({"cmd": "ls", "timeout": 5}))));
        check("Todo", list, Some(("plan", plan)));
        check("Bash", json!({"command": "ls", "cmd": "two"}), None);
        check("Bash", json!({}), None);
        check("Bash", json!("ls"), None);
        check("Todo", json!({"todos": [{"content": "a", "step": "b"}]}), None);
        check("Todo", json!({"todos": ["a"]}), None);
        check("Read", json!({"file_path": "a"}), None);
        check("mcp__x__y", json!({"command": "ls"}), None);
    }
}
