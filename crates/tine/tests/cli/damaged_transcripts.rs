//! Files that no agent should have written, and that exist all the same. Nothing of it is fatal.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use testkit::build::ClaudeSession;
use testkit::sandbox::install_program;

use crate::world::{EXPORT, LOGIN, World};

/// The transcript of the login session, changed by `damage`.
fn damaged(world: &World, id: &str, damage: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
    let path = PathBuf::from(world.json(["info", id, "--json"])["path"].as_str().unwrap());
    let content = fs::read(&path).unwrap();
    fs::write(&path, damage(content)).unwrap();
    path
}

#[test]
fn damage_is_counted_and_the_rest_is_read() {
    let check = |id: &str, what: &str, defect: &str, damage: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let world = World::new();
        damaged(&world, id, damage);
        let info = world.json(["info", id, "--json"]);
        assert_eq!(info["defects"][defect], 1, "{what}: {info:#}");
        assert!(info["turns"].as_u64().unwrap() >= 2, "{what}: {info:#}");
        let shown = world.run(["show", id, "--tools"]);
        assert_eq!(shown.code, 0, "{what}: {shown:?}");
        assert_eq!(world.run(["list"]).out.lines().count(), 4, "{what}");
    };
    for id in [LOGIN, EXPORT] {
        check(id, "garbage in the middle", "bad-line", &|mut content| {
            let end = content.iter().position(|byte| *byte == b'\n').unwrap();
            content.splice(end + 1..end + 1, *b"\x00\x01not JSON\n");
            content
        });
        check(id, "a cut last line", "truncated-line", &|mut content| {
            content.extend(b"{\"type\":\"user\",\"message\":{\"con");
            content
        });
        check(id, "invalid UTF-8", "invalid-utf8", &|mut content| {
            content.extend(b"{\"type\":\"odd\",\"text\":\"\xff\xfe\"}\n");
            content
        });
    }
}

#[test]
fn line_ends_of_another_system_do_not_matter() {
    for id in [LOGIN, EXPORT] {
        let world = World::new();
        let before = world.json(["show", id, "--json"])["turns"].clone();
        damaged(&world, id, |content| String::from_utf8(content).unwrap().replace('\n', "\r\n\r\n").into_bytes());
        assert_eq!(world.json(["show", id, "--json"])["turns"], before);
    }
}

#[test]
fn empty_and_strange_files_are_passed_over() {
    let world = World::new();
    let claude = world.sandbox.claude_home().join("projects");
    let project = fs::read_dir(&claude).unwrap().flatten().next().unwrap().path();
    fs::write(project.join("33333333-3333-4333-8333-333333333333.jsonl"), "").unwrap();
    fs::write(project.join("44444444-4444-4444-8444-444444444444.jsonl"), "{\"type\":\"mode\",\"mode\":\"normal\"}\n")
        .unwrap();
    fs::write(project.join("not a session id.jsonl"), "{}").unwrap();
    fs::write(project.join("agent-abc.jsonl"), "{}").unwrap();
    fs::create_dir(project.join("55555555-5555-4555-8555-555555555555.jsonl")).unwrap();
    fs::write(claude.join("a-file"), "").unwrap();
    let day = world.sandbox.codex_home().join("sessions/2026/11/11");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join("rollout-2026-11-11T00-00-00-01a19a00-0000-7000-8000-000000000001.jsonl"), "").unwrap();
    fs::write(day.join("notes.txt"), "x").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&claude, claude.join("circle")).unwrap();
        std::os::unix::fs::symlink(claude.join("loop-b"), claude.join("loop-a")).unwrap();
        std::os::unix::fs::symlink(claude.join("loop-a"), claude.join("loop-b")).unwrap();
        std::os::unix::fs::symlink(&day, day.join("2026")).unwrap();
    }
    let output = world.run(["list"]);
    assert_eq!((output.code, output.out.lines().count()), (0, 4), "{output:?}");
    assert_eq!(world.run(["doctor"]).code, 0);
}

#[test]
fn a_line_of_200_megabytes_is_a_placeholder() {
    let world = World::empty();
    let path = ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("before").text("yes"))
        .write(&world.sandbox.claude_home());
    let content = fs::read_to_string(&path).unwrap();
    let last = content
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .rfind(|record| record["uuid"].is_string())
        .unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let user = |uuid: &str, parent: &str, text: &str| {
        format!(
            "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{text}}},\"uuid\":\"{uuid}\",\"timestamp\":\"2026-11-10T12:00:00.000Z\",\"sessionId\":\"{LOGIN}\"}}\n"
        )
    };
    let (huge, after) = ("99999999-0000-4000-8000-000000000001", "99999999-0000-4000-8000-000000000002");
    let head = user(
        huge,
        last["uuid"].as_str().unwrap(),
        "[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"CUT\"}]",
    );
    let (before, behind) = head.split_once("CUT").unwrap();
    file.write_all(before.as_bytes()).unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        file.write_all(&block).unwrap();
    }
    file.write_all(behind.as_bytes()).unwrap();
    file.write_all(user(after, huge, "\"after the huge line\"").as_bytes()).unwrap();
    drop(file);
    let shown = world.run(["show", LOGIN]);
    assert!(shown.out.contains("a record of 200 MB is not shown"), "{}", shown.out);
    assert!(shown.out.contains("after the huge line"), "{}", shown.out);
    let info = world.json(["info", LOGIN, "--json"]);
    assert_eq!((&info["turns"], &info["defects"]["huge-line"]), (&2.into(), &1.into()));
}

#[test]
fn a_file_that_grows_or_vanishes_meanwhile_is_no_crash() {
    let world = World::new();
    let path = PathBuf::from(world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap());
    let content = fs::read(&path).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..60 {
                match round % 3 {
                    0 => drop(fs::remove_file(&path)),
                    1 => fs::write(&path, &content[..content.len() / 2]).unwrap(),
                    _ => fs::write(&path, &content).unwrap(),
                }
            }
            fs::write(&path, &content).unwrap();
        });
        while !writer.is_finished() {
            let output = world.run(["list", "--json"]);
            assert_eq!(output.code, 0, "{output:?}");
            let output = world.run(["show", LOGIN]);
            assert!(matches!(output.code, 0 | 1), "{output:?}");
        }
    });
    assert_eq!(world.run(["list"]).out.lines().count(), 4);
}

/// What cannot be read today may be read tomorrow, without a change of its size or time.
#[cfg(unix)]
#[test]
fn a_transcript_that_could_not_be_read_is_read_when_it_can_be() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    let world = World::new();
    let path = PathBuf::from(world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap());
    // To root nothing is closed, so it is somebody else who looks.
    const NOBODY: u32 = 65534;
    let is_root = fs::metadata(&path).unwrap().uid() == 0;
    let mine = world.sandbox.root().join("tine");
    if is_root {
        install_program(&mine, &fs::read(env!("CARGO_BIN_EXE_tine")).unwrap());
        let mut folders = vec![world.sandbox.root().to_owned()];
        while let Some(folder) = folders.pop() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                std::os::unix::fs::lchown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
            }
        }
    }
    let look = || {
        let mut command = world.command(["list", "--all", "--json"]);
        if is_root {
            command = world.sandbox.command(&mine);
            command.current_dir(&world.shop).args(["list", "--all", "--json"]).uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().unwrap();
        let sessions: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        sessions.into_iter().find(|session| session["id"] == LOGIN).unwrap()
    };
    let before = look();
    assert_eq!(before["turns"], 3);
    let cache = &world.sandbox.environment()[std::ffi::OsStr::new("XDG_CACHE_HOME")];
    fs::remove_dir_all(Path::new(cache).join("tine")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(look()["turns"], 0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(look(), before);
}
