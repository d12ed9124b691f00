//! The diagnostic log that `TINE_LOG` turns on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::world::World;

/// The lines of a log without the time, the process and the place in the source.
fn lines(log: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let message = words[3..].join(" ");
        format!("{} {}\n", words[1], message.split(" (crates/").next().unwrap_or_default())
    };
    log.lines().map(line).collect()
}

#[test]
fn an_ignored_error_is_in_the_log() {
    let mut world = World::new();
    world.sandbox.set("TINE_LOG", "debug");
    // A hook cannot even write its own log, and must not bother the agent with it.
    fs::create_dir_all(world.sandbox.root().join("data/tine/hook.log")).unwrap();
    assert_eq!(world.run(["hook", "stop", "--agent", "claude"]).whole(), "exit code: 0\n--- stdout\n--- stderr\n");
    let file = world.sandbox.root().join("state/tine/tine.log");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    insta::assert_snapshot!(lines(&fs::read_to_string(&file).unwrap()), @r"
    INFO tine 0.1.0 hook
    WARN could not write the hook log: Is a directory (os error 21)
    ");
}

#[test]
fn a_file_or_a_level_turns_the_log_on() {
    let mut world = World::empty();
    let folder = world.sandbox.directory("logs");
    for (value, file) in [("info", "state/tine/tine.log"), ("my.log", "work/shop/my.log"), ("off", ""), ("", "")] {
        world.sandbox.set("TINE_LOG", value);
        assert_eq!(world.run(["list"]).code, 0);
        let path = world.sandbox.root().join(file);
        if !file.is_empty() {
            assert!(fs::read_to_string(&path).unwrap().ends_with(" list\n"), "{value}");
        }
    }
    assert!(!world.shop.join("off").exists());
    world.sandbox.set("TINE_LOG", &folder);
    let output = world.run(["list"]);
    assert_eq!(output.code, 0);
    let warning = output.err.lines().next().unwrap();
    assert_eq!(warning, "warning: cannot write the log [ROOT]/work/logs: Is a directory (os error 21)");
}
