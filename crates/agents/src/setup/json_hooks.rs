//! Hooks in the JSON shape that several agents share: `{"hooks": {EVENT: [{"hooks": [{"command": …}]}]}}`.
//!
//! tine's hooks are recognized by their command, which calls `PROGRAM hook EVENT --agent AGENT`. No others are touched.

use std::path::{Path, PathBuf};

use jsonc_parser::ast::Value;
use serde_json::json;
use transcript::Agent;

use super::jsonc::{self, Key};
use super::{BY_NAME, EditedHooks, HookEntry, HookEvent, Problem};

/// An agent with hooks in this shape.
#[derive(Debug)]
pub(crate) struct JsonHooks {
    pub(crate) agent: Agent,
    /// The events, with the agent's names for them.
    pub(crate) events: &'static [(HookEvent, &'static str)],
    /// After which time the agent gives up on a hook, in the agent's own unit.
    pub(crate) timeout: u32,
    /// Detects whether the user already has the hooks, in which case a project's hooks do nothing.
    pub(crate) own_hooks: Option<OwnHooks>,
}

/// Where a shell can see that the user already has the hooks.
#[derive(Debug)]
pub(crate) struct OwnHooks {
    /// The user's settings, as a word for the shell.
    pub(crate) settings: &'static str,
    /// A pattern for `grep -E` that matches if the user has the plugin.
    pub(crate) plugin: &'static str,
}

/// The seconds after which an agent gives up on a hook, which takes milliseconds. Codex allows no more than three at the
/// end of a session.
pub(crate) const SECONDS: u32 = 3;

/// The text between the check for the program and the call.
const GUARD: &str = " ] && exec ";

impl JsonHooks {
    /// The command of one hook. If the program no longer exists, it does nothing, silently.
    fn command(&self, program: &str, event: HookEvent) -> String {
        let (agent, event) = (self.agent, event.as_str());
        let call = format!("{} hook {event} --agent {agent}", quoted(program));
        match &self.own_hooks {
            // A project's hooks give way to the user's own, or everything would run twice.
            Some(own) if program == BY_NAME => {
                let OwnHooks { settings, plugin } = own;
                let pattern = format!("hook {event} --agent {agent}|{plugin}");
                format!("grep -Eqs '{pattern}' {settings} || ! command -v {program} >/dev/null || exec {call}; exit 0")
            }
            _ => format!("[ -x {}{GUARD}{call} || exit 0", quoted(program)),
        }
    }

    /// The group of one hook, as written.
    fn group(&self, program: &str, event: HookEvent) -> serde_json::Value {
        json!({ "hooks": [{ "type": "command", "command": self.command(program, event), "timeout": self.timeout }] })
    }

    /// All hooks, as the value of `hooks`.
    pub(crate) fn all(&self, program: &str) -> serde_json::Map<String, serde_json::Value> {
        self.events.iter().map(|(event, key)| ((*key).to_owned(), json!([self.group(program, *event)]))).collect()
    }

    /// Every hook in a file. Anything of another shape is skipped.
    fn found(&self, root: &Value<'_>) -> Vec<HookEntry> {
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
                    let program = self.called_program(&command);
                    all.push(HookEntry { event: key.to_owned(), group, hook, command, program });
                }
            }
        }
        all
    }

    /// Adds the hooks that are missing and corrects those that are there.
    pub(crate) fn add(&self, text: &str, program: &str) -> Result<EditedHooks, Problem> {
        let blank = text.trim().is_empty();
        let mut edited =
            EditedHooks { text: if blank { "{}\n".into() } else { text.to_owned() }, ..EditedHooks::default() };
        self.check_shape(&edited.text)?;
        let all = self.read(&edited.text)?;
        // From last to first, so that the positions of the remaining ones stay valid.
        for entry in all.iter().filter(|entry| entry.program.is_some()).rev() {
            let event = self.events.iter().find(|(_, key)| *key == entry.event);
            let is_first = !all.iter().any(|other| {
                other.program.is_some()
                    && other.event == entry.event
                    && (other.group, other.hook) < (entry.group, entry.hook)
            });
            match event.filter(|_| is_first) {
                Some((event, _)) => {
                    let wanted = self.command(program, *event);
                    if entry.command != wanted {
                        let path = [&place(entry)[..], &[Key::Name("command")]].concat();
                        edited.text = jsonc::replace(&edited.text, &path, &json!(wanted)).unwrap_or(edited.text);
                        edited.updated.push(entry.event.clone());
                    }
                }
                None => {
                    edited.text = take_out(edited.text, entry, &[]);
                    edited.removed.push(entry.event.clone());
                }
            }
        }
        edited.updated.reverse();
        edited.removed.reverse();
        for (event, name) in self.events {
            let name = *name;
            let here = || all.iter().filter(|entry| entry.event == name);
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
                    let (Some(Key::Name(last)), above) = (path.last().copied(), &path[..path.len() - 1]) else {
                        continue;
                    };
                    let empty = if above.is_empty() { json!({}) } else { json!([]) };
                    edited.text = jsonc::insert(&edited.text, above, Some(last), &empty).unwrap_or(edited.text);
                }
            }
            let path = [Key::Name("hooks"), Key::Name(name)];
            let group = self.group(program, *event);
            edited.text = jsonc::insert(&edited.text, &path, None, &group).unwrap_or(edited.text);
            edited.added.push(name);
        }
        if blank && edited.added.is_empty() {
            edited.text = text.to_owned();
        }
        Ok(edited)
    }

    /// Removes tine's hooks and the containers that are empty then, except those in `kept`.
    pub(crate) fn remove(&self, text: &str, kept: &[String]) -> Result<EditedHooks, Problem> {
        let mut edited = EditedHooks { text: text.to_owned(), ..EditedHooks::default() };
        for entry in self.read(text)?.iter().filter(|entry| entry.program.is_some()).rev() {
            edited.text = take_out(edited.text, entry, kept);
            edited.removed.push(entry.event.clone());
        }
        edited.removed.reverse();
        Ok(edited)
    }

    pub(crate) fn read(&self, text: &str) -> Result<Vec<HookEntry>, Problem> {
        Ok(jsonc::parse(text)?.map(|root| self.found(&root)).unwrap_or_default())
    }

    /// Checks that hooks can be added: missing parts can be created, but existing ones must have the right shape.
    fn check_shape(&self, text: &str) -> Result<(), Problem> {
        let Some(root) = jsonc::parse(text)? else {
            return Err(Problem { line: 1, message: "it contains only comments".into() });
        };
        let wrong = |value: &Value<'_>, what: &str, expected: &str| Problem {
            line: jsonc::line_of(text, jsonc::start_of(value)),
            message: format!("{what} is not {expected}"),
        };
        if root.as_object().is_none() {
            return Err(wrong(&root, "the top level", "an object"));
        }
        let Some(all) = jsonc::member(&root, "hooks") else {
            return Ok(());
        };
        if all.as_object().is_none() {
            return Err(wrong(all, "`hooks`", "an object"));
        }
        for (_, name) in self.events {
            if let Some(groups) = jsonc::member(all, name).filter(|groups| groups.as_array().is_none()) {
                return Err(wrong(groups, &format!("`hooks.{name}`"), "an array"));
            }
        }
        Ok(())
    }

    /// The program that a command calls, if it is a hook of this or an older version of tine.
    fn called_program(&self, text: &str) -> Option<PathBuf> {
        if HookEvent::ALL.iter().any(|event| text == self.command(BY_NAME, *event)) {
            return Some(PathBuf::from(BY_NAME));
        }
        let guarded = text.strip_prefix("[ -x ").and_then(|text| text.strip_suffix(" || exit 0")).unwrap_or_default();
        // The guard may also occur in a path, so the program must be the same on both sides of it.
        let call = guarded.match_indices(GUARD).find_map(|(at, _)| {
            let (program, call) = (&guarded[..at], &guarded[at + GUARD.len()..]);
            call.strip_prefix(program).filter(|rest| rest.starts_with(" hook ")).map(|_| call)
        });
        let call = call.unwrap_or(text);
        let words = words(call)?;
        let [program, hook, _, option, of] = words.as_slice() else {
            return None;
        };
        let is_ours = hook == "hook" && option == "--agent" && of == self.agent.as_str();
        let name = Path::new(program).file_name()?.to_string_lossy().into_owned();
        (is_ours && name.contains("tine")).then(|| PathBuf::from(program))
    }
}

/// The objects and arrays that contain hooks, as named in `kept`.
pub(crate) fn containers(text: &str) -> Vec<String> {
    let Ok(Some(root)) = jsonc::parse(text) else {
        return Vec::new();
    };
    let Some(events) = jsonc::member(&root, "hooks") else {
        return Vec::new();
    };
    let named = jsonc::members(events).map(|(key, _)| format!("hooks/{key}"));
    std::iter::once("hooks".to_owned()).chain(named).collect()
}

/// A word for a POSIX shell, with which agents run hooks.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte);
    let is_plain = !word.is_empty() && word.bytes().all(plain);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn place(entry: &HookEntry) -> [Key<'_>; 5] {
    [Key::Name("hooks"), Key::Name(&entry.event), Key::Index(entry.group), Key::Name("hooks"), Key::Index(entry.hook)]
}

/// Removes a hook and the containers that are empty without it.
fn take_out(text: String, entry: &HookEntry, kept: &[String]) -> String {
    let path = place(entry);
    let mut text = jsonc::remove(&text, &path).unwrap_or(text);
    let event = format!("hooks/{}", entry.event);
    // The group's list of commands and the group; the event; all hooks.
    for (depth, name) in [(4, None), (2, Some(event.as_str())), (1, Some("hooks"))] {
        let is_empty = |text: &str| {
            let root = jsonc::parse(text).ok().flatten();
            root.as_ref().and_then(|root| jsonc::at(root, &path[..depth])).is_some_and(jsonc::is_empty)
        };
        if name.is_some_and(|name| kept.iter().any(|kept| kept == name)) || !is_empty(&text) {
            break;
        }
        // A group without commands is removed as a whole.
        let depth = if depth == 4 { 3 } else { depth };
        text = jsonc::remove(&text, &path[..depth]).unwrap_or(text);
    }
    text
}

/// Whether a command calls `tine hook` in a way of the user's own.
fn calls_tine(command: &str) -> bool {
    command.split("tine").skip(1).any(|rest| rest.trim_start_matches(['\'', '"']).trim_start().starts_with("hook "))
}

/// The words of a simple command; nothing if a shell would do more than call a program.
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
    use crate::{claude, codex};

    const OURS: &str = "/opt/tine";

    #[test]
    fn only_hooks_of_tine_are_recognized() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(claude::setup::HOOKS.called_program(command), expected.map(PathBuf::from), "{command}");
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
            check(&claude::setup::HOOKS.command(awkward, HookEvent::Stop), Some(awkward));
        }
    }

    #[test]
    fn adding_twice_changes_nothing() {
        for text in ["", "{}", "{\"a\":1}", "{\n  // why\n  \"hooks\": {\n    \"Stop\": [], // mine\n  },\n}\n"] {
            for hooks in [&claude::setup::HOOKS, &codex::setup::HOOKS] {
                let once = hooks.add(text, OURS).unwrap();
                assert_eq!(once.added.len(), hooks.events.len());
                let twice = hooks.add(&once.text, OURS).unwrap();
                assert_eq!(twice, EditedHooks { text: once.text.clone(), ..EditedHooks::default() });
                let kept = containers(text);
                let gone = hooks.remove(&once.text, &kept).unwrap();
                assert_eq!(gone.text, if text.is_empty() { "{}\n" } else { text }, "from {}", once.text);
            }
        }
    }

    #[test]
    fn a_hook_of_an_older_version_is_corrected_in_place() {
        let old = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"/old/tine hook stop --agent claude\",\"timeout\":9}]},{\"matcher\":\"x\",\"hooks\":[{\"command\":\"theirs\"}]},{\"hooks\":[{\"command\":\"/older/tine hook stop --agent claude\"}]}],\"PreCompact\":[{\"hooks\":[{\"command\":\"/old/tine hook pre-compact --agent claude\"}]}]}}";
        let edited = claude::setup::HOOKS.add(old, OURS).unwrap();
        assert_eq!((edited.updated, edited.removed), (vec!["Stop".into()], vec!["Stop".into(), "PreCompact".into()]));
        assert!(edited.text.starts_with("{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"[ -x /opt/tine ] && exec /opt/tine hook stop --agent claude || exit 0\",\"timeout\":9}]},{\"matcher\":\"x\",\"hooks\":[{\"command\":\"theirs\"}]}],\"SessionStart\""), "{}", edited.text);
    }

    #[test]
    fn hooks_that_the_user_wrote_are_left_alone() {
        let text = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"nice tine hook stop --agent claude\"}]}]}}";
        let edited = claude::setup::HOOKS.add(text, OURS).unwrap();
        assert_eq!(edited.left, ["Stop"]);
        assert_eq!(edited.added.len(), 5);
        assert_eq!(claude::setup::HOOKS.remove(&edited.text, &[]).unwrap().text, text);
    }

    #[test]
    fn an_unexpected_shape_is_refused_with_its_line() {
        for (text, line, said) in [
            ("[]", 1, "the top level"),
            ("{\n\"hooks\": []}", 2, "`hooks` is not an object"),
            ("{\n\"hooks\": {\n\"Stop\": {}}}", 3, "`hooks.Stop` is not an array"),
            ("// only this", 1, "only comments"),
            ("{\n\"a\": 1\n\"b\": 2}", 2, ""),
        ] {
            let problem = claude::setup::HOOKS.add(text, OURS).unwrap_err();
            assert_eq!(problem.line, line, "{text}: {problem:?}");
            assert!(problem.message.contains(said), "{problem:?}");
        }
    }
}
