//! Codex: entries in `hooks.json` of its home, and its trust in them, which stands in `config.toml`.
//!
//! A hook is trusted under its place: file, event, number of the group, number in the group. Where entries move, because
//! tine's go, the trust in other people's hooks moves along.

use std::path::Path;

use agents::codex::KnownHook;
use toml_edit::{DocumentMut, Item, Table, TableLike, value};
use transcript::Agent;

use super::file::{self, Edit};
use super::hooks::{self, Found};
use super::jsonc::{self, Problem};
use super::server;
use super::{Action, Change, Scope, SetupPlan, SetupRequest, Step, bad};
use crate::Tine;
use crate::error::{Error, Result};

/// What happens to the trust in hooks when their file changes: old and new ends of keys; nothing for those that go.
pub(super) type Moves = Vec<(String, Option<String>)>;

impl Tine {
    /// Decides what is done for Codex.
    pub(super) fn plan_codex(&self, request: &SetupRequest, plan: &mut SetupPlan) -> Result<()> {
        if let Some(scope) = request.scope.filter(|scope| *scope != Scope::User) {
            return Err(Error::NoSuchScope {
                agent: Agent::Codex,
                scope: if scope == Scope::Project { "for a project" } else { "as a plugin" },
            });
        }
        let home = self.store(Agent::Codex).home().to_owned();
        let (path, config) = (home.join("hooks.json"), home.join("config.toml"));
        let toml = file::read(&config)?;
        parse(toml.as_deref().unwrap_or_default()).map_err(|problem| bad(&config, problem))?;
        if request.uninstall {
            return self.plan_codex_end(plan, &path, &config, toml);
        }
        let program = self.program(Agent::Codex);
        if program.is_err() {
            let note =
                "Codex was not found, so its trust in the hooks cannot be noted; run this again when it is there";
            plan.notes.push((Agent::Codex, note.into()));
        }
        let before = file::read(&path)?;
        let step = self.plan_hooks(Agent::Codex, Scope::User, &path, false, &mut plan.notes)?;
        let is_changed = step.is_some();
        let moves = match &step {
            Some(Step { action: Action::Edit(edit), .. }) => moves(before.as_deref(), edit.after.as_deref()),
            _ => Moves::new(),
        };
        plan.steps.extend(step);
        // Starting Codex makes it write to its home; that is left for later where it is clear what to do.
        if program.is_ok() && (is_changed || self.codex_trusts(&path) == Some(false)) {
            let what = vec!["+ Codex's trust in these hooks".to_owned()];
            let change = Change { agent: Agent::Codex, scope: Scope::User, path: config.clone(), what };
            plan.steps.push(Step { change, action: Action::Trust { hooks: path, moves } });
        }
        self.plan_codex_server(&config, toml.as_deref(), plan)
    }

    fn plan_codex_end(&self, plan: &mut SetupPlan, path: &Path, config: &Path, toml: Option<String>) -> Result<()> {
        let before = file::read(path)?;
        let step = self.plan_hooks(Agent::Codex, Scope::User, path, true, &mut plan.notes)?;
        let after = match &step {
            Some(Step { action: Action::Edit(edit), .. }) => edit.after.clone(),
            _ => before.clone(),
        };
        let has_hooks = step.is_some();
        plan.steps.extend(step);
        let Some(toml) = toml else {
            return Ok(());
        };
        let moves = moves(before.as_deref(), after.as_deref());
        let receipt = self.registry().receipt(config);
        let kept = receipt.as_ref().map(|receipt| receipt.kept.clone()).unwrap_or_default();
        let was = file::as_it_was(&self.registry(), config, &toml);
        let bare = server::without_codex_server(&toml, &kept).map_err(|problem| bad(config, problem))?;
        let has_server = bare != toml;
        let structural = moved(&bare, path, &moves, &kept).map_err(|problem| bad(config, problem))?;
        if !has_hooks && !has_server {
            return Ok(());
        }
        let after = match was {
            // Trust in others' hooks that moved is not what it was.
            Some(was) if moves.iter().all(|(_, new)| new.is_none()) => was,
            _ if structural.trim().is_empty() && receipt.is_some_and(|receipt| receipt.is_ours) => None,
            _ => Some(structural),
        };
        if after.as_deref() != Some(&toml) {
            let what = [("- Codex's trust in these hooks", has_hooks), ("- the MCP server", has_server)];
            let what = what.iter().filter(|(_, is_so)| *is_so).map(|(what, _)| (*what).to_owned()).collect();
            let change = Change { agent: Agent::Codex, scope: Scope::User, path: config.to_owned(), what };
            let edit = Edit { path: config.to_owned(), before: Some(toml), after, kept: None, is_shared: false };
            plan.steps.push(Step { change, action: Action::Edit(edit) });
        }
        Ok(())
    }

    /// Notes Codex's trust. A Codex that cannot be asked has no hooks, and gets none.
    pub(super) fn trust_or_take_back(&self, path: &Path, config: &Path, moves: &Moves) -> Result<()> {
        let trusted = self.trust(path, config, moves);
        if let Err(Error::NoHooks { .. }) = trusted
            && let Some(Step { action: Action::Edit(edit), .. }) =
                self.plan_hooks(Agent::Codex, Scope::User, path, true, &mut Vec::new())?
        {
            file::apply(&mut self.registry(), &edit, self.context().clock.now())?;
        }
        trusted
    }

    /// Notes in Codex's configuration that tine's hooks are trusted. The hashes are Codex's own.
    pub(super) fn trust(&self, path: &Path, config: &Path, moves: &Moves) -> Result<()> {
        let program = self.program(Agent::Codex)?;
        let home = self.store(Agent::Codex).home();
        let (known, complaints) =
            agents::codex::hooks(&program, home).map_err(|source| Error::NoHooks { agent: Agent::Codex, source })?;
        let ours = ours(file::read(path)?.as_deref());
        let known: Vec<&KnownHook> = known.iter().filter(|hook| is_ours(hook, path, &ours)).collect();
        if known.is_empty() {
            let reason = complaints.first().map(|reason| format!(": {reason}")).unwrap_or_default();
            self.warn(format!("Codex does not see the hooks{reason}"));
        } else {
            let unknown = ours.iter().filter(|entry| !known.iter().any(|hook| hook.command == entry.command));
            let unknown: Vec<&str> = unknown.map(|entry| entry.key.as_str()).collect();
            if !unknown.is_empty() {
                self.warn(format!("this version of Codex does not know {}", unknown.join(", ")));
            }
        }
        let before = file::read(config)?;
        let text = before.clone().unwrap_or_default();
        let kept = match self.registry().receipt(config) {
            Some(receipt) => receipt.kept,
            None => containers(&text),
        };
        let edited = moved(&text, path, moves, &kept).and_then(|text| trusting(&text, &known));
        let after = edited.map_err(|problem| bad(config, problem))?;
        if after == text {
            return Ok(());
        }
        let edit = Edit { path: config.to_owned(), before, after: Some(after), kept: Some(kept), is_shared: false };
        file::apply(&mut self.registry(), &edit, self.context().clock.now())
    }

    /// Says so where Codex's configuration switches hooks off.
    pub(super) fn codex_switch(&self) -> Result<Option<String>> {
        let config = self.store(Agent::Codex).home().join("config.toml");
        let document = parse(&file::read(&config)?.unwrap_or_default()).map_err(|problem| bad(&config, problem))?;
        let told = || format!("hooks are switched off in {}: `features.hooks`", config.display());
        Ok((!switched_on(&document)).then(told))
    }

    /// Whether Codex trusts all of tine's hooks that it knows; nothing where it cannot be asked.
    pub(super) fn codex_trusts(&self, path: &Path) -> Option<bool> {
        let program = self.program(Agent::Codex).ok()?;
        let (known, _) = agents::codex::hooks(&program, self.store(Agent::Codex).home()).ok()?;
        let ours = ours(file::read(path).ok()?.as_deref());
        let mut known = known.iter().filter(|hook| is_ours(hook, path, &ours)).peekable();
        Some(known.peek().is_some() && known.all(|hook| hook.is_trusted && hook.is_enabled))
    }
}

/// Whether a configuration leaves hooks switched on.
fn switched_on(document: &DocumentMut) -> bool {
    let feature = |name: &str| document.get("features").and_then(|features| features.get(name)).and_then(Item::as_bool);
    feature("hooks") != Some(false) && feature("codex_hooks") != Some(false)
}

fn ours(text: Option<&str>) -> Vec<Found> {
    all(text).into_iter().filter(|entry| entry.program.is_some()).collect()
}

fn all(text: Option<&str>) -> Vec<Found> {
    let (_, text) = file::split_mark(text.unwrap_or_default());
    let root = jsonc::parse(text).ok().flatten();
    root.map(|root| hooks::found(&root, Agent::Codex)).unwrap_or_default()
}

fn is_ours(hook: &KnownHook, path: &Path, ours: &[Found]) -> bool {
    file::real(&hook.source) == file::real(path) && ours.iter().any(|entry| entry.command == hook.command)
}

/// How the places of hooks change from one text of `hooks.json` to another.
fn moves(before: Option<&str>, after: Option<&str>) -> Moves {
    let (before, after) = (all(before), all(after));
    let mut moves = Moves::new();
    for entry in before.iter().filter(|entry| entry.program.is_some()) {
        let stays = after.iter().any(|new| new.program.is_some() && place(new) == place(entry));
        if !stays {
            moves.push((place(entry), None));
        }
    }
    let others =
        |all: &[Found]| -> Vec<Found> { all.iter().filter(|entry| entry.program.is_none()).cloned().collect() };
    // Nobody else's entry is touched, so they are the same in the same order.
    for (old, new) in others(&before).iter().zip(&others(&after)) {
        if place(old) != place(new) {
            moves.push((place(old), Some(place(new))));
        }
    }
    moves
}

/// How Codex's keys end: `session_start:0:0`.
fn place(entry: &Found) -> String {
    let mut event = String::new();
    for c in entry.key.chars() {
        if c.is_ascii_uppercase() && !event.is_empty() {
            event.push('_');
        }
        event.push(c.to_ascii_lowercase());
    }
    format!("{event}:{}:{}", entry.group, entry.hook)
}

pub(super) fn parse(text: &str) -> std::result::Result<DocumentMut, Problem> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        Problem { line: text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1, message }
    })
}

/// The tables that hold trust, as they are named in `kept`.
pub(super) fn containers(text: &str) -> Vec<String> {
    let Ok(document) = parse(text) else {
        return Vec::new();
    };
    let is_written = |item: &Item| !item.as_table().is_some_and(Table::is_implicit);
    let hooks = document.get("hooks");
    let state = hooks.and_then(|hooks| hooks.get("state"));
    let mut kept = Vec::new();
    kept.extend(hooks.filter(|item| is_written(item)).map(|_| "hooks".to_owned()));
    kept.extend(state.filter(|item| is_written(item)).map(|_| "hooks/state".to_owned()));
    kept
}

/// A configuration in which trust has followed the hooks of the file at `path`.
fn moved(text: &str, path: &Path, moves: &Moves, kept: &[String]) -> std::result::Result<String, Problem> {
    let mut document = parse(text)?;
    let files = [path.to_string_lossy().into_owned(), file::real(path).to_string_lossy().into_owned()];
    let Some(state) = state(&mut document) else {
        return Ok(text.to_owned());
    };
    let mut taken = Vec::new();
    for (old, new) in moves {
        for file in &files {
            if let Some(item) = state.remove(&format!("{file}:{old}")) {
                taken.push((new.as_ref().map(|new| format!("{file}:{new}")), item));
            }
        }
    }
    if taken.is_empty() {
        return Ok(text.to_owned());
    }
    for (new, item) in taken {
        if let Some(new) = new {
            state.insert(&new, item);
        }
    }
    let is_empty = state.is_empty();
    let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
    if is_empty && !is_kept("hooks/state") {
        let hooks = document.get_mut("hooks").and_then(Item::as_table_like_mut);
        let is_bare = hooks.is_some_and(|hooks| hooks.remove("state").is_some() && hooks.is_empty());
        if is_bare && !is_kept("hooks") {
            document.remove("hooks");
        }
    }
    Ok(document.to_string())
}

/// A configuration that trusts these hooks.
fn trusting(text: &str, hooks: &[&KnownHook]) -> std::result::Result<String, Problem> {
    let mut document = parse(text)?;
    let trusted = |document: &mut DocumentMut, hook: &KnownHook| {
        let entry = state(document).and_then(|state| state.get(&hook.key));
        entry.and_then(|entry| entry.get("trusted_hash")).and_then(Item::as_str) == Some(&hook.hash)
    };
    for hook in hooks {
        if trusted(&mut document, hook) {
            continue;
        }
        // At the end of the file, where Codex itself would put it.
        let position = last_position(document.as_table()) + 1;
        let refused = |name: &str| Problem { line: 1, message: format!("`{name}` is not a table") };
        let table = document.as_table_mut();
        if !table.contains_key("hooks") {
            table.insert("hooks", Item::Table(implicit()));
        }
        let all = table.get_mut("hooks").and_then(Item::as_table_like_mut).ok_or_else(|| refused("hooks"))?;
        if !all.contains_key("state") {
            all.insert("state", Item::Table(implicit()));
        }
        let state = all.get_mut("state").and_then(Item::as_table_like_mut).ok_or_else(|| refused("hooks.state"))?;
        match state.get_mut(&hook.key).and_then(Item::as_table_like_mut) {
            Some(entry) => drop(entry.insert("trusted_hash", value(&hook.hash))),
            None => {
                let mut entry = Table::new();
                entry.set_position(Some(position));
                entry.insert("trusted_hash", value(&hook.hash));
                entry.decor_mut().set_prefix("\n");
                state.insert(&hook.key, Item::Table(entry));
            }
        }
    }
    Ok(document.to_string())
}

pub(super) fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn state(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    document.get_mut("hooks")?.as_table_like_mut()?.get_mut("state")?.as_table_like_mut()
}

pub(super) fn last_position(table: &Table) -> isize {
    let below = |item: &Item| match item {
        Item::Table(table) => last_position(table),
        Item::ArrayOfTables(tables) => tables.iter().map(last_position).max().unwrap_or(0),
        _ => 0,
    };
    let inner = table.iter().map(|(_, item)| below(item)).max().unwrap_or(0);
    inner.max(table.position().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/nowhere/.codex/hooks.json";

    fn hook(place: &str) -> KnownHook {
        KnownHook {
            key: format!("{FILE}:{place}"),
            command: String::new(),
            source: FILE.into(),
            hash: format!("sha256:{place}"),
            is_trusted: false,
            is_enabled: true,
        }
    }

    #[test]
    fn trust_comes_and_goes_and_leaves_the_rest_alone() {
        for text in [
            "",
            "# a comment\nmodel = \"m\"   # odd\n\n[features]\nhooks   =  true\n",
            "[projects.\"/a\"]\ntrust_level = \"trusted\"\n[model_providers.x]\nname = 'x'\n[projects.\"/b\"]\nt = 1 # end\n# the end\n",
            "[hooks]\n# mine\n[[hooks.Stop]]\nhooks = []\n",
            "[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\nenabled = false\n",
            "hooks = { state = {} }\n",
        ] {
            let known = [hook("session_start:0:0"), hook("stop:1:0")];
            let with = trusting(text, &known.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(trusting(&with, &known.iter().collect::<Vec<_>>()).unwrap(), with);
            let mut read = parse(&with).unwrap_or_else(|error| panic!("{error:?}: {with}"));
            for hook in &known {
                assert_eq!(
                    state(&mut read).unwrap().get(&hook.key).unwrap()["trusted_hash"].as_str(),
                    Some(&*hook.hash)
                );
            }
            let other = KnownHook { hash: "sha256:other".into(), ..hook("stop:1:0") };
            let changed = trusting(&with, &[&other]).unwrap();
            assert_eq!(changed, with.replace("sha256:stop:1:0", "sha256:other"));
            let gone: Moves = vec![("session_start:0:0".into(), None), ("stop:1:0".into(), None)];
            let without = moved(&with, Path::new(FILE), &gone, &containers(text)).unwrap();
            assert_eq!(without, text, "from {with}");
        }
    }

    #[test]
    fn trust_in_others_moves_with_their_hooks() {
        let group = |command: &str| format!("{{\"hooks\":[{{\"command\":\"{command}\"}}]}}");
        let ours = group("/opt/tine hook stop --agent codex");
        let text = |groups: &[&str]| format!("{{\"hooks\":{{\"Stop\":[{}]}}}}", groups.join(","));
        let (first, second) = (group("first"), group("second"));
        let moves = moves(Some(&text(&[&first, &ours, &second])), Some(&text(&[&first, &second])));
        assert_eq!(moves, [("stop:1:0".into(), None), ("stop:2:0".into(), Some("stop:1:0".into()))]);
        let known = [hook("stop:0:0"), hook("stop:1:0"), hook("stop:2:0")];
        let before = trusting("", &known.iter().collect::<Vec<_>>()).unwrap();
        let after = moved(&before, Path::new(FILE), &moves, &[]).unwrap();
        let table: toml::Table = toml::from_str(&after).unwrap();
        let hash = |place: &str| table["hooks"]["state"][&format!("{FILE}:{place}")]["trusted_hash"].clone();
        assert_eq!((hash("stop:0:0"), hash("stop:1:0")), ("sha256:stop:0:0".into(), "sha256:stop:2:0".into()));
        assert_eq!(table["hooks"]["state"].as_table().unwrap().len(), 2);
    }
}
