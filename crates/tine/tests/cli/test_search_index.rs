//! `tine search`: the index is updated, repaired and private.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use testkit::build::{ClaudeSession, CodexSession};

use super::test_search::{cache, found, ids, index, messages};
use crate::world::{COOKIE, EXPORT, LOGIN, World};

#[test]
fn changes_are_noticed() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("apricot").text("one"));
    let path = session.write(&claude);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    // Grown.
    let session = session.turn(|turn| turn.prompt("blueberry").text("two"));
    session.write(&claude);
    assert_eq!(found(&world, &["blueberry"]), [(LOGIN.to_owned(), 2)]);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    session.turn(|turn| turn.prompt("cranberry").text("three")).write(&claude);
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 3)]);
    assert_eq!(found(&world, &["blueberry"]), [(LOGIN.to_owned(), 2)]);
    let documents = world.json(["index", "--status", "--json"])["documents"].clone();
    assert_eq!(documents, 3);
    // Rewritten.
    ClaudeSession::new(LOGIN).cwd(&world.shop).seed(9).turn(|turn| turn.prompt("damson").text("one")).write(&claude);
    assert_eq!(found(&world, &["damson"]), [(LOGIN.to_owned(), 1)]);
    assert!(ids(&world, &["+cranberry"]).is_empty());
    // Moved.
    let elsewhere = path.parent().unwrap().with_file_name("-elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::rename(&path, elsewhere.join(path.file_name().unwrap())).unwrap();
    assert_eq!(ids(&world, &["damson"]), [LOGIN]);
    // Deleted.
    fs::remove_dir_all(&elsewhere).unwrap();
    assert!(ids(&world, &["+damson"]).is_empty());
    assert_eq!(world.json(["index", "--status", "--json"])["documents"], 0);
}

#[test]
fn a_damaged_index_is_built_anew_and_said_so() {
    let world = World::new();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    let files =
        || -> Vec<PathBuf> { fs::read_dir(index(&world)).unwrap().flatten().map(|entry| entry.path()).collect() };
    for damage in [&b""[..], b"garbage that is not an index at all, but long enough to be one"] {
        for kind in ["idx", "term", "fast", "fieldnorm", "store", "meta.json", "table-"] {
            let has = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(kind);
            let Some(path) = files().into_iter().find(has) else { continue };
            fs::write(&path, damage).unwrap();
            let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
            assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{path:?} {answer}");
            assert!(messages(&answer).contains("rebuil"), "{path:?} {answer}");
        }
    }
    // One bit.
    let path = files().into_iter().find(|path| path.extension().is_some_and(|kind| kind == "idx")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[3] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
    assert!(messages(&answer).contains("rebuil"), "{answer}");
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    // Without its beginning.
    fs::remove_file(index(&world).join("meta.json")).unwrap();
    let answer = world.json(["search", "--json", "--engine", "words", "undefined"]);
    assert!(messages(&answer).contains("rebuil"), "{answer}");
    // Deleted.
    fs::remove_dir_all(cache(&world)).unwrap();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    // A newer tine's is left alone.
    let newer = index(&world).with_file_name("words-99");
    fs::create_dir(&newer).unwrap();
    assert_eq!(world.run(["index", "--rebuild"]).code, 0);
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    assert!(newer.exists());
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_index() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    assert_eq!(world.run(["index"]).code, 0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&index(&world)), 0o700);
    for entry in fs::read_dir(index(&world)).unwrap().flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
}

#[test]
fn several_at_once_find_the_same() {
    let world = World::new();
    for number in 0..30 {
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(100 + number)
            .turn(|turn| turn.prompt(format!("pomegranate {number}")).text("yes"))
            .write(&world.sandbox.claude_home());
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(ids(&world, &["pomegranate", "-n", "100"]).len(), 30));
        }
    });
    let status = world.json(["index", "--status", "--json"]);
    assert_eq!((&status["sessions"], &status["missing"]["sessions"]), (&json!(34), &json!(0)));
}

#[test]
fn a_writer_that_was_killed_leaves_no_lock() {
    let world = World::new();
    let mut child = world.command(["index"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(ids(&world, &["undefined"]).len(), 1);
    assert_eq!(world.json(["index", "--status", "--json"])["is_written"], false);
}

#[test]
fn what_a_subagent_says_later_is_found_without_a_rebuild() {
    let world = World::empty();
    let begun = || {
        ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("an apricot").text("yes")).turn(|turn| {
            turn.prompt("research it").subagent("explore", |sub| sub.prompt("look").text("a quokka")).text("ok")
        })
    };
    let path = begun().write(&world.sandbox.claude_home());
    let folder = path.with_extension("").join("subagents");
    let helper = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let helper = helper.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let said = fs::read_to_string(&helper).unwrap();
    let goes_on = |word: &str| fs::write(&helper, format!("{said}{}", said.replace("a quokka", word))).unwrap();
    assert_eq!(found(&world, &["quokka"]), [(LOGIN.to_owned(), 2)]);
    // In the turn that started it,
    goes_on("an ibex");
    assert_eq!(found(&world, &["ibex"]), [(LOGIN.to_owned(), 2)]);
    // after it, while nothing else is said,
    let path = begun().turn(|turn| turn.prompt("meanwhile").text("sure")).write(&world.sandbox.claude_home());
    goes_on("an ibex");
    assert_eq!(found(&world, &["meanwhile"]), [(LOGIN.to_owned(), 3)]);
    goes_on("a wombat walks");
    assert_eq!(found(&world, &["wombat"]), [(LOGIN.to_owned(), 2)]);
    // and together with a new turn.
    let before = fs::metadata(&path).unwrap().len();
    begun()
        .turn(|turn| turn.prompt("meanwhile").text("sure"))
        .turn(|turn| turn.prompt("and now?").text("done"))
        .write(&world.sandbox.claude_home());
    assert!(fs::metadata(&path).unwrap().len() > before);
    goes_on("a numbat stands still");
    assert_eq!(found(&world, &["numbat"]), [(LOGIN.to_owned(), 2)]);
    assert_eq!(ids(&world, &["wombat"]), [""; 0]);
}

#[test]
fn codex_sessions_grow_and_are_read_from_the_middle() {
    let world = World::empty();
    let codex = world.sandbox.codex_home();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("apricot").text("one"));
    session.write(&codex);
    assert_eq!(found(&world, &["apricot"]), [(EXPORT.to_owned(), 1)]);
    session.turn(|turn| turn.prompt("blueberry").text("two")).write(&codex);
    assert_eq!(found(&world, &["blueberry"]), [(EXPORT.to_owned(), 2)]);
    assert!(world.run(["search", "blueberry"]).out.contains("*blueberry*"));
}

#[test]
fn a_rewritten_history_with_the_same_prompts_is_noticed() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let say = |first: &str, turns: usize| {
        let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("one").text(first));
        for number in 1..turns {
            session = session.turn(|turn| turn.prompt(format!("number {number}")).text("ok"));
        }
        session.write(&claude)
    };
    let path = say("an apricot", 3);
    assert_eq!(found(&world, &["apricot"]), [(LOGIN.to_owned(), 1)]);
    say("now a cranberry", 4);
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 1)]);
    assert!(ids(&world, &["+apricot"]).is_empty());
    // Cut off in the middle of its last turn, and then before it.
    let content = fs::read_to_string(&path).unwrap();
    let at = content.find("number 3").unwrap();
    fs::write(&path, &content[..at]).unwrap();
    assert!(ids(&world, &["+number +3"]).is_empty());
    let at = content.find("number 1").unwrap();
    fs::write(&path, &content[..at]).unwrap();
    assert!(ids(&world, &["+number"]).is_empty());
    assert_eq!(found(&world, &["cranberry"]), [(LOGIN.to_owned(), 1)]);
    assert_eq!(world.json(["index", "--status", "--json"])["documents"], 1);
}

#[test]
fn a_title_that_codex_keeps_elsewhere_is_found() {
    let world = World::empty();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("hello").text("yes"));
    session.write(&world.sandbox.codex_home());
    assert!(ids(&world, &["+gooseberry"]).is_empty());
    session.name("the gooseberry thread").write(&world.sandbox.codex_home());
    assert_eq!(ids(&world, &["+gooseberry"]), [EXPORT]);
}

#[test]
fn a_transcript_that_cannot_be_read_keeps_nobody_from_the_others() {
    let world = World::new();
    let path = PathBuf::from(world.json(["info", COOKIE, "--json"])["path"].as_str().unwrap());
    fs::remove_file(&path).unwrap();
    // Its first byte cannot be read, whoever asks.
    std::os::unix::fs::symlink("/proc/self/mem", &path).unwrap();
    let output = world.run(["search", "undefined", "--json"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.out.contains(LOGIN), "{output:?}");
    assert_eq!(world.run(["index"]).code, 0);
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_told_once() {
    let world = World::empty();
    let session = CodexSession::new(EXPORT).cwd(&world.shop).turn(|turn| turn.prompt("hello").text("yes"));
    session.write(&world.sandbox.codex_home());
    let projects = world.sandbox.claude_home().join("projects");
    let _ = fs::remove_dir_all(&projects);
    fs::create_dir_all(projects.parent().unwrap()).unwrap();
    fs::write(&projects, "no folder").unwrap();
    let output = world.run(["index"]);
    assert_eq!(output.err.matches("cannot read claude's folder").count(), 1, "{output:?}");
    assert!(output.out.contains("complete except for 1 folder that can't be read"), "{output:?}");
}

/// A file system of one megabyte that nobody else sees, over the folder of the cache.
#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let words = |from: usize, to: usize| (from..to).map(|number| format!("word{number} ")).collect::<String>();
    for number in 0..20 {
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(number)
            .turn(|turn| turn.prompt("pomegranate").text(words(number as usize * 9000, number as usize * 9000 + 9000)))
            .write(&claude);
    }
    let before = world.agents_files();
    fs::create_dir_all(cache(&world)).unwrap();
    let script = "mount -t tmpfs -o size=400k none \"$1\" && { \"$2\" index --json; echo $?; \"$2\" search pomegranate; echo $?; }";
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(cache(&world)).arg(env!("CARGO_BIN_EXE_tine"));
        command.current_dir(&world.shop).output().unwrap()
    };
    let mut output = run(&["--mount"]);
    if String::from_utf8_lossy(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("No space left") && !err.contains("panicked"), "{out}\n{err}");
    // With room it works again.
    assert_eq!(ids(&world, &["pomegranate", "-n", "100"]).len(), 20);
    assert_eq!(world.agents_files(), before);
}
