//! `tine index` and `tine search` over an index that is in trouble: no room, nothing to write to, damage from outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::build::ClaudeSession;

use crate::world::{COOKIE, LOGIN, World};

const SEARCH: [&str; 4] = ["search", "--json", "--engine", "words"];

fn ask(world: &World, word: &str) -> Value {
    world.json(SEARCH.iter().chain([&word]))
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["results"].as_array().unwrap().iter().map(|one| one["session"]["id"].as_str().unwrap()).collect()
}

fn cache(world: &World) -> PathBuf {
    let found = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_CACHE_HOME");
    Path::new(&found.unwrap().1).join("tine")
}

fn files(world: &World) -> Vec<PathBuf> {
    fs::read_dir(cache(world).join("index/words-6")).unwrap().flatten().map(|entry| entry.path()).collect()
}

/// Changes a file whose size and time stay as they are.
fn damage(path: &Path, change: impl FnOnce(&mut [u8])) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn with_extension(world: &World, wanted: &str) -> PathBuf {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|extension| extension == wanted);
    files(world).into_iter().find(is_wanted).unwrap_or_else(|| panic!("no {wanted} in {:?}", files(world)))
}

/// Runs a script in a mount namespace of its own, with the folder of the cache as `$1` and tine as `$2`.
fn in_own_mounts(world: &World, script: &str) -> Output {
    fs::create_dir_all(cache(world)).unwrap();
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(cache(world)).arg(env!("CARGO_BIN_EXE_tine"));
        command.current_dir(&world.shop).output().unwrap()
    };
    let output = run(&["--mount"]);
    match String::from_utf8_lossy(&output.stderr).contains("unshare") {
        true => run(&["--user", "--map-root-user", "--mount"]),
        false => output,
    }
}

/// A session whose first turn is replaced in the index when it grows, so that there are deleted documents.
fn grown(world: &World) {
    let session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("an apricot").text("yes"));
    let claude = world.sandbox.claude_home();
    ClaudeSession::new(COOKIE).seed(7).cwd(&world.shop).turn(|turn| turn.prompt("a plum").text("yes")).write(&claude);
    session.write(&claude);
    assert_eq!(ids(&ask(world, "apricot")), [LOGIN]);
    session.turn(|turn| turn.prompt("a cranberry").text("yes")).write(&claude);
    assert_eq!(ids(&ask(world, "cranberry")), [LOGIN]);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_behind() {
    let world = World::empty();
    for number in 0..20 {
        let from = number * 9000;
        let words: String = (from..from + 9000).map(|number| format!("word{number} ")).collect();
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(number)
            .turn(|turn| turn.prompt("pomegranate").text(words))
            .write(&world.sandbox.claude_home());
    }
    let script = "mount -t tmpfs -o size=400k none \"$1\" && { \"$2\" index --words; echo code $?; ls \"$1/index/words-6\"; \
                  \"$2\" index --words --json; echo code $?; }";
    let output = in_own_mounts(&world, script);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out.matches("code 1").count(), 2, "{out}\n{err}");
    assert!(err.contains("No space left") && err.contains("hint: the disk is full"), "{out}\n{err}");
    assert!(!out.contains(".idx") && !out.contains(".term") && !out.contains(".tmp"), "{out}\n{err}");
}

#[test]
fn where_nothing_can_be_written_the_answer_is_of_what_is_there() {
    let world = World::new();
    assert_eq!(ids(&ask(&world, "redirect")), [LOGIN]);
    let session = ClaudeSession::new("0000000a-0000-4000-8000-000000000000").seed(9).cwd(&world.shop);
    session.turn(|turn| turn.prompt("a new redirect").text("yes")).write(&world.sandbox.claude_home());
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && { \"$2\" search --engine words redirect; \
                  echo code $?; \"$2\" index; echo code $?; }";
    let output = in_own_mounts(&world, script);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains(&LOGIN[..8]) && out.contains("code 0") && out.contains("code 1"), "{out}\n{err}");
    assert!(err.contains("Read-only file system") && err.contains("1 session isn't indexed yet"), "{out}\n{err}");
    assert!(err.contains("hint: make the folder writable"), "{out}\n{err}");
}

#[test]
fn damage_that_no_stamp_tells_is_mended_by_who_meets_it() {
    let world = World::empty();
    grown(&world);
    let anew = |answer: &Value| {
        assert_eq!(ids(answer), [LOGIN], "{answer}");
        assert!(answer["errors"].to_string().contains("rebuil"), "{answer}");
    };
    // The list of deleted documents is gone.
    fs::remove_file(with_extension(&world, "del")).unwrap();
    let status = world.json(["index", "--status", "--json"]);
    assert!(status["notices"].to_string().contains("damaged"), "{status}");
    anew(&ask(&world, "cranberry"));
    // A lock that is none.
    let lock = cache(&world).join("index/words-6/.tantivy-meta.lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    anew(&ask(&world, "cranberry"));
    // Other bytes in a file that looks as before.
    for (kind, from_end) in
        [("idx", 10), ("fast", 10), ("pos", 10), ("pos", 125), ("pos", 117), ("store", 90), ("fieldnorm", 95)]
    {
        let path = with_extension(&world, kind);
        // The footer tells where everything is; in a small file, nothing is left to chance.
        damage(&path, |bytes| {
            let place = bytes.len().saturating_sub(from_end);
            bytes[place] ^= 0x55;
        });
        anew(&ask(&world, "cranberry"));
        assert_eq!(world.json(["index", "--status", "--json"])["notices"], json!([]));
    }
}

#[test]
fn damage_that_tantivy_panics_over_is_mended_by_who_meets_it() {
    let world = World::empty();
    for number in 0..4 {
        // More words than are verified at every opening.
        let words: String = (number * 9000..(number + 1) * 9000).map(|number| format!("word{number} ")).collect();
        ClaudeSession::new(&format!("{number:08x}-0000-4000-8000-000000000000"))
            .cwd(&world.shop)
            .seed(number)
            .turn(|turn| turn.prompt("pomegranate").text(words))
            .write(&world.sandbox.claude_home());
    }
    let mut rebuilt = 0;
    for from_end in (200..360).step_by(10) {
        assert_eq!(world.run(["index", "--words"]).code, 0);
        let terms = files(&world).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "term"));
        let path = terms.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        damage(&path, |bytes| {
            let place = bytes.len() - from_end;
            bytes[place] ^= 0xff;
        });
        let answer = ask(&world, "pomegranate");
        if answer["errors"].to_string().contains("rebuil") {
            rebuilt += 1;
            assert_eq!(ids(&answer).len(), 4, "{answer}");
        }
    }
    assert!(rebuilt > 0, "some of it has to be of consequence");
}

#[cfg(target_os = "linux")]
#[test]
fn what_did_not_get_to_the_disk_is_noticed_after_the_next_start() {
    let world = World::empty();
    grown(&world);
    let boot = cache(&world).join("index/words-6/.boot");
    assert!(boot.exists());
    for kind in ["idx", "pos", "term", "del"] {
        let path = with_extension(&world, kind);
        damage(&path, |bytes| {
            let zeros = bytes.len() / 3;
            bytes[..zeros].fill(0);
        });
        fs::write(&boot, "00000000-0000-0000-0000-000000000000\n").unwrap();
        let answer = ask(&world, "cranberry");
        assert_eq!(ids(&answer), [LOGIN], "{kind}: {answer}");
        assert!(answer["errors"].to_string().contains("rebuil"), "{kind}: {answer}");
        assert_eq!(ask(&world, "cranberry")["errors"], json!([]), "{kind}");
        if kind == "term" {
            // Deleted documents, for the last round.
            let claude = world.sandbox.claude_home();
            let session = ClaudeSession::new(LOGIN).cwd(&world.shop);
            let session = session.turn(|turn| turn.prompt("an apricot").text("yes"));
            let session = session.turn(|turn| turn.prompt("a cranberry").text("yes"));
            session.turn(|turn| turn.prompt("a lemon").text("yes")).write(&claude);
            assert_eq!(ids(&ask(&world, "lemon")), [LOGIN]);
        }
    }
}

#[test]
fn sessions_of_a_folder_that_cannot_be_listed_stay_in_the_index() {
    let world = World::new();
    assert_eq!(world.run(["index"]).code, 0);
    let before = world.json(["index", "--status", "--json"]);
    let projects = world.sandbox.claude_home().join("projects");
    let aside = projects.with_extension("aside");
    fs::rename(&projects, &aside).unwrap();
    fs::write(&projects, "no folder").unwrap();
    world.run(["index"]);
    let errors = ask(&world, "redirect")["errors"].to_string();
    assert!(errors.contains("cannot read claude's folder") && errors.contains("projects"), "{errors}");
    fs::remove_file(&projects).unwrap();
    fs::rename(&aside, &projects).unwrap();
    let after = world.json(["index", "--status", "--json"]);
    for what in ["sessions", "documents", "missing", "vectors"] {
        assert_eq!(after[what], before[what], "{what}");
    }
    // What is really gone goes.
    fs::remove_dir_all(&projects).unwrap();
    assert_eq!(world.run(["index"]).code, 0);
    assert!(ids(&ask(&world, "+redirect")).is_empty());
    assert!(world.json(["index", "--status", "--json"])["sessions"].as_u64() < before["sessions"].as_u64());
}

#[test]
fn lines_that_are_too_long_are_told() {
    let world = World::empty();
    let long = "pomegranate ".repeat(17 << 20 >> 3);
    let session = ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("an apricot").tool("Fetch", json!({"page": "it"}), &long).text("yes"));
    let claude = world.sandbox.claude_home();
    session.write(&claude);
    let status = world.json(["index", "--words", "--json"]);
    assert_eq!(status["left_out"], 1, "{status}");
    assert!(world.run(["index", "--status"]).out.contains("complete except for 1 line"), "{status}");
    // It is not counted twice when the session grows.
    session.turn(|turn| turn.prompt("a plum").text("yes")).write(&claude);
    assert_eq!(world.json(["index", "--words", "--json"])["left_out"], 1);
}

#[test]
fn a_history_that_was_changed_in_place_and_grew_is_read_anew() {
    let world = World::empty();
    let filler = "nothing in particular ".repeat(400);
    let mut session = ClaudeSession::new(LOGIN).cwd(&world.shop).turn(|turn| turn.prompt("one").text("an apricot"));
    for number in 0..4 {
        session = session.turn(|turn| turn.prompt(format!("number {number}")).text(filler.as_str()));
    }
    let path = session.write(&world.sandbox.claude_home());
    assert_eq!(ids(&ask(&world, "apricot")), [LOGIN]);
    let content = fs::read_to_string(&path).unwrap().replace("an apricot", "a rhubarb!");
    // The same file, not another one of this name.
    fs::write(&path, content + "{\"type\":\"system\",\"subtype\":\"x\"}\n").unwrap();
    assert_eq!(ids(&ask(&world, "rhubarb")), [LOGIN]);
    assert!(ids(&ask(&world, "+apricot")).is_empty());
}

#[cfg(unix)]
#[test]
fn nobody_waits_for_a_pipe_in_place_of_a_subagent() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| {
            turn.prompt("an apricot").subagent("explore", |sub| sub.prompt("look").text("a persimmon")).text("ok")
        })
        .write(&world.sandbox.claude_home());
    let is_subagent = |path: &PathBuf| path.to_string_lossy().contains("/subagents/");
    for path in world.agents_files().into_keys().filter(is_subagent) {
        fs::remove_file(&path).unwrap();
        assert!(world.sandbox.command("mkfifo").arg(&path).status().unwrap().success());
    }
    let out = world.shop.join("out");
    for arguments in [vec!["search", "--engine", "words", "apricot"], vec!["export", out.to_str().unwrap()]] {
        let mut child = world.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let code = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None if begun.elapsed() > Duration::from_secs(60) => break None,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let _ = child.kill();
        assert_eq!(code, Some(0), "{arguments:?}");
    }
}
