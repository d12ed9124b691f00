//! `tine status`.

use serde_json::Value;
use testkit::Terminal;

use crate::panes::Panes;
use crate::world::{LOGIN, World};

#[test]
fn nothing_runs() {
    let world = World::new();
    assert_eq!(world.run(["status", LOGIN]).out, "stopped\n");
    assert_eq!(world.run(["status", "--json"]).out, "[]\n");
    let output = world.run(["status"]);
    assert_eq!((output.code, output.out.as_str(), output.err.as_str()), (0, "", "no open sessions\n"));
    assert_eq!(world.json(["status", LOGIN, "--json"])["state"], "stopped");
}

#[test]
fn a_process_that_is_not_the_agent_does_not_count() {
    let world = World::new();
    let sessions = world.sandbox.claude_home().join("sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    // Process 1 runs, but did not start then.
    let file = format!(r#"{{"pid":1,"sessionId":"{LOGIN}","cwd":"/","status":"busy","procStart":"1"}}"#);
    std::fs::write(sessions.join("1.json"), file).unwrap();
    assert_eq!(world.run(["status", LOGIN]).out, "stopped\n");
}

#[test]
fn info_and_status_show_the_pane_and_the_last_prompt() {
    for terminal in Terminal::ALL {
        let panes = Panes::new(terminal);
        panes.start("one");
        let unbegun = panes.json(&["status", "--json"]);
        assert!(unbegun[0]["pane"]["pane"].is_string() && unbegun[0]["pid"].is_u64(), "{unbegun:#}");
        panes.tine(&["send", "one", "hello", "--wait"]);
        panes.tine(&["send", "one", "and more", "--wait"]);
        let pane = &unbegun[0]["pane"];
        let (info, status) = (panes.json(&["info", "one", "--json"]), panes.json(&["status", "--json"]));
        for output in [&info, &status[0], &panes.json(&["status", "one", "--json"])] {
            assert_eq!((&output["pane"], &output["last_prompt"]), (pane, &Value::from("and more")), "{output:#}");
        }
        let words = format!("{} pane {}", terminal.as_str(), pane["pane"].as_str().expect("a pane"));
        assert!(panes.tine(&["info", "one"]).contains(&words), "{terminal:?}");
        assert!(panes.tine(&["status"]).contains(&format!("{words}, last prompt: and more")), "{terminal:?}");
    }
}
