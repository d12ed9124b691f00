//! How failures look, and exit codes.

use crate::world::{COOKIE, LOGIN, World};

#[test]
fn errors_have_a_hint_and_a_code() {
    let world = World::new();
    insta::assert_snapshot!("unknown session", world.run(["show", "nobody"]).whole());
    insta::assert_snapshot!("unknown session as JSON", world.run(["show", "nobody", "--json"]).whole());
    insta::assert_snapshot!("usage as JSON", world.run(["list", "--json", "--frobnicate"]).whole());
    assert_eq!(world.run(["list", "--frobnicate"]).code, 2);
    assert_eq!(world.run(["frobnicate"]).code, 2);
    assert_eq!(world.run(["--help"]).code, 0);
    assert_eq!(world.run(["--version"]).code, 0);
    assert_eq!(world.run(["list", "--agent", "cursor"]).code, 2);
}

#[test]
fn help_lists_the_commands() {
    let world = World::empty();
    insta::assert_snapshot!("help", world.run(["--help"]).out);
}

#[test]
fn without_a_place_for_the_registry_reading_goes_on() {
    let mut world = World::new();
    world.sandbox.write(world.sandbox.home().join("a-file"), "");
    let blocked = world.sandbox.home().join("a-file/registry.db");
    let no_cache = world.sandbox.home().join("a-file/cache");
    world.sandbox.set("TINE_REGISTRY", &blocked).set("TINE_CACHE", &no_cache);
    let output = world.run(["list"]);
    assert_eq!(output.code, 0);
    assert_eq!(output.out.lines().count(), 4);
    assert!(output.err.contains("warning: cannot use the registry"), "{}", output.err);
}

/// A deletion exited with 0 and promised an undo that didn't exist; the transcript was stranded in the trash.
#[test]
fn without_a_registry_that_can_be_written_nothing_is_changed() {
    let world = World::new();
    let started = world.sandbox.root().join("started");
    let script = format!("#!/bin/sh\n[ \"$1\" = --version ] || echo \"$@\" >> {}\necho 2.1.325\n", started.display());
    world.sandbox.script("claude", &script);
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    let registry = world.sandbox.root().join("data/tine/registry.db");
    let before = world.agents_files();
    let beside = || std::fs::read_dir(world.shop.parent().unwrap()).unwrap().count();
    let places = beside();
    // Not a database at all, and one of which only the first page can be read.
    let backup = std::fs::read_dir(registry.with_file_name("backups")).unwrap().next().unwrap().unwrap();
    let mut cut = std::fs::read(backup.path()).unwrap();
    assert!(cut.len() > 8192);
    cut[4096..].fill(0xa5);
    for damaged in [b"this is no database, but it is long enough to be looked at as one".to_vec(), cut] {
        let _ = std::fs::remove_file(format!("{}-wal", registry.display()));
        let _ = std::fs::remove_file(format!("{}-shm", registry.display()));
        std::fs::write(&registry, &damaged).unwrap();
        for words in [
            &["delete", LOGIN, "--yes"][..],
            &["fork", LOGIN, "other"],
            &["fork", LOGIN, "other", "--worktree"],
            &["clone", LOGIN, "other"],
            &["rename", LOGIN, "other"],
            &["adopt", COOKIE, "other"],
            &["adopt", "--all"],
            &["start", "other", "--in", "none"],
            &["send", LOGIN, "hello"],
            &["send", LOGIN, "hello", "--wait"],
            &["resume", LOGIN, "--in", "headless", "--prompt", "hello"],
            &["setup", "claude", "--yes"],
            &["undo"],
            &["undo", "1"],
        ] {
            let output = world.run(words);
            assert_eq!(output.code, 1, "{words:?}: {}", output.whole());
            assert!(
                output.err.contains("nothing was changed, because the registry [ROOT]"),
                "{words:?}: {}",
                output.whole()
            );
            assert!(output.err.contains("hint: `tine doctor --repair` rebuilds it"), "{words:?}: {}", output.whole());
            assert_eq!(world.agents_files(), before, "{words:?}");
            assert_eq!(beside(), places, "{words:?}");
            assert!(!started.exists(), "{words:?} started an agent");
        }
        assert!(!registry.with_file_name("trash").exists());
        for words in [&["list"][..], &["show", LOGIN], &["tree"], &["info", LOGIN], &["fork", LOGIN, "--plan"]] {
            let output = world.run(words);
            assert_eq!(output.code, 0, "{words:?}: {}", output.whole());
            assert!(output.err.contains("warning: cannot use the registry"), "{words:?}: {}", output.whole());
        }
        assert_eq!(std::fs::read(&registry).unwrap(), damaged);
    }
}

/// tine said that there was no such session, and suggested others.
#[test]
fn a_name_that_cannot_be_looked_up_is_not_called_unknown() {
    let world = World::new();
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    let registry = world.sandbox.root().join("data/tine/registry.db");
    for log in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{log}", registry.display()));
    }
    std::fs::write(&registry, "this is no database, but it is long enough to be looked at as one").unwrap();
    for words in [&["show", "login"][..], &["rename", "login", "other"], &["fork", "login"], &["clone", "login"]] {
        let output = world.run(words);
        assert_eq!(output.code, 1, "{words:?}: {}", output.whole());
        assert!(output.err.contains("cannot look up the name `login`: the registry"), "{words:?}: {}", output.whole());
        assert!(output.err.contains("hint: `tine doctor` shows why"), "{words:?}: {}", output.whole());
    }
    assert_eq!(world.run(["show", &LOGIN[..8]]).code, 0);
}

/// A registry that can be read and not written tells names; it was taken for an empty one.
#[test]
fn a_read_only_registry_is_read() {
    let world = World::new();
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" || exit 99; \
                  \"$2\" list; echo \"list $?\"; \"$2\" rename login other; echo \"rename $?\"";
    let run = |separate: &[&str]| {
        let mut command = world.sandbox.command("unshare");
        command.args(separate).args(["sh", "-c", script, "sh"]).arg(world.sandbox.root().join("data"));
        command.arg(env!("CARGO_BIN_EXE_tine")).current_dir(&world.shop).output().unwrap()
    };
    let mut output = run(&["--mount"]);
    if testkit::sandbox::text(&output.stderr).contains("unshare") {
        output = run(&["--user", "--map-root-user", "--mount"]);
    }
    let (printed, said) = (testkit::sandbox::text(&output.stdout), testkit::sandbox::text(&output.stderr));
    assert!(
        printed.contains("login ") && printed.contains("list 0\n") && printed.ends_with("rename 1\n"),
        "{printed}{said}"
    );
    assert!(said.contains("nothing was changed") && said.contains("make the file and its folder writable"), "{said}");
}

#[test]
fn a_registry_of_a_newer_tine_is_left_alone() {
    let mut world = World::new();
    let path = world.sandbox.home().join("newer.db");
    // An empty SQLite file whose format number is 99.
    let mut header = vec![0u8; 4096];
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..24].copy_from_slice(&[0x10, 0, 1, 1, 0, 64, 32, 32]);
    header[24..32].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
    header[44..48].copy_from_slice(&[0, 0, 0, 4]);
    header[56..64].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 99]);
    header[92..100].copy_from_slice(&[0, 0, 0, 1, 0, 46, 132, 144]);
    header[100] = 13;
    header[105..107].copy_from_slice(&[0x10, 0]);
    std::fs::write(&path, &header).unwrap();
    world.sandbox.set("TINE_REGISTRY", &path);
    let output = world.run(["list"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.err.contains("was written by a newer tine (format 99"), "{}", output.err);
    assert_eq!(std::fs::read(&path).unwrap(), header);
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_whole() {
    let world = World::new();
    let check = |arguments: &[&str], kind: &str, message: &str, hint: &str| {
        let output = world.run(arguments);
        assert_eq!(output.code, 2, "{output:?}");
        let error: serde_json::Value = serde_json::from_str(&output.raw).unwrap();
        let error = &error["error"];
        assert_eq!(error["kind"], kind, "{error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    };
    check(&["fork", LOGIN, "Not A Name", "--json"], "bad_name", "a name has only a-z", "auth-fix");
    check(&["fork", "--json"], "usage", "missing `SESSION[@TURN]`", "--help");
}

#[cfg(unix)]
#[test]
fn a_usage_error_does_not_print_arguments_raw() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::empty();
    let hostile: [&[u8]; 5] =
        [b"\x9b2J", b"\x1b[2J", "\u{9b}2J\u{202e}x".as_bytes(), b"\x1b]0;title\x07x", b"--\x1b[2Joption"];
    for argument in hostile.map(std::ffi::OsStr::from_bytes) {
        for before in [&["list", "--agent"][..], &["list"], &[], &["undo"], &["show", "--turn"], &["fork", "x"]] {
            let mut command = world.command(before);
            let output = command.arg(argument).env("CLICOLOR_FORCE", "1").output().unwrap();
            let (out, err) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
            for printed in [out, err].map(|printed| printed.expect("UTF-8")) {
                assert!(crate::world::is_harmless(&printed), "{before:?} {argument:?}: {printed:?}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_told_where_it_can() {
    let world = World::new();
    for arguments in [&["list", "--json"][..], &["list"], &["search", "redirect", "--json", "--engine", "words"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = world.command(arguments).stdout(full).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
        assert!(printed.contains("cannot write the output"), "{arguments:?}: {printed}");
    }
}
