//! `tine completions`.

use crate::world::{LOGIN, World};

#[test]
fn every_shell_gets_a_script() {
    let world = World::new();
    for (shell, word) in [
        ("bash", "complete"),
        ("zsh", "#compdef tine"),
        ("fish", "complete"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let told = world.run(["completions", shell]);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(told.out.contains(word) && told.out.contains("TINE_COMPLETE"), "{shell}: {}", told.out);
    }
    assert_eq!(world.run(["completions", "tcsh"]).code, 2);
}

#[test]
fn commands_and_their_options_are_completed() {
    let world = World::new();
    let offered = |words: &[&str]| {
        let words = ["--", "tine"].iter().chain(words);
        let output = world.command(words).env("TINE_COMPLETE", "fish").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(offered(&["sm"]).contains("smart-fork"));
    let options = offered(&["smart-fork", "--"]);
    for option in ["--pick", "--auto", "--at-hit", "--min-score", "--worktree", "--in", "--agent"] {
        assert!(options.contains(option), "{option}: {options}");
    }
}

#[test]
fn session_names_are_completed() {
    let world = World::new();
    let output = world.command(["--", "tine", "show", ""]).env("TINE_COMPLETE", "fish").output().unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    assert!(offered.contains(&LOGIN[..8]), "{offered} {}", String::from_utf8_lossy(&output.stderr));
    assert!(offered.contains("Login by cookie"), "{offered}");
}
