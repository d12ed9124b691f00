//! A project whose code is recorded at the end of every turn, for the tests of the commands about code as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use testkit::build::ClaudeSession;
use testkit::poll::poll;

use crate::world::World;

pub(crate) const ID: &str = "7c1e2d3f-4a5b-4c6d-8e7f-9a0b1c2d3e4f";

/// A repository, and a session of Claude Code in it that is called `work`.
pub(crate) struct Recorded {
    pub world: World,
    session: ClaudeSession,
    transcript: PathBuf,
    turns: u32,
}

impl Recorded {
    pub(crate) fn new() -> Self {
        let world = World::empty();
        world.sandbox.write(world.sandbox.root().join("config/tine/config.toml"), "[snapshots]\nenabled = true\n");
        let session = ClaudeSession::new(ID).cwd(&world.shop);
        Recorded { world, session, transcript: PathBuf::new(), turns: 0 }
    }

    /// The repository.
    pub(crate) fn top(&self) -> &Path {
        &self.world.shop
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        self.world.sandbox.write(self.top().join(path), content);
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.top().join(path)).ok()
    }

    pub(crate) fn git<const N: usize>(&self, words: [&str; N]) -> String {
        self.world.sandbox.git(self.top(), words)
    }

    /// The agent begins a turn.
    pub(crate) fn begin_turn(&mut self) {
        self.turns += 1;
        let prompt = format!("prompt {}", self.turns);
        self.session = self.session.clone().turn(|turn| turn.prompt(prompt).text("done"));
        self.transcript = self.session.write(&self.world.sandbox.claude_home());
        if self.turns == 1 {
            assert_eq!(self.world.run(["adopt", ID, "work"]).code, 0);
        }
    }

    /// Calls a hook as the agent does.
    pub(crate) fn call(&self, event: &str) {
        let payload = json!({"session_id": ID, "transcript_path": self.transcript, "cwd": self.top()});
        let mut command = self.world.command(["hook", event, "--agent", "claude"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("tine");
        std::io::Write::write_all(&mut child.stdin.take().expect("its input"), payload.to_string().as_bytes())
            .expect("a payload");
        assert!(child.wait().expect("its end").success());
    }

    /// A turn with an end. Returns when its code is recorded.
    pub(crate) fn turn(&mut self) {
        self.begin_turn();
        self.call("stop");
        self.wait_for(&format!("{}-end", self.turns));
    }

    /// Waits for a snapshot.
    pub(crate) fn wait_for(&self, point: &str) {
        let pattern = format!("refs/tine/snapshots/claude/{ID}/{point}-*");
        poll(Duration::from_secs(60), || (!self.git(["for-each-ref", &pattern]).is_empty()).then_some(()))
            .unwrap_or_else(|| panic!("no snapshot {point}; {}", self.log()));
    }

    /// What hooks complained about.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.world.sandbox.root().join("data/tine/hook.log")).unwrap_or_default()
    }
}
