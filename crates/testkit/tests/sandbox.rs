//! The sandbox keeps the machine's user out and ends what was started in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use testkit::Sandbox;
use testkit::poll::wait_until;
use testkit::process::processes_at_home_in;
use testkit::sandbox::expect_success;

#[test]
fn programs_see_the_environment_of_the_sandbox_alone() {
    let sandbox = Sandbox::new();
    let seen = expect_success(&sandbox.command("env").output().expect("env"));
    for line in seen.lines() {
        let (name, value) = line.split_once('=').expect("a variable");
        assert!(
            sandbox.environment().iter().any(|(known, set)| known == name && set == value),
            "{name} leaked into the sandbox"
        );
    }
    for name in [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
        "TMPDIR",
        "CODEX_HOME",
    ] {
        let line = seen
            .lines()
            .find(|line| line.starts_with(&format!("{name}=")))
            .unwrap_or_else(|| panic!("{name} is not set"));
        assert!(line.contains(&sandbox.root().display().to_string()), "{line} is outside of the sandbox");
    }
}

#[test]
fn agents_of_the_machine_are_not_found() {
    let sandbox = Sandbox::new();
    for name in ["claude", "codex", "opencode", "gemini"] {
        assert_eq!(sandbox.find(name.as_ref()), None, "{name} is on the sandbox's PATH");
    }
    sandbox.script("claude", "#!/bin/sh\necho the double\n");
    assert_eq!(expect_success(&sandbox.command("claude").output().expect("claude")), "the double\n");
}

/// What one test had open for writing was open in what another one started, and could not be run: "Text file busy".
#[test]
fn a_script_can_be_run_while_other_tests_start_programs() {
    let sandbox = Sandbox::new();
    let written = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !written.load(Ordering::Relaxed) {
                    expect_success(&sandbox.command("true").output().expect("true"));
                }
            });
        }
        let ran: Vec<_> = (0..100)
            .map(|number| {
                let script = sandbox.script(&format!("script-{number}"), "#!/bin/sh\n");
                sandbox.command(script).output()
            })
            .collect();
        written.store(true, Ordering::Relaxed);
        for output in ran {
            expect_success(&output.expect("the script"));
        }
    });
}

#[test]
fn a_project_is_a_repository_with_one_commit_and_the_same_id_every_time() {
    let commits: Vec<String> = (0..2)
        .map(|_| {
            let sandbox = Sandbox::new();
            let project = sandbox.project("app");
            assert_eq!(sandbox.git(&project, ["status", "--short"]), "");
            assert_eq!(sandbox.git(&project, ["branch", "--show-current"]), "main");
            assert_eq!(sandbox.git(&project, ["log", "--format=%an <%ae>"]), "Test Person <test@example.invalid>");
            sandbox.git(&project, ["rev-parse", "HEAD"])
        })
        .collect();
    assert_eq!(commits[0], commits[1]);
}

#[test]
fn what_still_runs_ends_with_the_sandbox() {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    // The shell ends at once; the process that it leaves behind is what a daemon would be.
    let output = sandbox.command("sh").args(["-c", "sleep 600 >/dev/null 2>&1 & echo $!"]).output().expect("sh");
    let id: u32 = expect_success(&output).trim().parse().expect("a process id");
    wait_until("the process to be seen", Duration::from_secs(5), || processes_at_home_in(&home).contains(&id));
    drop(sandbox);
    assert_eq!(processes_at_home_in(&home), Vec::<u32>::new());
    assert!(!home.exists());
    assert!(fs::metadata(format!("/proc/{id}/environ")).is_err() || !processes_at_home_in(&home).contains(&id));
}
