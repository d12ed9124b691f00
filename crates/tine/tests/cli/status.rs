//! `tine status`. What runs is tested with the real agents; here nothing does.

use crate::world::{LOGIN, World};

#[test]
fn nothing_runs() {
    let world = World::new();
    assert_eq!(world.run(["status", LOGIN]).out, "stopped\n");
    assert_eq!(world.run(["status", "--json"]).out, "[]\n");
    let told = world.run(["status"]);
    assert_eq!((told.code, told.out.as_str(), told.err.as_str()), (0, "", "no session is open\n"));
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
