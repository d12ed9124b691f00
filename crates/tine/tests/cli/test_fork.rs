//! `tine fork`, `tine undo`, `tine log`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World};

/// Makes a fork and returns what tine says of it.
fn fork(world: &World, arguments: &[&str]) -> Value {
    world.json(["fork"].iter().chain(arguments).copied().chain(["--json"]))
}

fn turns(world: &World, session: &str) -> Value {
    world.json(["show", session, "--json"])["turns"].clone()
}

/// Files that a fork has before it is complete.
pub(crate) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(".tine-") {
            found.push(entry.path());
        }
        if entry.path().is_dir() {
            found.extend(unfinished(&entry.path()));
        }
    }
    found
}

#[test]
fn a_fork_has_its_sources_history_up_to_the_cut() {
    let world = World::new();
    let before = world.agents_files();
    for (source, count) in [(LOGIN, 3), (COOKIE, 3), (EXPORT, 2), (STREAM, 2)] {
        for kept in (1..=count).map(Some).chain([None]) {
            let spec = kept.map_or(source.to_owned(), |kept| format!("{source}@{kept}"));
            let made = fork(&world, &[&spec]);
            let session = &made["session"];
            let id = session["id"].as_str().unwrap();
            assert_eq!(session["turns"], kept.unwrap_or(count));
            assert_eq!(turns(&world, id), turns(&world, &spec), "{spec}");
            let parent = &session["parent"];
            assert_eq!((&parent["id"], &parent["source"]), (&source.into(), &"tine".into()));
            assert_eq!(parent["turn"], kept.unwrap_or(count));
            assert_eq!(made["method"], "copy");
            // It is found by its name like any other session, and can be forked itself.
            let name = session["name"].as_str().unwrap();
            assert_eq!(world.json(["info", name, "--json"])["id"], id);
            assert_eq!(turns(&world, fork(&world, &[name])["session"]["id"].as_str().unwrap()), turns(&world, id));
        }
    }
    for (path, content) in before {
        assert_eq!(fs::read(&path).unwrap(), content, "{}", path.display());
    }
    assert_eq!(unfinished(&world.sandbox.home()), [] as [PathBuf; 0]);
}

#[test]
fn the_plan_says_everything_and_does_nothing() {
    let world = World::new();
    let before = world.agents_files();
    let mut plan = fork(&world, &[&format!("{LOGIN}@2"), "auth-cookie", "--plan"]);
    let id = plan["session"]["id"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(
        "text",
        world
            .run(["fork", &format!("{LOGIN}@2"), "auth-cookie", "--plan"])
            .out
            .lines()
            .filter(|line| !line.contains("as  ") && !line.contains("file") && !line.contains("resume"))
            .collect::<Vec<_>>()
            .join("\n")
    );
    // The new id is different every time.
    plan = serde_json::from_str(&plan.to_string().replace(&id, "[ID]")).unwrap();
    let root = world.sandbox.root().canonicalize().unwrap();
    let text = serde_json::to_string_pretty(&plan).unwrap().replace(&*root.to_string_lossy(), "[ROOT]");
    insta::assert_snapshot!("json", text.replace(&agents::claude::project_folder(&root), "[ROOT]"));
    assert_eq!(world.agents_files(), before);
    assert_eq!(world.json(["log", "--json"]), Value::Array(Vec::new()));
}

#[test]
fn a_fork_can_work_elsewhere() {
    let world = World::new();
    let made = fork(&world, &[LOGIN, "--to", "../blog"]);
    assert_eq!(made["session"]["cwd"], world.blog.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(made["workspace"]["kind"], "existing");
    assert_eq!(world.run_in(&world.blog, ["list"]).out.lines().count(), 1);
    let text = world.run(["fork", LOGIN, "--to", "../blog", "another-one"]);
    assert!(text.out.starts_with("cd [ROOT]/work/blog && TINE_SESSION=another-one claude --resume "), "{}", text.out);
    insta::assert_snapshot!("no such directory", world.run(["fork", LOGIN, "--to", "nowhere"]).whole());
}

#[test]
fn names_are_found_and_kept_apart() {
    let world = World::new();
    let name = |arguments: &[&str]| fork(&world, arguments)["session"]["name"].as_str().unwrap().to_owned();
    assert_eq!(name(&[LOGIN, "auth"]), "auth");
    assert_eq!(name(&["auth"]), "auth-fork-1");
    assert_eq!(name(&["auth"]), "auth-fork-2");
    assert_eq!(name(&["auth-fork-1"]), "auth-fork-1-fork-1");
    assert_eq!(name(&[LOGIN]), "why-do-users-land-on-und-fork-1");
    let long = "x".repeat(64);
    assert_eq!(name(&[LOGIN, &long]), long);
    assert_eq!(name(&[&long]), format!("{}-fork-1", "x".repeat(57)));
    insta::assert_snapshot!("taken", world.run(["fork", LOGIN, "auth"]).whole());
    assert_eq!(world.run(["fork", LOGIN, "Not A Name"]).code, 2);
    insta::assert_snapshot!("no such turn", world.run(["fork", &format!("{LOGIN}@9")]).whole());
    insta::assert_snapshot!("no such session", world.run(["fork", "nobody", "--json"]).whole());
}

#[test]
fn undo_takes_a_fork_back_unless_it_has_grown() {
    let world = World::new();
    let before = world.agents_files();
    let first = fork(&world, &[LOGIN, "first"]);
    fork(&world, &[EXPORT, "second"]);
    let mut log = world.run(["log"]).whole();
    for operation in world.json(["log", "--json"]).as_array().unwrap() {
        log = log.replace(operation["effects"]["session"].as_str().unwrap(), "[ID]");
    }
    insta::assert_snapshot!("log", log);
    insta::assert_snapshot!("undone", world.run(["undo"]).whole());
    assert_eq!(world.run(["info", "second"]).code, 1);
    let path = PathBuf::from(first["session"]["path"].as_str().unwrap());
    crate::test_undo::append(&path, &[crate::test_undo::claude_record(&path, "assistant", "more")]);
    insta::assert_snapshot!("grown", world.run(["undo"]).whole());
    assert!(path.exists());
    assert_eq!(world.run(["undo", "1", "--force"]).code, 0);
    assert_eq!(world.agents_files(), before);
    insta::assert_snapshot!("nothing left", world.run(["undo"]).whole());
    insta::assert_snapshot!("again", world.run(["undo", "1"]).whole());
    assert_eq!(fork(&world, &[LOGIN, "first"])["session"]["name"], "first", "the name is free again");
}

#[test]
fn a_fork_gets_a_worktree_of_its_own() {
    let world = World::new();
    let git = |directory: &Path, arguments: &[&str]| world.sandbox.git(directory, arguments);
    fs::write(world.shop.join("not-committed"), "").unwrap();
    let head = git(&world.shop, &["rev-parse", "HEAD"]);
    let made = fork(&world, &[&format!("{LOGIN}@2"), "cookies", "--worktree", "--yes"]);
    let tree = world.shop.canonicalize().unwrap().with_file_name("shop.worktrees").join("cookies");
    assert_eq!(made["workspace"]["path"], tree.to_str().unwrap());
    assert_eq!((&made["workspace"]["kind"], &made["session"]["branch"]), (&"worktree".into(), &"cookies".into()));
    assert_eq!(made["session"]["cwd"], tree.to_str().unwrap());
    // It begins with the files of turn 2, and nothing says what this one held then.
    let warnings = json!(["the fork lacks files whose content then is unknown: not-committed"]);
    assert_eq!((&made["warnings"], &made["code"]["turn"]), (&warnings, &json!(2)), "{made:#}");
    assert_eq!(git(&tree, &["rev-parse", "HEAD"]).trim(), head.trim());
    assert_eq!(git(&tree, &["branch", "--show-current"]).trim(), "cookies");
    // The fork belongs to the repository's sessions, and can be forked from inside the worktree.
    assert_eq!(world.run_in(&tree, ["list"]).out.lines().count(), 5);
    let second = fork(&world, &["cookies", "-w", "try/again"]);
    assert!(second["workspace"]["path"].as_str().unwrap().ends_with("shop.worktrees/try-again"), "{second:#}");
    assert_eq!(world.run(["undo"]).code, 0);
    assert!(!tree.with_file_name("try-again").exists());
    assert!(!git(&world.shop, &["branch"]).contains("try/again"));
    // What was worked on is kept.
    fs::write(tree.join("work"), "").unwrap();
    insta::assert_snapshot!("worked in", world.run(["undo"]).whole());
    assert!(tree.join("work").exists());
    assert_eq!(world.run(["undo", "--force"]).code, 0);
    assert!(!tree.exists() && !tree.parent().unwrap().exists());
    assert_eq!(git(&world.shop, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_git_refuses_is_told_apart() {
    let world = World::new();
    let git = |arguments: &[&str]| world.sandbox.git(&world.shop, arguments);
    let files = world.agents_files();
    let refused = |what: &str, arguments: &[&str]| {
        let output = world.run(["fork", LOGIN].iter().chain(arguments));
        insta::assert_snapshot!(what, output.whole());
        assert_eq!(world.agents_files(), files, "{what}");
    };
    git(&["branch", "taken"]);
    refused("branch exists", &["-w", "taken"]);
    refused("branch checked out", &["-w", "main"]);
    refused("bad branch", &["-w", "a..b"]);
    refused("branch like an option", &["--worktree=--force"]);
    fs::create_dir_all(world.shop.with_file_name("shop.worktrees").join("blocked")).unwrap();
    refused("in the way", &["-w", "blocked"]);
    fs::write(world.shop.join(".git/MERGE_HEAD"), git(&["rev-parse", "HEAD"])).unwrap();
    refused("in a merge", &["-w", "fine"]);
    fs::remove_file(world.shop.join(".git/MERGE_HEAD")).unwrap();
    git(&["checkout", "--quiet", "--detach"]);
    refused("detached", &["-w", "fine"]);
    fs::remove_dir_all(world.shop.join(".git")).unwrap();
    refused("no repository", &["-w", "fine"]);
    assert_eq!(world.json(["log", "--json"]), Value::Array(Vec::new()));
}

/// Each of them would make the same worktree; the ones that come too late must not remove the first one's.
#[test]
fn forks_at_once_do_not_take_each_others_worktree() {
    let world = World::new();
    let children: Vec<_> = (0..6)
        .map(|number| {
            let mut command = world.command(["fork", LOGIN, &format!("fork-{number}"), "-w", "same", "--json"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let made = outputs.iter().filter(|output| output.status.success()).count();
    assert_eq!(made, 1, "{outputs:?}");
    let tree = world.shop.canonicalize().unwrap().with_file_name("shop.worktrees").join("same");
    assert_eq!(world.sandbox.git(&tree, ["branch", "--show-current"]).trim(), "same");
    assert_eq!(world.sandbox.git(&tree, ["status", "--porcelain"]), "");
    assert_eq!(world.json(["list", "--all", "--json"]).as_array().unwrap().len(), 5);
    assert_eq!(unfinished(&world.sandbox.home()), [] as [PathBuf; 0]);
}

/// Older clients keep a list of a project's sessions.
#[test]
fn a_list_of_sessions_that_is_there_gets_the_fork() {
    let world = World::new();
    let path = PathBuf::from(world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap());
    let index = path.with_file_name("sessions-index.json");
    let before = r#"{"version":1,"entries":[{"sessionId":"x","custom":[1]}],"more":true}"#;
    fs::write(&index, before).unwrap();
    let made = fork(&world, &[LOGIN, "enlisted"]);
    let read = || serde_json::from_str::<Value>(&fs::read_to_string(&index).unwrap()).unwrap();
    let list = read();
    assert_eq!((&list["entries"][0]["custom"][0], &list["more"]), (&1.into(), &true.into()));
    let entry = &list["entries"][1];
    assert_eq!((&entry["sessionId"], &entry["fullPath"]), (&made["session"]["id"], &made["session"]["path"]));
    assert_eq!(entry["summary"], "enlisted");
    assert_eq!(world.run(["undo"]).code, 0);
    assert_eq!(read(), serde_json::from_str::<Value>(before).unwrap());
    // One of another shape is left alone.
    fs::write(&index, "[1]").unwrap();
    fork(&world, &[LOGIN, "again"]);
    assert_eq!(fs::read_to_string(&index).unwrap(), "[1]");
}

/// An agent that cannot fork, where nobody asked that it should.
#[test]
fn what_the_agent_cannot_fork_is_copied() {
    let world = World::new();
    let script = "#!/bin/sh\ncase \"$*\" in *--fork-session*) echo 'no such thing' >&2; exit 1;; esac\n\
                  printf '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' \"$TINE_SESSION\"\n\
                  echo '{\"type\":\"result\",\"subtype\":\"success\",\"session_id\":\"x\"}'\n";
    world.sandbox.script("claude", script);
    let before = world.agents_files();
    let made = fork(&world, &[LOGIN, "--in", "headless", "--prompt", "hi"]);
    assert_eq!((&made["method"], &made["why"]), (&"copy".into(), &"the agent's own fork failed".into()));
    let warning = made["warnings"][0].as_str().unwrap();
    assert!(warning.contains("so tine copied the session") && warning.contains("no such thing"), "{warning}");
    assert_eq!(made["answer"], made["session"]["name"]);
    assert_eq!(turns(&world, made["session"]["id"].as_str().unwrap()), turns(&world, LOGIN));
    assert_eq!(world.agents_files().len(), before.len() + 1);
    let output = world.run(["fork", LOGIN, "--in", "headless", "--prompt", "hi", "--method", "native"]);
    assert!(output.code == 1 && output.err.contains("no such thing"), "{}", output.whole());
    assert!(output.err.contains("`--method copy`"), "{}", output.whole());
}

#[test]
fn what_cannot_be_brought_along_is_not_asked_for() {
    let world = World::new();
    for place in ["--to", "--copy-to"] {
        let output = world.run(["fork", LOGIN, "--carry", place, "../elsewhere", "--plan"]);
        assert!(output.code == 2 && output.err.contains("cannot be combined with"), "{}", output.whole());
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    let odd = world.shop.with_file_name(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    let before = world.agents_files();
    let mut command = world.command(["fork", LOGIN, "--json", "--to"]);
    let output = command.arg(&odd).output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["error"]["kind"], "bad_target", "{printed:#}");
    assert_eq!(world.agents_files(), before);
}

/// The agent that goes on is the source's either way.
#[test]
fn a_seed_is_counted_alike_however_its_agent_is_said() {
    let world = World::new();
    world.sandbox.script("codex", "#!/bin/sh\nexit 1\n");
    let short = fork(&world, &[EXPORT, "--method", "seed", "--plan"]);
    let long = fork(&world, &[EXPORT, "--method", "seed", "--agent", "codex", "--plan"]);
    assert_eq!(short["tokens"], long["tokens"]);
}

#[test]
fn an_unknown_method_is_refused() {
    let output = World::new().run(["fork", LOGIN, "--method", "magic"]);
    let hint = "use `auto`, `native`, `copy`, `translate` or `seed`";
    assert!(output.code == 2 && output.err.contains(hint), "{}", output.whole());
}

#[test]
fn what_tine_does_not_know_beside_a_session_comes_along() {
    let world = World::new();
    let project = world.sandbox.claude_home().join("projects").join(agents::claude::project_folder(&world.shop));
    world.sandbox.write(project.join(LOGIN).join("future/thing.json"), "{}");
    for spec in [LOGIN.to_owned(), format!("{LOGIN}@1")] {
        let made = fork(&world, &[&spec]);
        let side = PathBuf::from(made["session"]["path"].as_str().unwrap()).with_extension("");
        assert_eq!(fs::read_to_string(side.join("future/thing.json")).unwrap(), "{}", "{spec}");
    }
}

#[test]
fn no_secret_gets_into_a_name() {
    let world = World::empty();
    let key = format!("sk-ant-api03-{}", "a1B2c3D4".repeat(8));
    let session = testkit::build::ClaudeSession::new(LOGIN).cwd(&world.shop);
    session.turn(|turn| turn.prompt(format!("key {key}")).text("ok")).write(&world.sandbox.claude_home());
    let name = fork(&world, &[LOGIN, "--plan"])["session"]["name"].to_string();
    assert!(!name.contains("ant") && !name.contains("api03"), "{name}");
    // Nor into a title, wherever that is shown or kept.
    for words in [&["list", "--json"][..], &["info", LOGIN], &["info", LOGIN, "--json"]] {
        let output = world.run(words.iter().copied());
        assert!(output.out.contains("key [secret]") && !output.out.contains(&key), "{output:?}");
    }
    let kept = fs::read(world.sandbox.root().join("cache/tine/catalog")).unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains(&key));
}

#[test]
fn an_agent_that_is_too_old_is_told_so() {
    let world = World::new();
    let check = |version: &str, kind: &str| {
        let script =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{version}' && exit\necho unknown option >&2\nexit 1\n");
        world.sandbox.script("claude", &script);
        let output = world.run(["fork", LOGIN, "--method", "native", "--json"]);
        let error: Value = serde_json::from_str(&output.out).unwrap();
        let error = &error["error"];
        assert_eq!((output.code, error["kind"].as_str()), (1, Some(kind)), "{error}");
        assert!(error["message"].as_str().unwrap().contains("unknown option"), "{error}");
    };
    check("1.0.3 (Claude Code)", "agent_too_old");
    check("2.1.325 (Claude Code)", "agent_failed");
    check("hello", "agent_failed");
}

#[test]
fn a_name_hides_no_session() {
    let world = World::new();
    let output = world.run(["fork", COOKIE, &LOGIN[..8]]);
    assert!(output.code == 1 && output.err.contains("is taken"), "{}", output.whole());
}
