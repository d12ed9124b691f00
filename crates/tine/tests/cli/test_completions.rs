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
        let output = world.run(["completions", shell]);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.out.contains(word) && output.out.contains("TINE_COMPLETE"), "{shell}: {}", output.out);
    }
    assert_eq!(world.run(["completions", "tcsh"]).code, 2);
}

/// What fish would offer after these words.
fn offered(world: &World, words: &[&str]) -> String {
    let words = ["--", "tine"].iter().chain(words);
    let output = world.command(words).env("TINE_COMPLETE", "fish").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_and_their_options_are_completed() {
    let world = World::new();
    assert!(offered(&world, &["sm"]).contains("smart-fork"));
    let options = offered(&world, &["smart-fork", "--"]);
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

/// These offered nothing, options, or the names of hosts.
#[test]
fn turns_places_operations_and_filters_are_completed() {
    let world = World::new();
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    assert_eq!(world.run(["fork", "login", "retry"]).code, 0);
    let turns = offered(&world, &["fork", "login@"]);
    let turns: Vec<&str> = turns.lines().collect();
    let expected =
        ["login@3\tAdd a test.", "login@2\tFix it, please.", "login@1\tWhy do users land on /undefined after login?"];
    assert_eq!(turns, expected);
    assert_eq!(offered(&world, &["fork", "nobody@"]), "");
    let places = offered(&world, &["fork", "login", "--in", ""]);
    for place in
        ["here\t", "auto\t", "tmux\n", "tmux:window\n", "kitty:os-window\n", "zellij:tab\n", "headless\t", "none\t"]
    {
        assert!(places.contains(place), "{place}: {places}");
    }
    assert!(!places.contains("zellij:window"), "{places}");
    let operations = offered(&world, &["undo", ""]);
    let expected = format!("2\tfork login after turn 3 as retry\n1\tadopt {LOGIN} as login\n");
    assert!(operations.starts_with(&expected), "{operations}");
    let agents: String = transcript::Agent::ALL.iter().map(|agent| format!("agent:{agent}\n")).collect();
    assert_eq!(offered(&world, &["search", "agent:"]), agents);
    assert_eq!(offered(&world, &["search", "fi"]), "file:\n");
    assert_eq!(offered(&world, &["search", "login"]), "");
}

/// Bash splits words at `@` and `:`, and then completes only what follows.
#[test]
fn bash_completes_after_an_at_sign_and_a_colon() {
    let world = World::new();
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    let script = world.sandbox.write("complete.bash", &world.run(["completions", "bash"]).raw);
    let check = |words: &[&str], expected: &str| {
        // Bash's own split of the line, at these signs too.
        let driver = r#"source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
            COMP_LINE=; for word; do [[ $word == @ || $word == : || $COMP_LINE == *[@:] ]] || COMP_LINE+=' '; COMP_LINE+=$word; done
            COMP_LINE=${COMP_LINE# }; COMP_POINT=${#COMP_LINE}; _tine_complete; printf '%s\n' "${COMPREPLY[@]}""#;
        let mut command = world.sandbox.command("bash");
        command.args(["--norc", "-c", driver, "bash"]).arg(&script).args(words).current_dir(&world.shop);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{words:?}");
    };
    check(&["tine", "fork", "login", "@"], "3\n2\n1\n");
    check(&["tine", "fork", "login", "@", "2"], "2\n");
    let agents: String = transcript::Agent::ALL.iter().map(|agent| format!("{agent}\n")).collect();
    check(&["tine", "search", "agent", ":"], &agents);
    check(&["tine", "search", "agent", ":", "co"], "codex\n");
    check(&["tine", "fork", "logi"], "login\n");
    check(&["tine", "compl"], "completions\n");
}
