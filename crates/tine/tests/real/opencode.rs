//! OpenCode's sessions, as the client wrote them and as tine reads, forks and resumes them.
//!
//! A start takes seconds, so each test does much with few of them.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::agents::{OPENCODE_VERSIONS, OpenCodeDriver};
use testkit::model::{Kind, Model, Progress, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::{expect_success, text};
use testkit::{Gate, Sandbox, Tmux};
use transcript::Agent;

use crate::conversation::{Conversation, listed, state};
use crate::launch::compare;

struct World<'a> {
    sandbox: &'a Sandbox,
    opencode: OpenCodeDriver<'a>,
    project: PathBuf,
}

impl<'a> World<'a> {
    fn new(sandbox: &'a Sandbox, model: &Model) -> Self {
        let opencode = OpenCodeDriver::new(sandbox, model, OPENCODE_VERSIONS[0]);
        World { sandbox, opencode, project: sandbox.project("app") }
    }

    fn tine(&self, directory: &Path, arguments: &[&str]) -> String {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(self.opencode.environment()).current_dir(directory).args(arguments);
        expect_success(&command.output().expect("tine"))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.tine(&self.project, arguments);
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error} in {output}"))
    }

    fn has_listed(&self, directory: &Path, id: &Value) -> bool {
        self.opencode.listed(directory).iter().any(|session| session["id"] == *id)
    }
}

#[test]
fn a_session_is_read_forked_and_resumed_as_the_model_saw_it() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let world = World::new(&sandbox, &model);
    let (project, opencode) = (&world.project, &world.opencode);
    model.on(|request| (request.kind == Kind::Title).then(|| Reply::text("A title from the double")));
    let shell = |command: &str| json!({"command": command, "description": "test"});
    model.push(Reply::new().thinking("Let me see.").say("I look.").call("bash", shell("echo hi")));
    model
        .push(Reply::new().say("Two at once.").call("bash", shell("echo one")).call("bash", shell("echo two; exit 3")));
    model.push(Reply::text("One and two."));
    let id = opencode.start(project, "first");
    opencode.resume(project, &id, "second");
    Conversation::from_show(&sandbox, project, &id).assert_matches(&Conversation::from_request(&model.last_turn()));
    let session = listed(&sandbox, project, &id);
    assert_eq!((&session["turns"], &session["agent"]), (&json!(2), &json!("opencode")));
    assert_eq!((&session["cwd"], &session["state"]), (&json!(project.to_str().unwrap()), &json!("stopped")));
    assert_eq!(session["title"], "A title from the double");
    let info = world.json(&["info", &id, "--json"]);
    assert_eq!((&info["agent_version"], &info["defects"]), (&json!(OPENCODE_VERSIONS[0]), &json!({})));

    // A fork at a turn, in the same directory; the client lists it and continues from there.
    let fork = world.json(&["fork", &format!("{id}@1"), "early", "--json"]);
    assert_eq!((&fork["method"], &fork["session"]["turns"]), (&json!("copy"), &json!(1)));
    assert!(world.has_listed(project, &fork["session"]["id"]));
    let answer = world.tine(project, &["resume", "early", "--in", "headless", "--prompt", "another second"]);
    assert!(answer.starts_with("ok "), "{answer}");
    assert_eq!(model.last_turn().prompts(), ["first", "another second"]);
    assert_eq!(model.last_turn().tool_results().len(), 3);

    // A whole fork in a worktree, whose project is the same.
    let fork = world.json(&["fork", &id, "aside", "--worktree", "--json"]);
    let tree = PathBuf::from(fork["workspace"]["path"].as_str().expect("a worktree"));
    assert!(world.has_listed(&tree, &fork["session"]["id"]));
    let answer = world.tine(&tree, &["resume", "aside", "--in", "headless", "--prompt", "third"]);
    assert!(answer.starts_with("ok "), "{answer}");
    assert_eq!(model.last_turn().prompts(), ["first", "second", "third"]);
    let cwd = &listed(&sandbox, project, fork["session"]["id"].as_str().unwrap())["cwd"];
    assert_eq!(*cwd, json!(tree.to_str().unwrap()));
    assert_eq!(listed(&sandbox, project, &id)["turns"], 2, "the source is as it was");
}

/// A server that runs, ended with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn forks_are_made_while_a_server_runs_and_by_the_agent_itself() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let world = World::new(&sandbox, &model);
    let project = &world.project;
    let id = world.opencode.start(project, "first");
    let mut command = world.opencode.command(project);
    command.args(["serve", "--port", "0"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().expect("a server"));
    let copy = world.json(&["fork", &id, "copied", "--json"]);
    assert_eq!(copy["method"], "copy");
    let native = world.json(&["fork", &id, "native", "--method", "native", "--json"]);
    assert_eq!((&native["method"], &native["session"]["turns"]), (&json!("native"), &json!(1)));
    assert_eq!(native["session"]["parent"]["id"], json!(id));
    drop(server);
    // The agent's list has the names as titles.
    let titles: Vec<Value> =
        world.opencode.listed(project).into_iter().map(|session| session["title"].clone()).collect();
    assert!(titles.contains(&json!("copied")) && titles.contains(&json!("native")), "{titles:?}");
    // A deleted session is gone for the agent, and comes back.
    world.tine(project, &["delete", "copied", "--yes"]);
    assert!(!world.has_listed(project, &copy["session"]["id"]));
    world.tine(project, &["undo"]);
    assert!(world.has_listed(project, &copy["session"]["id"]));
}

#[test]
fn a_session_in_a_pane_reports_what_it_does_and_asks_only_the_user() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let world = World::new(&sandbox, &model);
    world.opencode.ask_before_commands(&model);
    let project = &world.project;
    let settings = std::fs::read(world.opencode.settings()).expect("settings");
    world.tine(project, &["setup", "opencode", "--yes"]);
    let tmux = Tmux::new(&sandbox);
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    command.envs(world.opencode.environment()).current_dir(project);
    command.args(["start", "lamp", "--agent", "opencode", "--in", "here"]);
    let pane = tmux.run(&command);
    pane.wait_within(Duration::from_secs(240), "OpenCode", |screen| screen.contains("ctrl+p"));
    let gate = Gate::closed();
    let shell = json!({"command": "touch made", "description": "test"});
    model.push(Reply::text("It begins.").hold(&gate).call("bash", shell));
    model.push(Reply::text("It is made."));
    pane.submit("make it");
    let request = model.wait_for_prompt("make it", PATIENCE);
    wait_until("an open answer", PATIENCE, || model.progress(&request) == Progress::Open);
    let state = || state(&sandbox, project, "lamp");
    wait_until("busy", PATIENCE, || state() == "busy");
    // What the model is offered includes tine's server.
    assert!(request.tool_names().iter().any(|name| name.starts_with("tine_")), "{:?}", request.tool_names());
    gate.open();
    wait_until("waiting", PATIENCE, || state() == "waiting");
    pane.wait_for(|screen| screen.contains("Permission required"));
    assert!(!project.join("made").exists(), "nobody has allowed it");
    pane.send_keys(["Enter"]);
    pane.wait_for_text("It is made.");
    wait_until("idle", PATIENCE, || state() == "idle");
    assert!(project.join("made").exists());
    let info = world.json(&["info", "lamp", "--json"]);
    assert_eq!((&info["agent"], &info["turns"]), (&json!("opencode"), &json!(1)));
    model.push(Reply::text("I hear you."));
    let mut send = sandbox.command(env!("CARGO_BIN_EXE_tine"));
    send.envs(world.opencode.environment()).current_dir(project).args(["send", "lamp", "/hear me", "--wait"]);
    let sent = send.output().expect("tine");
    assert!(text(&sent.stdout).contains("I hear you."), "{} {}", text(&sent.stdout), text(&sent.stderr));
    assert!(model.last_turn().prompt().is_some_and(|prompt| prompt.trim() == "/hear me"));
    world.tine(project, &["stop", "lamp"]);
    pane.wait_for_end();
    wait_until("stopped", PATIENCE, || state() == "stopped");
    world.tine(project, &["setup", "opencode", "--uninstall", "--yes"]);
    assert!(std::fs::read(world.opencode.settings()).expect("settings") == settings, "byte for byte");
    assert!(!sandbox.root().join("config/opencode/plugin").exists());
}

#[test]
fn every_option_of_opencode_is_known() {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let world = World::new(&sandbox, &model);
    for arguments in [&["--help"][..], &["run", "--help"]] {
        let mut command = world.opencode.command(&world.project);
        let help = command.env("COLUMNS", "400").args(arguments).output().expect("opencode");
        let help = text(&help.stdout) + &text(&help.stderr);
        compare_with(&help);
    }
}

/// OpenCode names the type of a value in brackets behind the explanation.
fn compare_with(help: &str) {
    let options = help.split_once("\nOptions:").expect("options").1;
    let brackets = |line: &str| match () {
        () if line.contains("[array]") => " <a>...",
        () if line.contains("[string]") || line.contains("[number]") => " <a>",
        () => "",
    };
    // What doesn't fit into a line is on the next one.
    let mut joined: Vec<String> = Vec::new();
    for line in options.lines() {
        match joined.last_mut().filter(|_| !line.trim_start().starts_with('-')) {
            Some(last) => last.push_str(line),
            None => joined.push(line.to_owned()),
        }
    }
    let lines = joined.iter().filter(|line| line.trim_start().starts_with('-')).map(|line| {
        let flags: Vec<&str> = line.split_whitespace().take_while(|word| word.starts_with('-')).collect();
        format!("  {}{}  x", flags.join(" "), brackets(line))
    });
    compare(Agent::OpenCode, &lines.collect::<Vec<_>>().join("\n"));
}
