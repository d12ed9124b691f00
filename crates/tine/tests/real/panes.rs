//! Sessions in panes of a real tmux, driven by name: each answer comes from the right session, and the model sees the
//! right histories.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::poll::{PATIENCE, wait_until};
use testkit::sandbox::{expect_success, text};
use testkit::{Gate, Sandbox, Tmux};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [
        two_sessions_and_a_fork,
        what_is_sent_arrives,
        what_is_around_stays_outside,
        what_else_is_typed_is_kept_apart,
        what_ends_is_stopped,
        what_is_open_is_offered,
        eight_sessions_at_once,
    ]);
    use super::{eight_sessions_at_once, what_ends_is_stopped, what_is_open_is_offered};

    #[test]
    fn a_dialog_is_not_answered() {
        super::a_dialog_is_not_answered("claude", "2.1.325");
    }

    fn two_sessions_and_a_fork(version: &str) {
        super::two_sessions_and_a_fork("claude", version);
    }
    fn what_is_sent_arrives(version: &str) {
        super::what_is_sent_arrives("claude", version);
    }
    fn what_is_around_stays_outside(version: &str) {
        super::what_is_around_stays_outside("claude", version);
    }
    fn what_else_is_typed_is_kept_apart(version: &str) {
        super::what_else_is_typed_is_kept_apart("claude", version);
    }
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [
        two_sessions_and_a_fork,
        what_is_sent_arrives,
        what_is_around_stays_outside,
        what_else_is_typed_is_kept_apart,
        a_dialog_is_not_answered,
        many_forks_at_once,
    ]);
    use super::many_forks_at_once;
    fn what_is_around_stays_outside(version: &str) {
        super::what_is_around_stays_outside("codex", version);
    }
    fn what_else_is_typed_is_kept_apart(version: &str) {
        super::what_else_is_typed_is_kept_apart("codex", version);
    }
    fn a_dialog_is_not_answered(version: &str) {
        super::a_dialog_is_not_answered("codex", version);
    }
    fn two_sessions_and_a_fork(version: &str) {
        super::two_sessions_and_a_fork("codex", version);
    }
    fn what_is_sent_arrives(version: &str) {
        super::what_is_sent_arrives("codex", version);
    }
}

/// One agent, a tmux around it, and tine as somebody types it in a pane there.
pub(crate) struct Lab<'a> {
    pub(crate) sandbox: &'a Sandbox,
    environment: Vec<(&'static str, String)>,
    agent: &'a str,
    pub(crate) tmux: &'a Tmux,
    /// The variables that the terminal around tine sets.
    around: Vec<(&'static str, String)>,
    /// Where sessions are started.
    place: &'static str,
    project: std::path::PathBuf,
}

impl Lab<'_> {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(env!("CARGO_BIN_EXE_tine"));
        command.envs(self.environment.clone()).current_dir(&self.project).args(arguments);
        command.envs(self.around.clone());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tine")
    }

    #[track_caller]
    pub(crate) fn tine(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "tine {arguments:?}: {}{}", text(&output.stderr), text(&output.stdout));
        text(&output.stdout)
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.tine(arguments);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error} in {printed}"))
    }

    #[track_caller]
    pub(crate) fn start(&self, name: &str) -> String {
        let made = self.json(&["start", name, "--agent", self.agent, "--in", self.place, "--json"]);
        made["place"]["pane"].as_str().unwrap_or_else(|| panic!("{made:#}")).to_owned()
    }

    pub(crate) fn state(&self, session: &str) -> String {
        text(&self.output(&["status", session]).stdout).trim().to_owned()
    }
}

/// Runs `test` with an agent that is at home in tmux.
pub(crate) fn with_lab(agent: &str, version: &str, trusts: bool, test: impl FnOnce(&Lab<'_>, &Model)) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let project = sandbox.project("my app");
    let environment = match agent {
        "claude" => {
            let claude = ClaudeDriver::new(&sandbox, &model, version);
            if trusts {
                claude.trust(&project);
            }
            claude.environment()
        }
        _ => {
            let codex = CodexDriver::new(&sandbox, &model, version);
            if trusts {
                codex.trust(&project);
            }
            codex.environment()
        }
    };
    let tmux = Tmux::new(&sandbox);
    let mut shell = sandbox.command("cat");
    shell.current_dir(&project);
    let pane = tmux.run_sized(&shell, 200, 50).id().to_owned();
    let around = vec![("TMUX", format!("{},1,0", tmux.socket().display())), ("TMUX_PANE", pane)];
    let lab = Lab { sandbox: &sandbox, environment, agent, tmux: &tmux, around, place: "tmux:window", project };
    test(&lab, &model);
}

/// Lets the model answer by what was asked, as several sessions ask at once; what is told to take its time waits for the
/// gate.
pub(crate) fn answer_by_prompt(model: &Model) -> Gate {
    let gate = Gate::closed();
    let held = gate.clone();
    model.on(move |request| {
        let prompt = request.prompt()?;
        let reply = Reply::text(format!("to {prompt}"));
        Some(if prompt == "take your time" { reply.hold(&held) } else { reply })
    });
    gate
}

fn two_sessions_and_a_fork(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let gate = answer_by_prompt(model);
        let panes = [lab.start("one"), lab.start("two")];
        assert_ne!(panes[0], panes[1]);
        assert_eq!(lab.tine(&["send", "one", "first of one", "--wait"]), "to first of one\n");
        assert_eq!(lab.tine(&["send", "two", "first of two", "--wait"]), "to first of two\n");
        // One is forked while the other works.
        lab.tine(&["send", "two", "take your time"]);
        assert_eq!(lab.state("two"), "busy");
        let made = lab.json(&["fork", "one", "three", "--in", "tmux:window", "--json", "--yes"]);
        assert_eq!(made["place"]["kind"], "tmux", "{made:#}");
        assert_ne!(made["session"]["id"], made["parent"]["id"]);
        assert_eq!(lab.tine(&["send", "three", "second of three", "--wait"]), "to second of three\n");
        assert_eq!(model.last_turn().prompts(), ["first of one", "second of three"]);
        assert_eq!(lab.tine(&["send", "one", "second of one", "--wait"]), "to second of one\n");
        assert_eq!(model.last_turn().prompts(), ["first of one", "second of one"]);
        // Waiting ends with a word on who is still at work.
        let refused = lab.output(&["wait", "one", "two", "--timeout", "1s"]);
        assert!(!refused.status.success() && text(&refused.stderr).contains("`two` is still busy"), "{refused:?}");
        assert_eq!(lab.tine(&["wait", "one", "two", "--any"]), "one idle\n");
        gate.open();
        lab.tine(&["wait", "one", "two", "three"]);
        assert_eq!(lab.tine(&["read", "two", "--last"]), "to take your time\n");
        assert_eq!(lab.tine(&["read", "one"]), "to second of one\n");
        assert!(lab.tine(&["read", "three", "--screen"]).contains("second of three"));
        lab.tine(&["focus", "two"]);
        let active = lab.tmux.call(["list-panes", "-s", "-t", &panes[1], "-f", "#{window_active}", "-F", "#{pane_id}"]);
        assert_eq!(active.trim(), panes[1]);
        lab.tine(&["stop", "one", "two", "three"]);
        for session in ["one", "two", "three"] {
            assert_eq!(lab.state(session), "stopped");
        }
        // One that does not run is told without a terminal.
        assert_eq!(lab.tine(&["send", "three", "and once more", "--wait"]), "to and once more\n");
        assert_eq!(model.last_turn().prompts(), ["first of one", "second of three", "and once more"]);
    });
}

/// An agent that is started from inside another one does not take itself for its child, nor for its session.
fn what_is_around_stays_outside(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, _| {
        let left = [
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("CLAUDE_CODE_SESSION_ID", "11111111-1111-4111-8111-111111111111"),
            ("CLAUDE_PROJECT_DIR", "/elsewhere"),
            ("CODEX_THREAD_ID", "019a0000-0000-7000-8000-000000000000"),
            ("CODEX_SANDBOX", "seatbelt"),
        ];
        let mut command = lab.command(&["start", "inner", "--agent", agent, "--in", "tmux:window", "--json"]);
        let output = command.envs(left).env("KEPT_BY_ALL", "yes").output().expect("tine");
        expect_success(&output);
        let made: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
        let process = lab.tmux.pane(made["place"]["pane"].as_str().expect("a pane")).process();
        let environment = std::fs::read(format!("/proc/{process}/environ")).expect("its environment");
        let environment = text(&environment);
        let has = |name: &str| environment.split('\0').any(|variable| variable.starts_with(&format!("{name}=")));
        assert!(has("KEPT_BY_ALL") && has("TINE_SESSION"), "{environment}");
        for (name, _) in left {
            assert!(!has(name), "{name} reached {agent}");
        }
    });
}

/// What a person left in the input line, what was interrupted, who has scrolled back, and what two say at once.
fn what_else_is_typed_is_kept_apart(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let gate = answer_by_prompt(model);
        // What is said at the start is taken up before anybody waits for it.
        let words = ["start", "one", "--agent", agent, "--in", "tmux:window", "--prompt", "at the start", "--json"];
        let pane = lab.json(&words)["place"]["pane"].as_str().expect("a pane").to_owned();
        assert_eq!(lab.tine(&["wait", "one"]), "one idle\n");
        assert_eq!(lab.tine(&["read", "one"]), "to at the start\n");
        let pane = lab.tmux.pane(&pane);
        pane.send_text("a draft of mine");
        pane.wait_for_text("a draft of mine");
        assert_eq!(lab.tine(&["send", "one", "after a draft", "--wait"]), "to after a draft\n");
        lab.tmux.call(["copy-mode", "-t", pane.id()]);
        assert_eq!(lab.tine(&["send", "one", "while scrolled", "--wait"]), "to while scrolled\n");
        // Two at once are said one after the other, and each is answered.
        std::thread::scope(|scope| {
            let both =
                ["alpha", "beta"].map(|words| scope.spawn(move || lab.output(&["send", "one", words, "--wait"])));
            let answers = both.map(|thread| text(&thread.join().expect("a thread").stdout));
            assert_eq!(answers, ["to alpha\n", "to beta\n"]);
        });
        // An agent that puts an interrupted prompt back into its line is not told it again.
        lab.tine(&["send", "one", "take your time"]);
        model.wait_for_prompt("take your time", PATIENCE);
        lab.tine(&["interrupt", "one"]);
        gate.open();
        assert_eq!(lab.tine(&["send", "one", "another plan", "--wait"]), "to another plan\n");
        assert_eq!(model.last_turn().prompt().as_deref(), Some("another plan"));
    });
}

fn what_is_sent_arrives(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let long: String = (0..2_000).map(|number| format!("line {number} of a long text with ünï漢字\n")).collect();
        let tabs: String = (0..2_500).map(|number| format!("target-{number}:\n\tmake it ünï\t# {number}\n")).collect();
        let texts = [
            "plain",
            "-starts with a dash",
            "--like an option",
            "/not-a-command of any kind",
            "!important, and no shell command",
            "#not a note",
            "exit",
            "/clear the cache of the app",
            "/help me with this",
            "see @READ",
            "@README.md",
            "a backslash at the end \\",
            "two\nlines",
            "all:\n\tcc -o app main.c\n\n\ttouch done",
            "line ends\r\nof another system",
            tabs.trim_end(),
            "quotes ' \" ` and $HOME $(id) ${x} \\ \\n %s",
            "ünï 漢字 🙂",
            "~ tilde; semicolon & ampersand | pipe > redirect * glob ? [x]",
            long.trim_end(),
        ];
        lab.start("nasty");
        for (number, words) in texts.iter().enumerate() {
            let mut command = lab.command(&["send", "nasty", "--wait", "-"]);
            model.push(Reply::text(format!("answer {number}")));
            let child = command
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            let mut child = child.spawn().expect("tine");
            std::io::Write::write_all(&mut child.stdin.take().expect("its input"), words.as_bytes())
                .expect("its input");
            let answer = expect_success(&child.wait_with_output().expect("tine"));
            assert_eq!(answer.trim_end(), format!("answer {number}"));
            let output = model.last_turn().prompt().unwrap_or_default();
            // What keeps an input line from taking it for a command.
            let output = match words.starts_with(['/', '!']) || *words == "exit" {
                true => output.trim_start_matches([' ', '\u{200b}', '\u{2800}']).to_owned(),
                false => output,
            };
            assert!(
                output == *words,
                "{number}: {} characters arrived of {}: {:.200}",
                output.len(),
                words.len(),
                output
            );
        }
        // An argument does as well as standard input.
        lab.tine(&["send", "nasty", "-n", "--wait"]);
        assert_eq!(model.last_turn().prompt().as_deref(), Some("-n"));
    });
}

/// The same in kitty, with a screen that nobody looks at.
#[test]
fn sessions_in_kitty() {
    with_lab("claude", "2.1.325", true, |lab, model| {
        model.on(|request| Some(Reply::text(format!("to {}", request.prompt()?))));
        let screen = Screen::start(lab.sandbox);
        let socket = format!("unix:{}", lab.sandbox.root().join("run/kitty.sock").display());
        // Terminals are hidden from tests that do not ask for them.
        std::os::unix::fs::symlink("/usr/bin/kitty", lab.sandbox.bin().join("kitty")).expect("a link");
        let mut kitty = lab.sandbox.command("kitty");
        kitty.env("DISPLAY", &screen.display).env("LIBGL_ALWAYS_SOFTWARE", "1").current_dir(&lab.project);
        kitty.args(["--config", "NONE", "-o", "allow_remote_control=yes", "--listen-on", &socket, "cat"]);
        let _kitty = Ending(kitty.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("kitty"));
        let socket_file = lab.sandbox.root().join("run/kitty.sock");
        wait_until("kitty", PATIENCE, || {
            let mut ask = lab.sandbox.command("kitty");
            socket_file.exists()
                && ask.args(["@", "--to", &socket, "ls"]).output().is_ok_and(|output| output.status.success())
        });
        let around = vec![("KITTY_LISTEN_ON", socket.clone()), ("KITTY_WINDOW_ID", "1".to_owned())];
        let (sandbox, environment) = (lab.sandbox, lab.environment.clone());
        let lab = Lab {
            sandbox,
            environment,
            agent: "claude",
            tmux: lab.tmux,
            around,
            place: "kitty:tab",
            project: lab.project.clone(),
        };
        lab.start("one");
        assert_eq!(
            lab.tine(&["send", "one", "first 'words' of $one\nand more", "--wait"]),
            "to first 'words' of $one\nand more\n"
        );
        let made = lab.json(&["fork", "one", "two", "--in", "auto", "--json", "--yes"]);
        assert_eq!(made["place"]["kind"], "kitty", "{made:#}");
        assert_eq!(lab.tine(&["send", "two", "second of two", "--wait"]), "to second of two\n");
        assert_eq!(model.last_turn().prompts(), ["first 'words' of $one\nand more", "second of two"]);
        assert!(lab.tine(&["read", "two", "--screen"]).contains("second of two"));
        lab.tine(&["focus", "one"]);
        lab.tine(&["stop", "one", "two"]);
        assert_eq!((lab.state("one"), lab.state("two")), ("stopped".into(), "stopped".into()));
    });
}

/// A child that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A screen in memory.
struct Screen {
    display: String,
    _server: Ending,
}

impl Screen {
    fn start(sandbox: &Sandbox) -> Self {
        let mut server = sandbox.command("Xvfb");
        server.args(["-displayfd", "1", "-screen", "0", "1600x900x24", "-nolisten", "tcp"]);
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb: run ./test once");
        let mut number = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(server.stdout.take().expect("its output")),
            &mut number,
        )
        .expect("its number");
        Screen { display: format!(":{}", number.trim()), _server: Ending(server) }
    }
}

/// Who resumes a session that is open is led to it, or gets a fork.
fn what_is_open_is_offered(version: &str) {
    with_lab("claude", version, true, |lab, model| {
        let pane = lab.start("busy-bee");
        model.push(Reply::text("yes"));
        lab.tine(&["send", "busy-bee", "hello", "--wait"]);
        let ask = |answer: &str| {
            let mut command = lab.command(&["resume", "busy-bee"]);
            command.env_remove("TMUX").env_remove("TMUX_PANE");
            let asking = lab.tmux.run(&command);
            asking.wait_for_text("is already open");
            assert!(asking.screen().contains(&format!("in tmux pane {pane}")), "{}", asking.screen());
            asking.submit(answer);
            asking
        };
        ask("s");
        let shown = || lab.tmux.call(["display-message", "-p", "-t", &pane, "#{window_active}"]);
        wait_until("its window", PATIENCE, || shown().trim() == "1");
        let forked = ask("f");
        forked.wait_for_text("forked busy-bee");
        wait_until("the fork", PATIENCE, || lab.state("busy-bee-fork-1") == "idle");
        let refused = lab.output(&["resume", "busy-bee", "--in", "tmux"]);
        assert!(text(&refused.stderr).contains("is already open"), "{}", text(&refused.stderr));
    });
}

fn eight_sessions_at_once(version: &str) {
    with_lab("claude", version, true, |lab, model| {
        model.on(|request| Some(Reply::text(format!("to {}", request.prompt()?))));
        let names: Vec<String> = (1..=8).map(|number| format!("number-{number}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(move || {
                    lab.start(name);
                    let answer = lab.tine(&["send", name, &format!("word of {name}"), "--wait"]);
                    assert_eq!(answer, format!("to word of {name}\n"));
                });
            }
        });
        let status = lab.tine(&["status"]);
        assert_eq!(status.lines().filter(|line| !line.starts_with(' ')).count(), 8, "{status}");
        for name in &names {
            assert_eq!(lab.tine(&["read", name]), format!("to word of {name}\n"));
        }
        let mut words = vec!["stop"];
        words.extend(names.iter().map(String::as_str));
        lab.tine(&words);
        assert_eq!(lab.tine(&["status", "--json"]).trim(), "[]");
    });
}

/// Each fork has a pane and a worktree of its own, and is told something else.
fn many_forks_at_once(version: &str) {
    with_lab("codex", version, true, |lab, model| {
        model.on(|request| Some(Reply::text(format!("to {}", request.prompt()?))));
        lab.start("base");
        lab.tine(&["send", "base", "begin", "--wait"]);
        let prompts = lab.sandbox.write("prompts", "try one\n\ntry two\ntry three\n");
        let prompts = prompts.to_str().expect("a path");
        let words =
            ["fork", "base", "try", "--times", "3", "--prompts", prompts, "--in", "tmux:window", "--json", "--yes"];
        let made = lab.json(&words);
        let made = made.as_array().expect("an array");
        let names: Vec<&str> = made.iter().map(|fork| fork["session"]["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["try-1", "try-2", "try-3"]);
        lab.tine(&["wait", "try-1", "try-2", "try-3", "--timeout", "60s"]);
        for (name, said) in names.iter().zip(["try one", "try two", "try three"]) {
            assert_eq!(lab.tine(&["read", name]), format!("to {said}\n"));
            let seen = model.turn_requests();
            let own = seen.iter().find(|request| request.prompt().as_deref() == Some(said)).expect("a request");
            assert_eq!(own.prompts(), ["begin", said]);
        }
        let output = lab.tine(&["status"]);
        let sessions = output.lines().filter(|line| !line.starts_with(' '));
        assert_eq!(sessions.count(), 4, "{output}");
    });
}

fn a_dialog_is_not_answered(agent: &str, version: &str) {
    with_lab(agent, version, false, |lab, model| {
        let refused = lab.output(&["start", "strange", "--agent", agent, "--in", "tmux:window"]);
        let output = text(&refused.stderr);
        assert!(!refused.status.success() && output.contains("folder trust prompt"), "{output}");
        assert!(model.turn_requests().is_empty());
        let output = lab.tine(&["status"]);
        assert!(output.starts_with("strange") && output.contains("waiting for an answer"), "{output}");
        assert_eq!(lab.json(&["status", "--json"])[0]["state"], "waiting");
    });
}

fn what_ends_is_stopped(version: &str) {
    with_lab("claude", version, true, |lab, model| {
        let [closed, killed] = ["closed", "killed"].map(|name| {
            let pane = lab.start(name);
            model.push(Reply::text("yes"));
            lab.tine(&["send", name, "hello", "--wait"]);
            pane
        });
        // A pane that was closed by hand.
        lab.tmux.call(["kill-pane", "-t", &closed]);
        wait_until("stopped", PATIENCE, || lab.state("closed") == "stopped");
        // An agent that was killed.
        let pid = lab.tmux.call(["display-message", "-p", "-t", &killed, "#{pane_pid}"]);
        let ended = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill");
        assert!(ended.success());
        wait_until("stopped", PATIENCE, || lab.state("killed") == "stopped");
        for session in ["closed", "killed"] {
            let refused = lab.output(&["focus", session]);
            assert!(text(&refused.stderr).contains("is not running"), "{}", text(&refused.stderr));
        }
        // Interrupted, it is idle again.
        let gate = Gate::closed();
        lab.start("third");
        model.push(Reply::text("too late").hold(&gate));
        lab.tine(&["send", "third", "take your time"]);
        lab.tine(&["interrupt", "third"]);
        wait_until("idle", PATIENCE, || lab.state("third") == "idle");
        // The whole terminal is gone.
        lab.tmux.call(["kill-server"]);
        wait_until("stopped", PATIENCE, || lab.state("third") == "stopped");
        let refused = lab.output(&["start", "fourth", "--in", "wezterm"]);
        assert!(!refused.status.success(), "{refused:?}");
    });
}
