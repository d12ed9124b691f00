//! What stands in a pane besides an empty input line, and what keeps a session open besides its pane.

use std::fs;
use std::process::Command;

use testkit::model::Reply;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::{Lab, answer_by_prompt, with_lab};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        a_view_is_left,
        the_editor_stays_the_persons,
        what_no_hook_tells_is_noticed,
    ]);
    fn a_view_is_left(version: &str) {
        super::a_view_is_left("claude", version, &["C-o"], "Showing detailed transcript");
    }
    fn the_editor_stays_the_persons(version: &str) {
        super::the_editor_stays_the_persons("claude", version);
    }
    fn what_no_hook_tells_is_noticed(version: &str) {
        super::what_no_hook_tells_is_noticed("claude", version);
    }
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        a_view_is_left,
        the_editor_stays_the_persons,
        what_no_hook_tells_is_noticed,
    ]);
    mod with_a_daemon {
        testkit::for_each_version!(v0_166_0 = "0.166.0" => [what_a_daemon_keeps_is_stopped]);
        use super::super::what_a_daemon_keeps_is_stopped;
    }
    fn a_view_is_left(version: &str) {
        let shown = if version == "0.140.0" { "T R A N S C R I P T" } else { "Browsing transcript" };
        super::a_view_is_left("codex", version, &["C-t", "Escape"], shown);
    }
    fn the_editor_stays_the_persons(version: &str) {
        super::the_editor_stays_the_persons("codex", version);
    }
    fn what_no_hook_tells_is_noticed(version: &str) {
        super::what_no_hook_tells_is_noticed("codex", version);
    }
}

/// Keys that are pressed in a view mean something else there: Codex would go back in the conversation.
fn a_view_is_left(agent: &str, version: &str, keys: &[&str], shown: &str) {
    with_lab(agent, version, true, |lab, model| {
        let _gate = answer_by_prompt(model);
        let pane = lab.start("one");
        // What only looks like a question keeps nobody from saying something.
        let quoted = "Do you want to proceed? Would you like to run the following command?";
        assert_eq!(lab.tine(&["send", "one", quoted, "--wait"]), format!("to {quoted}\n"));
        assert_eq!(lab.tine(&["send", "one", "second", "--wait"]), "to second\n");
        let pane = lab.tmux.pane(&pane);
        for key in keys {
            pane.send_keys([key]);
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        pane.wait_for_text(shown);
        assert_eq!(lab.tine(&["send", "one", "from the view", "--wait"]), "to from the view\n");
        assert_eq!(model.last_turn().prompts(), [quoted, "second", "from the view"]);
    });
}

/// The agents' editor fetches what is to be said; a person who opens it gets their own.
fn the_editor_stays_the_persons(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let _gate = answer_by_prompt(model);
        lab.sandbox.script("my-editor", "#!/bin/sh\nprintf 'by\\tmy own %s' \"$1\" > \"$2\"\n");
        let mut start = lab.command(&["start", "one", "--agent", agent, "--in", "tmux:window", "--json"]);
        let started = start.env("EDITOR", "my-editor editor").output().expect("tine");
        let made: serde_json::Value = serde_json::from_slice(&started.stdout).expect("JSON");
        let pane = lab.tmux.pane(made["place"]["pane"].as_str().expect("a pane"));
        let tabs = "all:\n\tcc -o app\r\n\ttouch done";
        let mut send = lab.command(&["send", "one", tabs, "--wait"]);
        testkit::sandbox::expect_success(&send.output().expect("tine"));
        assert_eq!(model.last_turn().prompt().as_deref(), Some(tabs));
        pane.send_keys(["C-g"]);
        pane.wait_for_text("my own editor");
        pane.send_keys(["Enter"]);
        model.wait_for_prompt("by\tmy own editor", PATIENCE);
    });
}

/// Nobody tells of an interruption, nor of an agent that is killed.
fn what_no_hook_tells_is_noticed(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let gate = answer_by_prompt(model);
        lab.tine(&["setup", agent, "--yes"]);
        let pane = lab.start("one");
        assert_eq!(lab.tine(&["send", "one", "hello", "--wait"]), "to hello\n");
        wait_until("its end", PATIENCE, || events(lab).ends_with(&["answered".into(), "idle".into()]));
        lab.tine(&["send", "one", "take your time"]);
        wait_until("its work", PATIENCE, || events(lab).last().is_some_and(|event| event == "busy"));
        lab.tine(&["interrupt", "one"]);
        assert_eq!(events(lab).last().map(String::as_str), Some("idle"));
        gate.open();
        let pid = lab.tmux.pane(&pane).process();
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
        assert!(killed.success());
        wait_until("its end", PATIENCE, || events(lab).last().is_some_and(|event| event == "stopped"));
        let output = lab.json(&["events", "--json", "--last", "1"]);
        assert_eq!((&output["event"], &output["name"]), (&"stopped".into(), &"one".into()));
    });
}

/// What happened in the one session, in order; no two have one number.
fn events(lab: &Lab<'_>) -> Vec<String> {
    let output = lab.tine(&["events", "--json"]);
    let events: Vec<serde_json::Value> =
        output.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert!(events.is_sorted_by(|a, b| a["number"].as_i64() < b["number"].as_i64()), "{output}");
    events.iter().map(|event| event["event"].as_str().expect("a word").to_owned()).collect()
}

/// A daemon has sessions open that nobody looks at any more. It goes with the sandbox.
fn what_a_daemon_keeps_is_stopped(version: &str) {
    with_lab("codex", version, true, |lab, model| {
        let gate = answer_by_prompt(model);
        let config = lab.sandbox.codex_home().join("config.toml");
        let wanted = fs::read_to_string(&config).expect("a configuration").replace("daemon_auto_start = false\n", "");
        fs::write(&config, wanted).expect("a configuration");
        let closed = lab.start("closed");
        lab.start("other");
        assert_eq!(lab.tine(&["send", "closed", "first", "--wait"]), "to first\n");
        assert_eq!(lab.tine(&["send", "other", "hello", "--wait"]), "to hello\n");
        assert_eq!((lab.state("closed"), lab.state("other")), ("idle".into(), "idle".into()));
        // Closed by hand, it can be told something all the same, and be opened again.
        lab.tmux.call(["kill-pane", "-t", &closed]);
        wait_until("stopped", PATIENCE, || lab.state("closed") == "stopped");
        assert_eq!(lab.state("other"), "idle");
        assert_eq!(lab.tine(&["send", "closed", "-second", "--wait"]), "to -second\n");
        assert_eq!(lab.state("closed"), "stopped");
        lab.tine(&["stop", "closed"]);
        lab.tine(&["resume", "closed", "--in", "tmux:window"]);
        assert_eq!(lab.state("closed"), "idle");
        assert_eq!(lab.tine(&["send", "closed", "third", "--wait"]), "to third\n");
        assert_eq!(model.last_turn().prompts(), ["first", "-second", "third"]);
        // What is stopped at work is interrupted, and says so where it cannot be told more.
        lab.tine(&["send", "other", "take your time"]);
        assert_eq!(lab.state("other"), "busy");
        let stopped = lab.json(&["stop", "other", "--json"]);
        assert_eq!((&stopped[0]["name"], &stopped[0]["state"]), (&"other".into(), &"stopped".into()));
        gate.open();
        let refused = lab.output(&["send", "other", "more", "--wait"]);
        let output = testkit::sandbox::text(&refused.stderr);
        assert!(output.contains("was interrupted") && output.contains("tine resume other"), "{output}");
        model.push(Reply::text("never asked for"));
        lab.tine(&["resume", "other", "--in", "tmux:window"]);
        assert_eq!(lab.state("other"), "idle");
    });
}
