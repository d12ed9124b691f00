//! How failures look, and exit codes.

use crate::world::{LOGIN, World};

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
fn help_ends_with_examples() {
    let world = World::empty();
    insta::assert_snapshot!("help", world.run(["--help"]).out);
    for command in ["list", "tree", "show", "info", "status", "fork", "undo", "log", "doctor", "completions", "demo"] {
        let help = world.run([command, "--help"]).out;
        let first = help.lines().next().unwrap_or_default();
        assert!(!first.ends_with('.') && first.chars().next().is_some_and(char::is_uppercase), "{command}: {first}");
        assert!(help.contains("Examples:"), "{command}");
    }
}

#[test]
fn without_a_place_for_the_registry_reading_goes_on() {
    let mut world = World::new();
    world.sandbox.write(world.sandbox.home().join("a-file"), "");
    let blocked = world.sandbox.home().join("a-file/registry.db");
    let no_cache = world.sandbox.home().join("a-file/cache");
    world.sandbox.set("TINE_REGISTRY", &blocked).set("TINE_CACHE", &no_cache);
    let told = world.run(["list"]);
    assert_eq!(told.code, 0);
    assert_eq!(told.out.lines().count(), 4);
    assert!(told.err.contains("warning: cannot use the registry"), "{}", told.err);
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
    let told = world.run(["list"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.err.contains("was written by a newer tine (format 99"), "{}", told.err);
    assert_eq!(std::fs::read(&path).unwrap(), header);
}

#[test]
fn a_command_line_that_makes_no_sense_is_told_whole() {
    let world = World::new();
    let check = |arguments: &[&str], kind: &str, message: &str, hint: &str| {
        let told = world.run(arguments);
        assert_eq!(told.code, 2, "{told:?}");
        let error: serde_json::Value = serde_json::from_str(&told.raw).unwrap();
        let error = &error["error"];
        assert_eq!(error["kind"], kind, "{error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    };
    check(&["fork", LOGIN, "Not A Name", "--json"], "bad_name", "a name is made of", "auth-fix");
    check(&["fork", "--json"], "usage", "were not provided: <SESSION[@TURN]>", "--help");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_told_where_it_can() {
    let world = World::new();
    for arguments in [&["list", "--json"][..], &["list"], &["search", "redirect", "--json", "--engine", "words"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = world.command(arguments).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("cannot write the output"), "{arguments:?}: {told}");
    }
}
