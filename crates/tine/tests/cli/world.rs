//! A home with sessions of both agents, and tine in it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use testkit::Sandbox;
use testkit::build::{ClaudeSession, CodexSession};

pub(crate) const LOGIN: &str = "1f3a5c60-7d2e-4b1a-9c3d-5e8f7a6b4c21";
pub(crate) const COOKIE: &str = "b27e4d18-03c9-4f6a-8d15-92a7c4e6f083";
pub(crate) const EXPORT: &str = "019a81f0-3c52-7e10-8a4b-6d1f0c9e2b37";
pub(crate) const STREAM: &str = "019a820b-91d4-7b36-a5c8-04e7f2d1b6a9";

/// 10 November 2026, 12:00.
const BEGUN: u64 = 1_794_312_000_000;
const HOUR: u64 = 3_600_000;

/// A sandbox in which tine runs.
pub(crate) struct World {
    pub sandbox: Sandbox,
    pub shop: PathBuf,
    pub blog: PathBuf,
}

impl World {
    /// Two projects without sessions.
    pub(crate) fn empty() -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.set_now("2026-11-15T12:00:00Z").set("TZ", "UTC");
        let (shop, blog) = (sandbox.project("shop"), sandbox.project("blog"));
        World { sandbox, shop, blog }
    }

    /// A Claude Code session with a branch, a Codex thread with a fork by reference.
    pub(crate) fn new() -> Self {
        let world = World::empty();
        let (claude, codex) = (world.sandbox.claude_home(), world.sandbox.codex_home());
        let login = ClaudeSession::new(LOGIN)
            .cwd(&world.shop)
            .git_branch("fix/login")
            .seed(1)
            .started(BEGUN)
            .turn(|turn| {
                turn.prompt("Why do users land on /undefined after login?")
                    .thinking("The redirect must lose its target.")
                    .tool("Bash", json!({"command": "rg redirect src"}), "src/login.ts:41: res.redirect(next)")
                    .text("`login.ts:41` redirects to a target that the form drops.")
            })
            .turn(|turn| turn.prompt("Fix it, please.").text("Done, in a hidden field."));
        login
            .branch(COOKIE)
            .title("Login by cookie")
            .turn(|turn| turn.prompt("Try a cookie.").text("A cookie it is."))
            .write(&claude);
        login.turn(|turn| turn.prompt("Add a test.").text("14 tests pass.")).write(&claude);
        let export = CodexSession::new(EXPORT).cwd(&world.shop).seed(2).started(BEGUN + 24 * HOUR).turn(|turn| {
            turn.prompt("Orders need a CSV export.")
                .tool("exec_command", json!({"cmd": "ls src/orders"}), "list.ts\nroutes.ts")
                .text("Beside the list route.")
        });
        export.fork(STREAM).turn(|turn| turn.prompt("Make it stream.").text("It streams.")).write(&codex);
        export.turn(|turn| turn.prompt("Write it.").text("Written.")).write(&codex);
        world
    }

    /// The same, with both agents installed as programs that do nothing.
    pub(crate) fn with_agents() -> Self {
        let world = World::new();
        for agent in ["claude", "codex"] {
            world.sandbox.script(agent, "#!/bin/sh\nexit 0\n");
        }
        world
    }

    /// tine with these arguments, in the directory of the shop.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.args(arguments).current_dir(&self.shop);
        command
    }

    /// Runs tine and returns everything that it printed.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> TineOutput {
        TineOutput::of(self, &self.command(arguments).output().expect("tine"))
    }

    /// Runs tine in another directory.
    pub(crate) fn run_in<S: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> TineOutput {
        TineOutput::of(self, &self.command(arguments).current_dir(directory).output().expect("tine"))
    }

    /// Runs tine, which has to succeed, and parses its output.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Value {
        let shown = self.run(arguments);
        assert_eq!(shown.code, 0, "{shown:?}");
        serde_json::from_str(&shown.raw).unwrap_or_else(|error| panic!("{error}: {}", shown.raw))
    }

    /// Every file of the agents with its content, to see that nothing was touched.
    pub(crate) fn agents_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for home in [self.sandbox.claude_home(), self.sandbox.codex_home(), self.sandbox.gemini_home()] {
            collect(&home, &mut files);
        }
        files
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.clone(), fs::read(path).unwrap_or_default());
        }
    }
}

/// What tine printed, and its exit code.
#[derive(Debug)]
pub(crate) struct TineOutput {
    pub code: i32,
    /// Standard output with the sandbox's own paths made equal in every run.
    pub out: String,
    /// Standard error, likewise.
    pub err: String,
    /// Standard output as it was.
    pub raw: String,
}

impl TineOutput {
    pub(crate) fn of(world: &World, output: &Output) -> Self {
        let root = world.sandbox.root().canonicalize().expect("the root");
        let folder = agents::claude::project_folder(&root);
        let equal = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
            let text = text.replace(&*world.sandbox.root().to_string_lossy(), "[ROOT]");
            text.replace(&*root.to_string_lossy(), "[ROOT]").replace(&folder, "[ROOT]")
        };
        TineOutput {
            code: output.status.code().unwrap_or(-1),
            out: equal(&output.stdout),
            err: equal(&output.stderr),
            raw: String::from_utf8(output.stdout.clone()).expect("UTF-8"),
        }
    }

    /// All of it, for a snapshot.
    pub(crate) fn whole(&self) -> String {
        format!("exit code: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Whether a text could do anything to a terminal.
pub(crate) fn is_harmless(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}')
}
