//! Every method of forking, with every cut, in every workspace, of a source in every state: the next request that reaches
//! the model carries exactly the expected history.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::text;
use testkit::{Gate, Sandbox};

use crate::conversation::{Conversation, state, tine_json};

const IDLE: &str = "11111111-1111-4111-8111-111111111111";
const BUSY: &str = "22222222-2222-4222-8222-222222222222";
const KILLED: &str = "33333333-3333-4333-8333-333333333333";

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [every_fork_of_claude]);
    use super::every_fork_of_claude;
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [every_fork_of_codex]);
    use super::every_fork_of_codex;
}

/// One agent in one world.
struct Lab<'a> {
    sandbox: &'a Sandbox,
    model: &'a Model,
    environment: Vec<(&'static str, String)>,
    resume: &'a dyn Fn(&Path, &str, &str),
    trust: &'a dyn Fn(&Path),
    cuts_natively: bool,
    project: PathBuf,
    elsewhere: PathBuf,
}

/// A session with three turns, the last of which may still be worked on.
struct Source {
    id: String,
    /// What is added to the command line so that it can be forked.
    now: bool,
    /// The prompts of a fork of all of it.
    whole: Vec<&'static str>,
}

impl Lab<'_> {
    fn fork(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(self.environment.clone()).current_dir(&self.project).args(["fork", "--json"]).args(arguments);
        let output = command.output().expect("tine");
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {} {}", text(&output.stdout), text(&output.stderr));
        });
        if output.status.success() { Ok(printed) } else { Err(printed["error"].to_string()) }
    }

    fn every_fork(&self, source: &Source) {
        let before = std::fs::read(self.path(&source.id)).expect("the source");
        let mut forks = Vec::new();
        for method in ["native", "copy", "seed"] {
            for cut in [None, Some(1)] {
                for workspace in ["same", "worktree", "other"] {
                    let spec = cut.map_or(source.id.clone(), |turn| format!("{}@{turn}", source.id));
                    let mut arguments = vec![spec.as_str(), "--method", method, "--yes"];
                    let name =
                        format!("{method}-{workspace}-{}-{}", cut.unwrap_or(0), &source.id[source.id.len() - 4..]);
                    arguments.push(&name);
                    match workspace {
                        "worktree" => arguments.push("--worktree"),
                        "other" => arguments.extend(["--to", self.elsewhere.to_str().unwrap()]),
                        _ => {}
                    }
                    if source.now {
                        arguments.push("--now");
                    }
                    let expected: Vec<&str> = match cut {
                        Some(turn) => source.whole[..turn].to_vec(),
                        None => source.whole.clone(),
                    };
                    let is_cut = cut.is_some() || source.now;
                    match self.fork(&arguments) {
                        Ok(made) => forks.push((made, expected, method)),
                        // An agent that cannot cut says so, and leaves nothing behind.
                        Err(error) if method == "native" && is_cut && !self.cuts_natively => {
                            assert!(error.contains("native_differs"), "{error}");
                        }
                        Err(error) => panic!("{arguments:?}: {error}"),
                    }
                }
            }
        }
        if !source.now {
            assert_eq!(std::fs::read(self.path(&source.id)).expect("the source"), before, "the source is as it was");
        }
        for (made, expected, method) in &forks {
            self.check(made, expected, method);
        }
    }

    /// Goes on in a fork and looks at what reaches the model.
    fn check(&self, made: &Value, expected: &[&str], method: &str) {
        let id = made["session"]["id"].as_str().unwrap_or_else(|| panic!("{made:#}"));
        let directory = PathBuf::from(made["workspace"]["path"].as_str().expect("a path"));
        let name = made["session"]["name"].as_str().unwrap_or_default();
        assert_eq!(made["method"], method);
        (self.trust)(&directory);
        (self.resume)(&directory, id, "in the fork");
        let request = self.model.last_turn();
        let seen = Conversation::from_request(&request);
        if method == "seed" {
            assert_eq!(seen.prompts.len(), 2, "{name}: {:?}", seen.prompts);
            let seed = &seen.prompts[0];
            assert!(seed.starts_with("[TINE_FORK_SEED]"), "{name}: {seed}");
            for prompt in ["first", "second", "third", "later, in the source"] {
                let printed = seed.contains(&format!(">>>\n{prompt}\n"));
                assert_eq!(printed, expected.contains(&prompt), "{name}: {prompt} in {seed}");
            }
        } else {
            let mut expected = expected.to_vec();
            expected.push("in the fork");
            assert_eq!(seen.prompts, expected, "{name}");
            // The tool call of the first turn stays with its result.
            assert!(seen.calls.keys().all(|call| seen.results.contains_key(call)), "{name}: {seen:?}");
            assert!(seen.results.values().any(|result| result.contains("from the tool")), "{name}: {seen:?}");
        }
        let session = tine_json(self.sandbox, &directory, &["info", id, "--json"]);
        assert_eq!(session["parent"]["id"], made["parent"]["id"], "{name}");
    }

    fn path(&self, id: &str) -> PathBuf {
        tine_json(self.sandbox, &self.project, &["info", id, "--json"])["path"].as_str().expect("a path").into()
    }
}

/// Ends a process that the test started, with what it started itself.
fn kill(child: &mut Child) {
    child.kill().expect("the end of a child");
    child.wait().expect("the end of a child");
}

fn quiet(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the agent")
}

fn every_fork_of_claude(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let (project, elsewhere) = (sandbox.project("app"), sandbox.project("else where"));
    // A call runs for two minutes at most unless it says otherwise, and the forks of a busy source take longer.
    let bash = |command: &str| json!({ "command": command, "description": "Run it", "timeout": 600_000 });
    let begin = |id: &str| {
        model.push(Reply::tool("Bash", bash("echo from the tool")));
        model.push(Reply::text("It said something."));
        claude.start(&project, id, "first");
        claude.resume(&project, id, "second");
    };
    let hang = |id: &str| {
        model.push(Reply::tool("Bash", bash("tail -f /dev/null")));
        let mut command = claude.command(&project);
        command.args(["-p", "third", "--dangerously-skip-permissions", "--resume", id]);
        let child = quiet(command);
        claude.wait_until_written(id, "tail -f /dev/null");
        wait_until("busy", PATIENCE, || state(&sandbox, &project, id) == "busy");
        child
    };
    begin(IDLE);
    claude.resume(&project, IDLE, "third");
    begin(KILLED);
    kill(&mut hang(KILLED));
    begin(BUSY);
    let mut busy = hang(BUSY);
    let lab = Lab {
        sandbox: &sandbox,
        model: &model,
        environment: claude.environment(),
        resume: &|directory, id, prompt| drop(claude.resume(directory, id, prompt)),
        trust: &|directory| claude.trust(directory),
        cuts_natively: true,
        project: project.clone(),
        elsewhere,
    };
    lab.every_fork(&Source { id: IDLE.into(), now: false, whole: vec!["first", "second", "third"] });
    lab.every_fork(&Source { id: KILLED.into(), now: false, whole: vec!["first", "second", "third"] });
    lab.every_fork(&Source { id: BUSY.into(), now: true, whole: vec!["first", "second"] });
    kill(&mut busy);
}

fn every_fork_of_codex(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let (project, elsewhere) = (sandbox.project("app"), sandbox.project("else where"));
    let begin = || {
        model.push(Reply::tool("exec_command", json!({"cmd": "echo from the tool"})));
        model.push(Reply::text("It said something."));
        let id = codex.start(&project, "first");
        codex.resume(&project, &id, "second");
        id
    };
    // Codex asks the model again while a tool runs; the busy turn must not end by that.
    let held = Gate::closed();
    model.on(move |request| {
        let asks_again = request.prompt().as_deref() == Some("third") && request.tool_results().len() > 1;
        asks_again.then(|| Reply::text("It ends.").hold(&held))
    });
    let hang = |id: &str| {
        model.push(Reply::tool("exec_command", json!({"cmd": "tail -f /dev/null"})));
        let mut command = codex.command(&project);
        command.args(["exec", "--skip-git-repo-check", "resume", id, "third"]);
        let child = quiet(command);
        wait_until("busy", PATIENCE, || {
            let written = codex.rollout(id).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
            written.contains("tail -f /dev/null") && state(&sandbox, &project, id) == "busy"
        });
        child
    };
    let idle = begin();
    codex.resume(&project, &idle, "third");
    let killed = begin();
    kill(&mut hang(&killed));
    let at_work = begin();
    let mut busy = hang(&at_work);
    let lab = Lab {
        sandbox: &sandbox,
        model: &model,
        environment: codex.environment(),
        resume: &|directory, id, prompt| drop(codex.resume(directory, id, prompt)),
        trust: &|directory| codex.trust(directory),
        cuts_natively: version != "0.140.0",
        project: project.clone(),
        elsewhere,
    };
    lab.every_fork(&Source { id: idle, now: false, whole: vec!["first", "second", "third"] });
    lab.every_fork(&Source { id: killed, now: false, whole: vec!["first", "second", "third"] });
    lab.every_fork(&Source { id: at_work, now: true, whole: vec!["first", "second"] });
    kill(&mut busy);
}
