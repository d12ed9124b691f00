//! `tine setup`: other people's files are edited, so most of this is about what is not changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use testkit::Tmux;

use crate::world::{LOGIN, World};

pub(crate) const TINE: &str = env!("CARGO_BIN_EXE_tine");

/// Settings as somebody may have them: comments, tabs, last commas, hooks of their own, a text that looks like a comment.
pub(crate) const SETTINGS: &str = "// mine\n{\n\t\"model\": \"opus\",   // the best\n\t\"env\": {\"A\": \"// not a comment\", \"B\":1e3},\n\n\t\"hooks\": {\n\t\t/* at the end of a turn */\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": \"notify-send done\"}]}, // ding\n\t\t],\n\t\t\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"/opt/guard hook stop --agent claude\"}]}]\n\t}, // hooks\n\n\t\"permissions\": {},\n\t// the end\n}\n";

const CONFIG: &str =
    "# mine\nmodel = \"m\"   # odd\n\n[projects.\"/a\"]\ntrust_level = 'trusted'\n[features]\nplugins=false # last\n";

pub(crate) fn claude(world: &World) -> PathBuf {
    world.sandbox.claude_home().join("settings.json")
}

fn codex(world: &World, name: &str) -> PathBuf {
    world.sandbox.codex_home().join(name)
}

/// A file's text without what differs from run to run.
pub(crate) fn text(world: &World, path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    equal(world, &text)
}

pub(crate) fn equal(world: &World, text: &str) -> String {
    text.replace(TINE, "[TINE]").replace(&*world.sandbox.root().to_string_lossy(), "[ROOT]")
}

/// A Codex that lists tine's hooks as the real one does, at these places.
fn install_codex(world: &World, places: &str) {
    let script = format!(
        r#"#!/bin/bash
while IFS= read -r line; do case "$line" in
*'"initialize"'*) echo '{{"id":1,"result":{{}}}}' ;;
*hooks/list*)
    hooks=
    while read -r word place; do
        command="[ -x {TINE} ] && exec {TINE} hook $word --agent codex || exit 0"
        grep -qsF "$command" "$CODEX_HOME/hooks.json" || continue
        key="$CODEX_HOME/hooks.json:$place" status=untrusted
        grep -qsF "\"$key\"" "$CODEX_HOME/config.toml" && status=trusted
        hooks="$hooks,{{\"key\":\"$key\",\"command\":\"$command\",\"sourcePath\":\"$CODEX_HOME/hooks.json\",\"currentHash\":\"sha256:$word\",\"trustStatus\":\"$status\",\"enabled\":true}}"
    done <<< "{places}"
    echo '{{"id":2,"result":{{"data":[{{"hooks":['"${{hooks#,}}"'],"warnings":[],"errors":[]}}]}}}}' ;;
esac; done
"#
    );
    world.sandbox.script("codex", &script);
}

const PLACES: &str = "session-start session_start:0:0\nsession-end session_end:0:0\nuser-prompt-submit user_prompt_submit:0:0\n\
                      stop stop:0:0\npermission-request permission_request:0:0";

/// A Claude Code that installs plugins as the real one does, and writes the settings anew when it does.
pub(crate) fn install_claude(world: &World) {
    let script = r#"#!/bin/bash
settings=$HOME/.claude/settings.json
echo "$*" >> "$HOME/asked"
case "$*" in
"plugin marketplace add "*) [ -f "$4/.claude-plugin/marketplace.json" ] || exit 1 ;;
"plugin install tine@tine") [ -e "$HOME/refuse" ] && { echo "it does not want to" >&2; exit 1; }
    echo '{"rewritten": true, "enabledPlugins": {"tine@tine": true}}' > "$settings" ;;
"plugin uninstall tine@tine") echo '{"rewritten": true, "enabledPlugins": {}}' > "$settings" ;;
esac
"#;
    world.sandbox.script("claude", script);
}

#[track_caller]
pub(crate) fn done(world: &World, arguments: &[&str]) -> String {
    let output = world.run([&["setup"], arguments, &["--yes"]].concat());
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{}", output.err);
    equal(world, &output.err)
}

/// Lets an agent tell something at a time.
fn hear(world: &World, time: &str, arguments: &[&str]) {
    let mut command = world.command(arguments);
    let mut child = command.env("TINE_NOW", time).stdin(Stdio::piped()).spawn().expect("tine");
    let payload = format!(r#"{{"session_id":"{LOGIN}","cwd":"/","hook_event_name":"Stop"}}"#);
    child.stdin.take().expect("a pipe").write_all(payload.as_bytes()).expect("a payload");
    assert!(child.wait().expect("an end").success());
}

/// Every file in the agents' homes, to see that they are as before.
pub(crate) fn files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    world.agents_files()
}

#[test]
fn entries_are_added_to_what_is_there_and_taken_out_again() {
    let world = World::empty();
    install_codex(&world, &PLACES.replace("stop:0:0", "stop:1:0"));
    let own = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}"#;
    world.sandbox.write(claude(&world), SETTINGS);
    world.sandbox.write(codex(&world, "hooks.json"), own);
    world.sandbox.write(codex(&world, "config.toml"), CONFIG);
    let before = files(&world);

    insta::assert_snapshot!("setup_told", done(&world, &[]));
    insta::assert_snapshot!("setup_settings", text(&world, &claude(&world)));
    insta::assert_snapshot!("setup_hooks", text(&world, &codex(&world, "hooks.json")));
    insta::assert_snapshot!("setup_config", text(&world, &codex(&world, "config.toml")));
    let backup = claude(&world).with_file_name("settings.json.tine-backup-20261115T120000Z");
    assert_eq!(fs::read_to_string(backup).unwrap(), SETTINGS);

    // Once more, and nothing happens.
    let after = files(&world);
    let output = done(&world, &[]);
    assert!(output.ends_with("codex: already set up\n"), "{output}");
    assert_eq!(files(&world), after);

    insta::assert_snapshot!("setup_taken_out", done(&world, &["--uninstall"]));
    assert_eq!(files(&world), before);
    let output = done(&world, &["--uninstall"]);
    assert_eq!(output, "claude: nothing to remove\ncodex: nothing to remove\n");
}

#[test]
fn what_was_not_there_is_made_and_goes_again() {
    let world = World::empty();
    install_codex(&world, PLACES);
    world.sandbox.script("claude", "#!/bin/sh\n");
    for _ in 0..2 {
        done(&world, &[]);
        let settings: Value = serde_json::from_str(&fs::read_to_string(claude(&world)).unwrap()).unwrap();
        assert_eq!(settings["hooks"].as_object().unwrap().len(), 6);
        assert_eq!(fs::metadata(claude(&world)).unwrap().permissions().mode() & 0o777, 0o600);
        done(&world, &["--uninstall"]);
        assert!(files(&world).is_empty(), "{:?}", files(&world).keys());
        assert!(!world.sandbox.claude_home().exists());
    }
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let world = World::empty();
    install_codex(&world, PLACES);
    world.sandbox.write(claude(&world), "{\n  \"hooks\": {},\n  \"a\": 1\n}\n");
    world.sandbox.write(codex(&world, "config.toml"), CONFIG);
    done(&world, &[]);
    // The agents write their files, too, and drop formatting.
    let settings = fs::read_to_string(claude(&world)).unwrap();
    let mut settings: Value = serde_json::from_str(&settings).unwrap();
    settings["theme"] = "dark".into();
    fs::write(claude(&world), settings.to_string()).unwrap();
    let config = codex(&world, "config.toml");
    let grown = format!("{}\n[projects.\"/b\"]\ntrust_level = \"trusted\"\n", fs::read_to_string(&config).unwrap());
    fs::write(&config, grown).unwrap();
    // Somebody's hook came behind tine's, and is trusted there.
    let hooks = codex(&world, "hooks.json");
    let mut entries: Value = serde_json::from_str(&fs::read_to_string(&hooks).unwrap()).unwrap();
    let theirs = serde_json::json!({"hooks": [{"type": "command", "command": "theirs"}]});
    entries["hooks"]["Stop"].as_array_mut().unwrap().push(theirs);
    fs::write(&hooks, entries.to_string()).unwrap();
    let key = |place: &str| format!("[hooks.state.\"{}:{place}\"]\n", hooks.display());
    let trust =
        format!("{}\n{}trusted_hash = \"sha256:theirs\"\n", fs::read_to_string(&config).unwrap(), key("stop:1:0"));
    fs::write(&config, trust).unwrap();

    done(&world, &["--uninstall"]);
    assert_eq!(fs::read_to_string(claude(&world)).unwrap(), r#"{"hooks":{},"a":1,"theme":"dark"}"#);
    let left = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}"#;
    assert_eq!(fs::read_to_string(&hooks).unwrap(), left);
    let expected = format!(
        "{CONFIG}\n[projects.\"/b\"]\ntrust_level = \"trusted\"\n\n{}trusted_hash = \"sha256:theirs\"\n",
        key("stop:0:0")
    );
    assert_eq!(fs::read_to_string(&config).unwrap(), expected);
}

#[test]
fn an_older_tine_is_replaced() {
    let world = World::empty();
    let old = r#"{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "'/old place/tine' hook stop --agent claude"}, {"type": "command", "command": "mine"}]}]}}"#;
    world.sandbox.write(claude(&world), old);
    let output = done(&world, &["claude"]);
    assert!(output.contains("~ Stop call [TINE]") && output.contains("+ SessionStart, SessionEnd"), "{output}");
    let text = text(&world, &claude(&world));
    let new = "[ -x [TINE] ] && exec [TINE] hook stop --agent claude || exit 0";
    let expected = old.replace("'/old place/tine' hook stop --agent claude", new).replace("}]}]}}", "}]}]");
    assert!(text.starts_with(&expected), "{text}");
    assert!(!text.contains("/old place"));
    // What was there before was an older tine's; it does not come back.
    done(&world, &["claude", "--uninstall"]);
    let left = r#"{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "mine"}]}]}}"#;
    assert_eq!(fs::read_to_string(claude(&world)).unwrap(), left);
}

#[test]
fn links_and_modes_stay() {
    let world = World::empty();
    let dotfiles = world.sandbox.write(world.sandbox.root().join("dotfiles/claude.json"), "{\"a\": 1}");
    fs::set_permissions(&dotfiles, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(world.sandbox.claude_home()).unwrap();
    std::os::unix::fs::symlink("../../dotfiles/claude.json", claude(&world)).unwrap();
    done(&world, &["claude"]);
    assert!(claude(&world).is_symlink());
    assert_eq!(fs::read_link(claude(&world)).unwrap(), Path::new("../../dotfiles/claude.json"));
    assert!(fs::read_to_string(&dotfiles).unwrap().contains("session-start"));
    // The backup is where the file is, and as private.
    for entry in fs::read_dir(dotfiles.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "{}", path.display());
    }
    done(&world, &["claude", "--uninstall"]);
    assert!(claude(&world).is_symlink());
    assert_eq!(fs::read_to_string(&dotfiles).unwrap(), "{\"a\": 1}");
    assert_eq!(fs::read_dir(dotfiles.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn entries_call_the_tine_on_the_path_if_it_is_this_one() {
    let world = World::empty();
    let link = world.sandbox.link("tine", Path::new(TINE));
    done(&world, &["claude"]);
    let settings = fs::read_to_string(claude(&world)).unwrap();
    assert!(settings.contains(&format!("exec {} hook stop --agent claude", link.display())), "{settings}");
    assert_eq!(world.json(["setup", "claude", "--status", "--json"])["agents"][0]["places"][0]["is_this"], true);
    // Another one is another one.
    fs::remove_file(&link).unwrap();
    world.sandbox.script("tine", "#!/bin/sh\n");
    assert!(done(&world, &["claude"]).contains("~ SessionStart, SessionEnd, UserPromptSubmit, Stop"));
    assert!(fs::read_to_string(claude(&world)).unwrap().contains(&format!("exec {TINE} hook stop")));
    done(&world, &["claude", "--uninstall"]);
    assert!(files(&world).is_empty());
}

#[test]
fn what_cannot_be_understood_or_written_is_left_alone() {
    let check = |settings: &str, config: &str, said: &str| {
        let world = World::empty();
        install_codex(&world, PLACES);
        world.sandbox.write(claude(&world), settings);
        world.sandbox.write(codex(&world, "config.toml"), config);
        let before = files(&world);
        let output = world.run(["setup", "--yes"]);
        assert_eq!(output.code, 1);
        assert!(output.err.contains(said), "{}", output.err);
        assert_eq!(files(&world), before);
    };
    check("{\n  \"a\": 1,\n  \"b\": \n}", CONFIG, "settings.json, line 4: ");
    check("{\n  \"hooks\": [\"x\"]\n}", CONFIG, "settings.json, line 2: `hooks` is not an object");
    check("[]", CONFIG, "settings.json, line 1: the top level is not an object");
    check("{\n  'a': 1\n}", CONFIG, "settings.json, line 2: ");
    check("{}", "model = 1\nmodel = 2\n", "config.toml, line 2: ");
    check("{}", "\n\n[oops\n", "config.toml, line 3: ");

    let world = World::empty();
    world.sandbox.write(claude(&world), "{}");
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o444)).unwrap();
    insta::assert_snapshot!("setup_read_only", world.run(["setup", "claude", "--yes"]).whole());
    // Somebody who may write anywhere cannot be kept out by a folder's mode.
    let folder = world.sandbox.claude_home();
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.join("probe"), "").is_err() {
        assert_eq!(world.run(["setup", "claude", "--yes"]).code, 1);
        assert_eq!(files(&world).len(), 1);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn several_at_once_do_it_once() {
    let world = World::empty();
    install_codex(&world, PLACES);
    world.sandbox.write(claude(&world), SETTINGS);
    let start = || {
        let mut command = world.command(["setup", "--yes"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine")
    };
    let running: Vec<_> = (0..8).map(|_| start()).collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let settings = fs::read_to_string(claude(&world)).unwrap();
    assert_eq!(settings.matches("hook session-start --agent claude").count(), 1, "{settings}");
    let names: Vec<String> =
        files(&world).keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["settings.json", "settings.json.tine-backup-20261115T120000Z", "config.toml", "hooks.json"]);
    done(&world, &["--uninstall"]);
    assert_eq!(fs::read_to_string(claude(&world)).unwrap(), SETTINGS);
}

#[test]
fn somebody_is_asked_where_somebody_is() {
    let world = World::empty();
    world.sandbox.write(claude(&world), "{}");
    let before = files(&world);
    insta::assert_snapshot!("setup_nobody_to_ask", world.run(["setup", "claude"]).whole());
    assert_eq!(files(&world), before);
    let tmux = Tmux::new(&world.sandbox);
    for (answer, is_done) in [("n", false), ("y", true)] {
        let pane = tmux.run(&world.command(["setup", "claude"]));
        pane.wait_for_text("Make these changes? [y/N]");
        pane.submit(answer);
        pane.wait_for_text(if is_done { "claude: set up" } else { "cancelled" });
        assert_eq!(files(&world) != before, is_done);
    }
}

#[test]
fn how_things_stand_is_told() {
    let world = World::empty();
    install_codex(&world, PLACES);
    world.sandbox.script("claude", "#!/bin/sh\n");
    insta::assert_snapshot!("setup_status_none", world.run(["setup", "--status"]).whole());
    done(&world, &[]);
    hear(&world, "2026-11-15T11:57:00Z", &["hook", "stop", "--agent", "claude"]);
    insta::assert_snapshot!("setup_status", equal(&world, &world.run(["setup", "--status"]).whole()));
    insta::assert_snapshot!("setup_status_json", equal(&world, &world.run(["setup", "--status", "--json"]).whole()));

    // An entry that calls a program that is gone, and a file that the agent does not take.
    let settings = fs::read_to_string(claude(&world)).unwrap();
    world.sandbox.write(claude(&world), &format!("// hm\n{}", settings.replace(TINE, "/gone/tine")));
    fs::write(codex(&world, "config.toml"), "[features]\nhooks = false\n").unwrap();
    insta::assert_snapshot!("setup_status_broken", equal(&world, &world.run(["setup", "--status"]).whole()));
    let changed = world.json(["setup", "--json", "--yes"]);
    // Claude Code's hooks, Codex's trust in its own, and the server that went with its configuration.
    assert_eq!(changed["changes"].as_array().unwrap().len(), 3, "{changed:#}");
    assert_eq!(changed["agents"][0]["places"][0]["is_this"], true, "{changed:#}");
}

#[test]
fn a_codex_without_hooks_gets_none() {
    let world = World::empty();
    world.sandbox.write(codex(&world, "config.toml"), CONFIG);
    let before = files(&world);
    world.sandbox.script("codex", "#!/bin/bash\nread -r l; echo '{\"id\":1,\"result\":{}}'; read -r l; read -r l\necho '{\"id\":2,\"error\":{\"message\":\"unknown method\"}}'\n");
    insta::assert_snapshot!("setup_no_hooks", world.run(["setup", "codex", "--yes"]).whole().replace(TINE, "[TINE]"));
    assert_eq!(files(&world), before);
    // Without the program, the hooks wait for trust.
    fs::remove_file(world.sandbox.bin().join("codex")).unwrap();
    assert!(done(&world, &["codex"]).contains("run this command again after you install it"));
    install_codex(&world, PLACES);
    assert_eq!(world.json(["setup", "codex", "--status", "--json"])["agents"][0]["installed"], false);
    assert!(done(&world, &["codex"]).contains("+ Codex's trust"));
    assert_eq!(world.json(["setup", "codex", "--status", "--json"])["agents"][0]["installed"], true);
}

/// What an agent's shell does with an entry: its exit code and all that it says.
pub(crate) fn run_entry(world: &World, text: &str) -> (Option<i32>, String) {
    let settings: Value = serde_json::from_str(text).unwrap();
    let entry = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let mut shell: std::process::Command = world.sandbox.command("sh");
    let ran = shell.args(["-c", entry]).stdin(Stdio::null()).current_dir(&world.shop).output().unwrap();
    (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

#[test]
fn a_tine_that_is_gone_is_not_missed() {
    let world = World::empty();
    let copy = world.sandbox.root().join("it's here/tine");
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    let copied = world.sandbox.command("cp").arg(TINE).arg(&copy).status().unwrap();
    assert!(copied.success());
    let mut command: std::process::Command = world.sandbox.command(&copy);
    assert!(command.args(["setup", "claude", "--yes"]).output().unwrap().status.success());
    let settings = fs::read_to_string(claude(&world)).unwrap();
    let quiet = (Some(0), String::new());
    assert_eq!(run_entry(&world, &settings), quiet);
    let log = world.sandbox.root().join("data/tine/hook.log");
    assert!(log.exists(), "it ran, and found no payload");
    fs::remove_file(&copy).unwrap();
    assert_eq!(run_entry(&world, &settings), quiet);
    // The doctor says what `--status` says.
    let doctor = || {
        let report: Value = serde_json::from_str(&world.run(["doctor", "--json"]).raw).unwrap();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["subject"] == "claude hooks").unwrap()
    };
    assert_eq!(doctor()["verdict"], "bad", "{:#}", doctor());
    assert_eq!(world.json(["setup", "claude", "--status", "--json"])["agents"][0]["installed"], false);
    done(&world, &["claude"]);
    assert_eq!(doctor()["verdict"], "good", "{:#}", doctor());
}

#[test]
fn the_server_comes_and_goes() {
    let world = World::empty();
    let own = world.sandbox.home().join(".claude.json");
    let before = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"db\": {\"command\": \"db-server\"}\n  }\n}\n";
    world.sandbox.write(&own, before);
    done(&world, &["claude"]);
    let servers = |path: &std::path::Path| -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&fs::read_to_string(path).unwrap()).unwrap()["mcpServers"].take()
    };
    assert_eq!(
        servers(&own)["tine"],
        serde_json::json!({"type": "stdio", "command": TINE, "args": ["mcp"], "env": {}})
    );
    assert_eq!(servers(&own)["db"]["command"], "db-server");
    assert_eq!(done(&world, &["claude"]), "claude: already set up\n");
    // What Claude Code notes there meanwhile stays.
    let noted = fs::read_to_string(&own).unwrap().replace(": 3", ": 4");
    fs::write(&own, noted).unwrap();
    done(&world, &["claude", "--uninstall"]);
    assert_eq!(fs::read_to_string(&own).unwrap(), before.replace(": 3", ": 4"));

    // A server that somebody else calls tine is theirs.
    let theirs = r#"{"mcpServers": {"tine": {"command": "trees", "args": ["serve"]}}}"#;
    fs::write(&own, theirs).unwrap();
    assert!(done(&world, &["claude"]).contains("already has a server named `tine` that isn't tine's; left unchanged"));
    done(&world, &["claude", "--uninstall"]);
    assert_eq!(fs::read_to_string(&own).unwrap(), theirs);
}

/// Copies of configuration files stayed behind, and later an empty `"mcpServers": {}`.
#[test]
fn a_killed_setup_leaves_no_copies_behind() {
    let world = World::empty();
    install_codex(&world, PLACES);
    world.sandbox.write(claude(&world), SETTINGS);
    world.sandbox.write(codex(&world, "config.toml"), CONFIG);
    let servers = world.sandbox.home().join(".claude.json");
    world.sandbox.write(&servers, "{\n  \"apiKey\": \"secret\"\n}\n");
    let all = || {
        let mut all = files(&world);
        all.insert(servers.clone(), fs::read_to_string(&servers).unwrap().into_bytes());
        let beside = fs::read_dir(world.sandbox.home()).unwrap().map(|entry| entry.unwrap().path());
        all.extend(beside.filter(|path| path.is_file() && *path != servers).map(|path| (path, Vec::new())));
        all
    };
    let before = all();
    let begun = std::time::Instant::now();
    done(&world, &[]);
    let usual = begun.elapsed();
    done(&world, &["--uninstall"]);
    assert_eq!(all(), before);
    let mut random = testkit::build::Random::new(17);
    let mut killed = 0;
    for _ in 0..40 {
        for words in [&["setup", "--yes"][..], &["setup", "--uninstall", "--yes"]] {
            let mut command = world.command(words);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tine");
            std::thread::sleep(usual.mul_f64(random.fraction()));
            child.kill().unwrap();
            killed += usize::from(!child.wait().unwrap().success());
            // Any command removes the copies, not only the next setup.
            assert_eq!(world.run(["list"]).code, 0);
            let left = all();
            for path in left.keys().filter(|path| path.to_string_lossy().contains(".tine-")) {
                let (original, _) = path.to_str().unwrap().split_once(".tine-backup-").unwrap_or_default();
                let is_of_use = left.get(Path::new(original)) != before.get(Path::new(original));
                assert!(is_of_use, "{} stayed", path.display());
            }
        }
        done(&world, &["--uninstall"]);
        assert_eq!(all(), before);
    }
    assert!(killed > 20, "only {killed} were killed");
}
