//! Interactive agents in tmux: a server of the test's own, panes that are typed into and read.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Sandbox;
use crate::poll::{PATIENCE, poll};
use crate::sandbox::{expect_success, text};

/// A tmux server on a socket inside the sandbox. It is ended with its owner, and no other server is touched.
pub struct Tmux {
    socket: PathBuf,
    base: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    program: PathBuf,
    directory: PathBuf,
}

/// One pane of a [`Tmux`] server.
pub struct Pane<'tmux> {
    tmux: &'tmux Tmux,
    id: String,
}

impl Tmux {
    /// Prepares a server; it starts with its first pane.
    pub fn new(sandbox: &Sandbox) -> Self {
        Self::on_socket(sandbox, &sandbox.root().join("run").join("tmux.sock"))
    }

    /// Prepares a server on a socket of the caller's choice.
    pub fn on_socket(sandbox: &Sandbox, socket: &Path) -> Self {
        let program = sandbox
            .find(OsStr::new("tmux"))
            .unwrap_or_else(|| panic!("tmux is not installed: run ./test once, it installs it"));
        let base = sandbox.environment().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { socket: socket.to_owned(), base, program, directory: sandbox.work() }
    }

    /// The server's socket, as `tmux -S` takes it.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Starts a command in a new window of 120 by 40 characters, with the command's own environment and directory.
    pub fn run(&self, command: &Command) -> Pane<'_> {
        self.run_sized(command, 120, 40)
    }

    /// Starts a command in a new window of a size.
    pub fn run_sized(&self, command: &Command, columns: u16, rows: u16) -> Pane<'_> {
        let size = [columns.to_string(), rows.to_string()];
        let mut tmux = self.command();
        // A pane outlives its command, so that its last words can be read.
        tmux.args(["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"]);
        tmux.args(["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", &size[0], "-y", &size[1]]);
        if let Some(directory) = command.get_current_dir() {
            tmux.arg("-c").arg(directory.to_string_lossy().replace('#', "##"));
        }
        // A pane inherits the server's environment, so the command's is spelled out in full; only what tmux tells its
        // panes is kept.
        tmux.args(["--", "sh", "-c", r#"exec env -i TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" "$@""#, "sh"]);
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                let mut assignment = name.to_owned();
                assignment.push("=");
                assignment.push(value);
                tmux.arg(assignment);
            }
        }
        tmux.arg(command.get_program()).args(command.get_args());
        let id = expect_success(&tmux.output().expect("tmux")).trim().to_owned();
        Pane { tmux: self, id }
    }

    /// Runs a tmux command on this server and returns what it printed.
    ///
    /// # Panics
    /// When tmux fails.
    pub fn call<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        expect_success(&self.command().args(arguments).output().expect("tmux"))
    }

    /// A `tmux` command for this server.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.base.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory).arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command
    }

    /// The pane with an id such as `%3`, which somebody else may have made.
    pub fn pane(&self, id: &str) -> Pane<'_> {
        Pane { tmux: self, id: id.to_owned() }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // Fails when no pane was ever started: then there is nothing to end.
        let _ = self.command().arg("kill-server").output();
    }
}

impl Pane<'_> {
    /// tmux's id of the pane, such as `%0`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Types a text as it is, without Enter.
    pub fn send_text(&self, typed: &str) {
        self.tmux.call(["send-keys", "-t", &self.id, "-l", "--", typed]);
    }

    /// Presses keys by tmux's names: `Enter`, `Escape`, `C-c`, `Up`.
    pub fn send_keys<S: AsRef<OsStr>>(&self, keys: impl IntoIterator<Item = S>) {
        let mut command = self.tmux.command();
        command.args(["send-keys", "-t", &self.id]).args(keys);
        expect_success(&command.output().expect("tmux"));
    }

    /// Types a line, waits until it is on the screen, and presses Enter. Agents take text and Enter that arrive at
    /// once for a paste, so the pause between them is needed. Keys that arrive while an agent redraws its input can
    /// get lost; then the line is typed again.
    #[track_caller]
    pub fn submit(&self, line: &str) {
        let seen: String = line.chars().filter(|letter| !letter.is_whitespace()).take(30).collect();
        let before = compact(&self.screen()).matches(&seen).count();
        let typed = (0..5).any(|_| {
            self.send_text(line);
            let shown = || (compact(&self.screen()).matches(&seen).count() > before).then_some(());
            let arrived = poll(Duration::from_secs(3), shown).is_some();
            if !arrived {
                self.send_keys(["C-u"]);
            }
            arrived
        });
        assert!(typed, "{line:?} could not be typed; the screen shows:\n{}", self.screen());
        let before = self.screen();
        self.send_keys(["Enter"]);
        // Enter can get lost as well, and then nothing on the screen changes.
        if poll(Duration::from_secs(2), || (self.screen() != before).then_some(())).is_none() {
            self.send_keys(["Enter"]);
        }
    }

    /// Presses a key, again every second, until the screen fulfils a condition: dialogs ignore keys right after they
    /// appear.
    #[track_caller]
    pub fn press_until(&self, key: &str, condition: impl Fn(&str) -> bool) -> String {
        for _ in 0..PATIENCE.as_secs() {
            self.send_keys([key]);
            let fulfilled = poll(Duration::from_secs(1), || Some(self.screen()).filter(|screen| condition(screen)));
            if let Some(screen) = fulfilled {
                return screen;
            }
        }
        panic!("pressing {key} did not help; the screen shows:\n{}", self.screen());
    }

    /// Submits a line that has to have an effect. What is typed while an agent redraws everything, as after a branch, can
    /// get lost, Enter alone or the whole line. So Enter is pressed again, and then the line is typed again, as long as
    /// nothing happens.
    #[track_caller]
    pub fn submit_until(&self, line: &str, happened: impl Fn() -> bool) {
        let has_happened = || poll(Duration::from_secs(5), || happened().then_some(())).is_some();
        for _ in 0..PATIENCE.as_secs() / 10 {
            self.submit(line);
            if has_happened() {
                return;
            }
            self.send_keys(["Enter"]);
            if has_happened() {
                return;
            }
            self.send_keys(["C-u"]);
        }
        panic!("{line:?} had no effect; the screen shows:\n{}", self.screen());
    }

    /// What is on the screen, as plain text.
    pub fn screen(&self) -> String {
        self.tmux.call(["capture-pane", "-p", "-t", &self.id])
    }

    /// The screen and what scrolled off it.
    pub fn history(&self) -> String {
        self.tmux.call(["capture-pane", "-p", "-S", "-", "-t", &self.id])
    }

    /// The process id of the pane's command.
    pub fn process(&self) -> u32 {
        let answer = self.tmux.call(["display-message", "-p", "-t", &self.id, "#{pane_pid}"]);
        answer.trim().parse().expect("a process id")
    }

    /// Whether the pane's command has ended.
    fn has_ended(&self) -> bool {
        let output = self.tmux.command().args(["display-message", "-p", "-t", &self.id, "#{pane_dead}"]).output();
        output.is_ok_and(|output| text(&output.stdout).trim() != "0")
    }

    /// Waits until the screen shows a text.
    ///
    /// # Panics
    /// After a minute, with the screen in the message.
    #[track_caller]
    pub fn wait_for_text(&self, wanted: &str) -> String {
        self.wait_within(PATIENCE, wanted, |screen| screen.contains(wanted))
    }

    /// Waits until the screen fulfils a condition.
    ///
    /// # Panics
    /// After a minute, with the screen in the message.
    #[track_caller]
    pub fn wait_for(&self, condition: impl Fn(&str) -> bool) -> String {
        self.wait_within(PATIENCE, "a condition", condition)
    }

    /// Waits at most so long until the screen fulfils a condition, and returns that screen.
    ///
    /// # Panics
    /// When the time is over, with the screen in the message.
    #[track_caller]
    pub fn wait_within(&self, timeout: Duration, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let fulfilled = poll(timeout, || {
            let screen = self.screen();
            condition(&screen).then_some(screen)
        });
        fulfilled
            .unwrap_or_else(|| panic!("waited {timeout:?} in vain for {what:?}; the screen shows:\n{}", self.screen()))
    }

    /// Waits until the pane's command has ended.
    #[track_caller]
    pub fn wait_for_end(&self) {
        let ended = poll(PATIENCE, || self.has_ended().then_some(()));
        assert!(ended.is_some(), "the command did not end; the screen shows:\n{}", self.screen());
    }

    /// Presses a key, again every second, until the command has ended.
    #[track_caller]
    pub fn press_until_end(&self, key: &str) {
        for _ in 0..PATIENCE.as_secs() {
            self.send_keys([key]);
            if poll(Duration::from_secs(1), || self.has_ended().then_some(())).is_some() {
                return;
            }
        }
        panic!("pressing {key} did not end the command; the screen shows:\n{}", self.screen());
    }

    /// Ends the pane's command and removes the pane.
    pub fn close(self) {
        let _ = self.tmux.command().args(["kill-pane", "-t", &self.id]).output();
    }
}

/// A screen without its white space, so that a line that is wrapped is still found.
fn compact(screen: &str) -> String {
    screen.chars().filter(|letter| !letter.is_whitespace()).collect()
}
