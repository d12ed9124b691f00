//! Hook entries in the shape that Claude Code and Codex share: `{"hooks": {EVENT: [{"hooks": [{"command": …}]}]}}`.
//!
//! tine's own entries are known by their command, which calls `PROGRAM hook EVENT --agent AGENT`; nobody else's are touched.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use serde_json::json;
use transcript::Agent;

use super::jsonc::{self, Key, Problem};
use crate::hook::Event;

/// What tine wants to be told of.
pub(super) fn events(agent: Agent) -> &'static [Event] {
    match agent {
        Agent::Claude => &Event::ALL,
        Agent::Codex => {
            &[Event::SessionStart, Event::SessionEnd, Event::UserPromptSubmit, Event::Stop, Event::PermissionRequest]
        }
    }
}

/// The name of an event in the agents' files.
pub(super) fn key(event: Event) -> &'static str {
    match event {
        Event::SessionStart => "SessionStart",
        Event::SessionEnd => "SessionEnd",
        Event::UserPromptSubmit => "UserPromptSubmit",
        Event::Stop => "Stop",
        Event::Notification => "Notification",
        Event::PermissionRequest => "PermissionRequest",
    }
}

/// The seconds after which an agent gives up on a hook. It takes milliseconds; more than three is more than Codex allows
/// at the end of a session.
const TIMEOUT: u32 = 3;

/// What stands between the question whether the program is there and the call of it.
const GUARD: &str = " ] && exec ";

/// The program in a project's entries: everybody has their own.
pub(super) const BY_NAME: &str = "tine";

/// The command of one entry. Where the program is gone, nothing happens and nobody is told.
pub(super) fn command(program: &str, event: Event, agent: Agent) -> String {
    let call = format!("{} hook {} --agent {agent}", quoted(program), event.as_str());
    if program != BY_NAME {
        return format!("[ -x {}{GUARD}{call} || exit 0", quoted(program));
    }
    // A project's entries give way to the person's own, or everything would run twice.
    let own = format!(r#"hook {} --agent {agent}|"tine@tine": *true"#, event.as_str());
    let settings = r#""${CLAUDE_CONFIG_DIR:-$HOME/.claude}/settings.json""#;
    format!("grep -Eqs '{own}' {settings} || ! command -v {program} >/dev/null || exec {call}; exit 0")
}

/// One entry's group, as it is written.
pub(super) fn group(program: &str, event: Event, agent: Agent) -> serde_json::Value {
    json!({ "hooks": [{ "type": "command", "command": command(program, event, agent), "timeout": TIMEOUT }] })
}

/// A command in a file, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub key: String,
    pub group: usize,
    pub hook: usize,
    pub command: String,
    /// The program that it calls, if it is tine's own entry.
    pub program: Option<PathBuf>,
}

/// Every command in a file. What has another shape is passed over.
pub(super) fn found(root: &Value<'_>, agent: Agent) -> Vec<Found> {
    let mut all = Vec::new();
    let Some(events) = jsonc::member(root, "hooks") else {
        return all;
    };
    for (key, groups) in jsonc::members(events) {
        for (group, inner) in jsonc::elements(groups).iter().enumerate() {
            let hooks = jsonc::member(inner, "hooks").map_or(&[][..], jsonc::elements);
            for (hook, entry) in hooks.iter().enumerate() {
                let command = jsonc::member(entry, "command").and_then(Value::as_string_lit);
                let command = command.map(|command| command.value.to_string()).unwrap_or_default();
                let program = called_program(&command, agent);
                all.push(Found { key: key.to_owned(), group, hook, command, program });
            }
        }
    }
    all
}

/// A text with tine's entries in it, and what was done to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edited {
    pub text: String,
    pub added: Vec<&'static str>,
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    /// Events for which somebody calls tine in a way of their own.
    pub left: Vec<&'static str>,
}

/// Puts in what is missing, and puts right what is there.
pub(super) fn install(text: &str, program: &str, agent: Agent) -> Result<Edited, Problem> {
    let blank = text.trim().is_empty();
    let mut edited = Edited { text: if blank { "{}\n".into() } else { text.to_owned() }, ..Edited::default() };
    check_shape(&edited.text, agent)?;
    let all = read(&edited.text, agent)?;
    // From the last to the first, so that what is still to be done stays where it was found.
    for entry in all.iter().filter(|entry| entry.program.is_some()).rev() {
        let event = events(agent).iter().find(|event| key(**event) == entry.key);
        let is_first = !all.iter().any(|other| {
            other.program.is_some() && other.key == entry.key && (other.group, other.hook) < (entry.group, entry.hook)
        });
        match event.filter(|_| is_first) {
            Some(event) => {
                let wanted = command(program, *event, agent);
                if entry.command != wanted {
                    let path = [&place(entry)[..], &[Key::Name("command")]].concat();
                    edited.text = jsonc::replace(&edited.text, &path, &json!(wanted)).unwrap_or(edited.text);
                    edited.updated.push(entry.key.clone());
                }
            }
            None => {
                edited.text = take_out(edited.text, entry, &[]);
                edited.removed.push(entry.key.clone());
            }
        }
    }
    edited.updated.reverse();
    edited.removed.reverse();
    for event in events(agent) {
        let name = key(*event);
        let here = || all.iter().filter(|entry| entry.key == name);
        if here().any(|entry| entry.program.is_some()) {
            continue;
        }
        if here().any(|entry| calls_tine(&entry.command)) {
            edited.left.push(name);
            continue;
        }
        for path in [vec![Key::Name("hooks")], vec![Key::Name("hooks"), Key::Name(name)]] {
            let root = jsonc::parse(&edited.text)?;
            if root.as_ref().is_some_and(|root| jsonc::at(root, &path).is_none()) {
                let (Some(Key::Name(last)), above) = (path.last().copied(), &path[..path.len() - 1]) else { continue };
                let empty = if above.is_empty() { json!({}) } else { json!([]) };
                edited.text = jsonc::insert(&edited.text, above, Some(last), &empty).unwrap_or(edited.text);
            }
        }
        let path = [Key::Name("hooks"), Key::Name(name)];
        let group = group(program, *event, agent);
        edited.text = jsonc::insert(&edited.text, &path, None, &group).unwrap_or(edited.text);
        edited.added.push(name);
    }
    if blank && edited.added.is_empty() {
        edited.text = text.to_owned();
    }
    Ok(edited)
}

/// Takes tine's entries out, and what holds nothing any more; `kept` was there before tine came.
pub(super) fn uninstall(text: &str, agent: Agent, kept: &[String]) -> Result<Edited, Problem> {
    let mut edited = Edited { text: text.to_owned(), ..Edited::default() };
    for entry in read(text, agent)?.iter().filter(|entry| entry.program.is_some()).rev() {
        edited.text = take_out(edited.text, entry, kept);
        edited.removed.push(entry.key.clone());
    }
    edited.removed.reverse();
    Ok(edited)
}

/// The objects and arrays that hold hooks, as they are named in `kept`.
pub(super) fn containers(text: &str) -> Vec<String> {
    let Ok(Some(root)) = jsonc::parse(text) else {
        return Vec::new();
    };
    let Some(events) = jsonc::member(&root, "hooks") else {
        return Vec::new();
    };
    let named = jsonc::members(events).map(|(key, _)| format!("hooks/{key}"));
    std::iter::once("hooks".to_owned()).chain(named).collect()
}

/// Whether nothing is left in a file.
pub(super) fn is_blank(text: &str) -> bool {
    matches!(text.trim(), "" | "{}")
}

/// A word for a POSIX shell, by which both agents run hooks.
pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte);
    let is_plain = !word.is_empty() && word.bytes().all(plain);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn read(text: &str, agent: Agent) -> Result<Vec<Found>, Problem> {
    Ok(jsonc::parse(text)?.map(|root| found(&root, agent)).unwrap_or_default())
}

/// Whether entries can be put in: what is not there can be made, but what is there has to be what the agents take.
fn check_shape(text: &str, agent: Agent) -> Result<(), Problem> {
    let Some(root) = jsonc::parse(text)? else {
        return Err(Problem { line: 1, message: "there is nothing but comments".into() });
    };
    let wrong = |value: &Value<'_>, what: &str, expected: &str| Problem {
        line: jsonc::line_of(text, jsonc::start_of(value)),
        message: format!("{what} is not {expected}"),
    };
    if root.as_object().is_none() {
        return Err(wrong(&root, "the whole of it", "an object"));
    }
    let Some(all) = jsonc::member(&root, "hooks") else {
        return Ok(());
    };
    if all.as_object().is_none() {
        return Err(wrong(all, "`hooks`", "an object"));
    }
    for event in events(agent) {
        let name = key(*event);
        if let Some(groups) = jsonc::member(all, name).filter(|groups| groups.as_array().is_none()) {
            return Err(wrong(groups, &format!("`hooks.{name}`"), "an array"));
        }
    }
    Ok(())
}

fn place(entry: &Found) -> [Key<'_>; 5] {
    [Key::Name("hooks"), Key::Name(&entry.key), Key::Index(entry.group), Key::Name("hooks"), Key::Index(entry.hook)]
}

/// Removes an entry and whatever is empty without it.
fn take_out(text: String, entry: &Found, kept: &[String]) -> String {
    let path = place(entry);
    let mut text = jsonc::remove(&text, &path).unwrap_or(text);
    let event = format!("hooks/{}", entry.key);
    // The list of the group's commands, the group, the event, all of the hooks.
    for (depth, name) in [(4, None), (2, Some(event.as_str())), (1, Some("hooks"))] {
        let is_empty = |text: &str| {
            let root = jsonc::parse(text).ok().flatten();
            root.as_ref().and_then(|root| jsonc::at(root, &path[..depth])).is_some_and(jsonc::is_empty)
        };
        if name.is_some_and(|name| kept.iter().any(|kept| kept == name)) || !is_empty(&text) {
            break;
        }
        // A group without commands goes as a whole, with what else was said of it.
        let depth = if depth == 4 { 3 } else { depth };
        text = jsonc::remove(&text, &path[..depth]).unwrap_or(text);
    }
    text
}

/// The program that a command calls, if the command is one of tine's own entries, of this version or of an older one.
fn called_program(text: &str, agent: Agent) -> Option<PathBuf> {
    if Event::ALL.iter().any(|event| text == command(BY_NAME, *event, agent)) {
        return Some(PathBuf::from(BY_NAME));
    }
    let guarded = text.strip_prefix("[ -x ").and_then(|text| text.strip_suffix(" || exit 0")).unwrap_or_default();
    // The mark may also stand in a path, so that the program has to be the same on both sides of it.
    let call = guarded.match_indices(GUARD).find_map(|(at, _)| {
        let (program, call) = (&guarded[..at], &guarded[at + GUARD.len()..]);
        call.strip_prefix(program).filter(|rest| rest.starts_with(" hook ")).map(|_| call)
    });
    let call = call.unwrap_or(text);
    let words = words(call)?;
    let [program, hook, _, option, of] = words.as_slice() else {
        return None;
    };
    let is_ours = hook == "hook" && option == "--agent" && of == agent.as_str();
    let name = Path::new(program).file_name()?.to_string_lossy().into_owned();
    (is_ours && name.contains("tine")).then(|| PathBuf::from(program))
}

/// Whether a command calls `tine hook` in some way of a person's own.
fn calls_tine(command: &str) -> bool {
    command.split("tine").skip(1).any(|rest| rest.trim_start_matches(['\'', '"']).trim_start().starts_with("hook "))
}

/// The words of a simple command; nothing where a shell would do more than call a program.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '"' | '$' | '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | '#' | '*' | '?' | '~' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "/opt/tine";

    #[test]
    fn only_own_entries_are_taken_for_own() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(called_program(command, Agent::Claude), expected.map(PathBuf::from), "{command}");
        };
        check("/opt/tine hook stop --agent claude", Some("/opt/tine"));
        check("'/my bin/ti'\\''ne/tine' hook stop --agent claude", Some("/my bin/ti'ne/tine"));
        check("/opt/tine-0.1 hook stop --agent claude", Some("/opt/tine-0.1"));
        check("[ -x /opt/tine ] && exec /opt/tine hook stop --agent claude || exit 0", Some("/opt/tine"));
        check("[ -x /opt/tine ] && exec /opt/other hook stop --agent claude || exit 0", None);
        check("[ -x /opt/tine ] && exec /opt/tine hook stop --agent claude || exit 1", None);
        check("/opt/tine hook stop --agent codex", None);
        check("/opt/tine hook stop --agent claude || true", None);
        check("/opt/other hook stop --agent claude", None);
        check("tine list", None);
        check("$HOME/tine hook stop --agent claude", None);
        for awkward in
            [BY_NAME, "/usr/bin/tine", "/a ] && exec /tine", "/my bin/tine", "/it's/tine", "/$HOME/tine", "/ü/tine"]
        {
            check(&command(awkward, Event::Stop, Agent::Claude), Some(awkward));
        }
    }

    #[test]
    fn a_second_time_changes_nothing() {
        for text in ["", "{}", "{\"a\":1}", "{\n  // why\n  \"hooks\": {\n    \"Stop\": [], // mine\n  },\n}\n"] {
            for agent in [Agent::Claude, Agent::Codex] {
                let once = install(text, OURS, agent).unwrap();
                assert_eq!(once.added.len(), events(agent).len());
                let twice = install(&once.text, OURS, agent).unwrap();
                assert_eq!(twice, Edited { text: once.text.clone(), ..Edited::default() });
                let kept = containers(text);
                let gone = uninstall(&once.text, agent, &kept).unwrap();
                assert_eq!(gone.text, if text.is_empty() { "{}\n" } else { text }, "from {}", once.text);
            }
        }
    }

    #[test]
    fn an_older_entry_is_put_right_where_it_stands() {
        let old = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/old/tine hook stop --agent claude\",\"timeout\":9}]},{\"matcher\":\"x\",\"hooks\":[{\"command\":\"theirs\"}]},{\"hooks\":[{\"command\":\"/older/tine hook stop --agent claude\"}]}],\"PreCompact\":[{\"hooks\":[{\"command\":\"/old/tine hook pre-compact --agent claude\"}]}]}}";
        let edited = install(old, OURS, Agent::Claude).unwrap();
        assert_eq!((edited.updated, edited.removed), (vec!["Stop".into()], vec!["Stop".into(), "PreCompact".into()]));
        assert!(edited.text.starts_with("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"[ -x /opt/tine ] && exec /opt/tine hook stop --agent claude || exit 0\",\"timeout\":9}]},{\"matcher\":\"x\",\"hooks\":[{\"command\":\"theirs\"}]}],\"SessionStart\""), "{}", edited.text);
    }

    #[test]
    fn what_a_person_wrote_is_left_alone() {
        let text = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"nice tine hook stop --agent claude\"}]}]}}";
        let edited = install(text, OURS, Agent::Claude).unwrap();
        assert_eq!(edited.left, ["Stop"]);
        assert_eq!(edited.added.len(), 5);
        assert_eq!(uninstall(&edited.text, Agent::Claude, &[]).unwrap().text, text);
    }

    #[test]
    fn another_shape_is_refused_with_its_line() {
        for (text, line, said) in [
            ("[]", 1, "the whole of it"),
            ("{\n\"hooks\": []}", 2, "`hooks` is not an object"),
            ("{\n\"hooks\": {\n\"Stop\": {}}}", 3, "`hooks.Stop` is not an array"),
            ("// only this", 1, "nothing but comments"),
            ("{\n\"a\": 1\n\"b\": 2}", 2, ""),
        ] {
            let problem = install(text, OURS, Agent::Claude).unwrap_err();
            assert_eq!(problem.line, line, "{text}: {problem:?}");
            assert!(problem.message.contains(said), "{problem:?}");
        }
    }
}
