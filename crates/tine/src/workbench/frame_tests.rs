//! Frames of the workbench over real sessions, drawn into memory.

use engine::{Clock, Context, Environment, Paths, Tine};
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use testkit::Sandbox;
use testkit::build::ClaudeSession;

use super::event::{Effect, Event, Hit};
use super::state::State;
use super::update::update;
use super::view;
use super::worker;
use crate::keymap::Key;

const LOGIN: &str = "1f3a5c60-0000-4000-8000-000000000000";

/// A workbench over a sandbox, driven without threads.
pub(super) struct Bench {
    _sandbox: Sandbox,
    pub state: State,
    worker: worker::EngineThread,
}

impl Bench {
    pub(super) fn new(width: u16, height: u16) -> Self {
        let sandbox = Sandbox::new();
        let project = sandbox.project("shop");
        let session = ClaudeSession::new(LOGIN).cwd(&project).seed(1).started(1_794_650_400_000);
        let session = session.turn(|turn| turn.prompt("Why do users land on /undefined?").text("The form drops it."));
        session
            .turn(|turn| turn.prompt("Fix it, please.").text("Done, **in a hidden field**."))
            .write(&sandbox.claude_home());
        let other = ClaudeSession::new("2b4c6d80-0000-4000-8000-000000000000").cwd(sandbox.work()).seed(2);
        let other = other.started(1_794_564_000_000);
        other.turn(|turn| turn.prompt("Why is the feed not valid?").text("A date.")).write(&sandbox.claude_home());
        let home = sandbox.home();
        let context = Context {
            surroundings: agents::Surroundings { home: home.clone(), ..agents::Surroundings::default() },
            paths: Paths {
                config: home.join("config.toml"),
                registry: home.join("registry.db"),
                cache: home.join("cache"),
            },
            program: "tine".into(),
            worker: Vec::new(),
            cwd: project.clone(),
            clock: Clock::Fixed("2026-11-15T12:00:00Z".parse().unwrap()),
            environment: Environment::default(),
            launch_environment: Default::default(),
            search_path: std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect(),
            cancel: agents::Cancel::default(),
        };
        // Paths are shown below it, so that no frame depends on where the sandbox is.
        let state = State::new(&project, sandbox.work(), context.clock, TimeZone::UTC, true);
        let worker = worker::EngineThread::new(Tine::open(context).unwrap(), true, TimeZone::UTC);
        let mut bench = Bench { _sandbox: sandbox, state, worker };
        bench.state.resize((width, height));
        let effects = bench.state.begin();
        bench.carry_out(effects);
        bench
    }

    /// Presses keys, and carries out what follows before the next one.
    pub(super) fn press(&mut self, keys: &[Key]) {
        for key in keys {
            let effects = update(&mut self.state, Event::Key(*key));
            self.carry_out(effects);
        }
    }

    pub(super) fn type_text(&mut self, text: &str) {
        self.press(&text.chars().map(Key::Char).collect::<Vec<_>>());
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let event = self.worker.carry_out(effect);
            let more = update(&mut self.state, event);
            self.carry_out(more);
        }
    }

    /// What is on the screen.
    pub(super) fn screen(&self) -> String {
        let (width, height) = self.state.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view::draw(frame, &self.state, true)).unwrap();
        let rows = terminal.backend().buffer().content.chunks(width.into());
        let text = |row: &[ratatui::buffer::Cell]| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        let screen: Vec<String> = rows.map(|row| text(row).trim_end().to_owned()).collect();
        screen.join("\n")
    }
}

#[test]
fn the_list_and_its_preview() {
    let bench = Bench::new(120, 16);
    insta::assert_snapshot!(bench.screen(), @r"
    tine   this project   all agents   1 session
    ~/shop                                                     │
      1f3a5c60  claude   Why do users land on /unde…   2    1d │ ── turn 1 · 10:00 · 2026-11-14 ──────────────────────────
                                                               │ ❯ Why do users land on /undefined?
                                                               │
                                                               │ The form drops it.
                                                               │
                                                               │▎── turn 2 · 10:00 · 2026-11-14 ──────────────────────────
                                                               │▎❯ Fix it, please.
                                                               │▎
                                                               │▎Done, in a hidden field.
                                                               │
                                                               │
                                                               │
    enter open   c chat   f fork   / search   i filter   tab scope   a agent   r rename   u undo   q quit   ? help
    ");
}

#[test]
fn a_narrow_terminal_has_no_preview() {
    let mut bench = Bench::new(80, 10);
    bench.press(&[Key::Tab]);
    insta::assert_snapshot!(bench.screen(), @r"
    tine   everywhere   all agents   2 sessions
    ~/shop
      1f3a5c60  claude   Why do users land on /undefined?                  2    1d
    ~
      2b4c6d80  claude   Why is the feed not valid?                        1    2d



    enter open   c chat   f fork   / search   i filter   tab scope   ? help
    ");
}

#[test]
fn a_transcript_opens_at_its_last_turn() {
    let mut bench = Bench::new(80, 8);
    bench.press(&[Key::Enter]);
    insta::assert_snapshot!(bench.screen(), @r"
     1f3a5c60 · Claude Code · turn 2 of 2 · Why do users land on /undefined?

    ▎── turn 2 · 10:00 · 2026-11-14 ───────────────────────────────────────────────
    ▎❯ Fix it, please.
    ▎
    ▎Done, in a hidden field.
     esc back   ] next turn   [ previous turn   f fork at this turn   ? help
    ");
    bench.press(&[Key::Char('[')]);
    assert!(bench.screen().contains("turn 1 of 2"), "{}", bench.screen());
}

#[test]
fn a_search_finds_a_turn_and_opens_it() {
    let mut bench = Bench::new(100, 10);
    bench.press(&[Key::Char('/')]);
    bench.type_text("hidden field");
    assert!(bench.screen().contains("turn 2 of 2"), "{}", bench.screen());
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("turn 2 of 2 ·"), "{}", bench.screen());
    bench.press(&[Key::Escape]);
    assert!(bench.screen().contains("enter open"));
}

#[test]
fn a_fork_is_shown_before_it_is_made_and_can_be_undone() {
    let mut bench = Bench::new(100, 20);
    bench.press(&[Key::Alt('F'), Key::Up]);
    bench.type_text("cookies");
    let screen = bench.screen();
    assert!(screen.contains("Fork 1f3a") && screen.contains("turn 1 of 2") && screen.contains("cookies"), "{screen}");
    bench.press(&[Key::Enter]);
    let screen = bench.screen();
    assert!(screen.contains("│ 1 cookies") && screen.contains("Fork created"), "{screen}");
    assert!(screen.contains("The form drops it.") && !screen.contains("Fix it, please."), "{screen}");
    bench.press(&[Key::Alt('s')]);
    let screen = bench.screen();
    assert!(screen.contains("└─@1 cookies"), "{screen}");
    bench.press(&[Key::Char('u')]);
    let screen = bench.screen();
    assert!(screen.contains("undid: fork") && !screen.contains("└─"), "{screen}");
}

#[test]
fn a_session_is_renamed_in_place() {
    let mut bench = Bench::new(100, 12);
    bench.press(&[Key::Char('r')]);
    bench.type_text("Login Fix");
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("error: "), "{}", bench.screen());
    bench.press(&[Key::Ctrl('u')]);
    bench.type_text("login-fix");
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("renamed 1f3a5c60 to login-fix"), "{}", bench.screen());
}

#[test]
fn every_size_of_terminal_can_be_drawn() {
    let mut bench = Bench::new(120, 30);
    let screens: [&[Key]; 8] = [
        &[],
        &[Key::Char('?')],
        &[Key::Escape, Key::Alt('F')],
        &[Key::Escape, Key::Enter],
        &[Key::Escape, Key::Char('/')],
        &[Key::Escape, Key::Ctrl('p')],
        &[Key::Escape, Key::Char('c')],
        &[Key::Function(1)],
    ];
    for keys in screens {
        bench.press(keys);
        for (width, height) in [(1, 1), (2, 3), (20, 5), (80, 24), (99, 4), (100, 4), (300, 100)] {
            let effects = update(&mut bench.state, Event::Resize(width, height));
            bench.carry_out(effects);
            bench.screen();
        }
    }
}

#[test]
fn answers_to_earlier_questions_are_dropped() {
    let mut bench = Bench::new(100, 10);
    bench.press(&[Key::Char('/')]);
    let first = update(&mut bench.state, Event::Key(Key::Char('f')));
    let second = update(&mut bench.state, Event::Key(Key::Char('x')));
    let [Effect::Search { ticket: old, .. }] = first.as_slice() else { panic!("a search") };
    let [Effect::Search { query, .. }] = second.as_slice() else { panic!("a search") };
    assert_eq!(query, "fx");
    let session = bench.state.sessions.as_ref().unwrap()[0].clone();
    let hits = vec![Hit { session, turn: 1, snippet: "outdated".to_owned() }];
    update(&mut bench.state, Event::Found { ticket: *old, hits, complete: true });
    assert!(!bench.screen().contains("outdated"));
}

#[test]
fn pasted_text_is_no_row_of_commands() {
    let mut bench = Bench::new(100, 10);
    let effects = update(&mut bench.state, Event::Paste("qu\u{3}f".to_owned()));
    assert!(effects.is_empty() && bench.screen().contains("enter open"));
    bench.press(&[Key::Char('i')]);
    update(&mut bench.state, Event::Paste("feed\n".to_owned()));
    assert_eq!(bench.state.filter, "feed");
}

#[test]
fn every_action_is_in_the_palette_and_runs_from_there() {
    let mut bench = Bench::new(100, 20);
    bench.press(&[Key::Ctrl('p')]);
    bench.type_text("sort");
    assert!(bench.screen().contains("sort"), "{}", bench.screen());
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("by name"), "{}", bench.screen());
}

#[test]
fn a_chat_opens_with_what_was_said_and_starts_no_agent() {
    let mut bench = Bench::new(100, 16);
    bench.press(&[Key::Char('c')]);
    insta::assert_snapshot!(bench.screen(), @r"
     Sessions │ 1 1f3a5c60
     1f3a5c60 · Claude Code · idle                                                      claude-opus-5-5

     ── turn 1 · 10:00 · 2026-11-14 ───────────────────────────────────────────────────────────────────
     ❯ Why do users land on /undefined?

     The form drops it.

     ── turn 2 · 10:00 · 2026-11-14 ───────────────────────────────────────────────────────────────────
     ❯ Fix it, please.

     Done, in a hidden field.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     ❯
     enter send   ctrl+j new line   esc interrupt   alt+shift+f fork   f1 help
    ");
    bench.type_text("now");
    assert!(bench.screen().contains("❯ now"), "{}", bench.screen());
    bench.press(&[Key::Ctrl('w')]);
    assert!(bench.screen().contains("tab scope"), "the tab is closed: {}", bench.screen());
}

#[test]
fn a_permission_is_asked_in_place_and_only_a_key_answers_it() {
    use engine::chat::{Action, AgentRequest, Always, Answer, Ask, ChatEvent};
    let mut bench = Bench::new(100, 20);
    bench.press(&[Key::Char('c')]);
    let tab = bench.state.tabs[0].number;
    let ask = Ask::Tool {
        name: "Bash".into(),
        input: serde_json::json!({ "command": "npm test\u{1b}[2J" }),
        reason: None,
        can_edit: true,
        hears_reason: true,
        always: Vec::<Always>::new(),
    };
    let request = AgentRequest { id: "r1".into(), call: None, by_subagent: false, ask };
    update(&mut bench.state, Event::Chat { tab, event: ChatEvent::Request(request) });
    let screen = bench.screen();
    assert!(
        screen.contains("Wants to run Bash") && screen.contains("npm test") && screen.contains("y allow"),
        "{screen}"
    );
    // Letters that mean nothing here answer nothing, and neither does Enter.
    for key in [Key::Char('x'), Key::Enter, Key::Char(' '), Key::Tab] {
        assert!(update(&mut bench.state, Event::Key(key)).is_empty());
    }
    assert!(update(&mut bench.state, Event::Paste("y\n".into())).is_empty());
    let effects = update(&mut bench.state, Event::Key(Key::Char('n')));
    let [Effect::Act { action: Action::Answer { request, answer }, .. }] = effects.as_slice() else {
        panic!("an answer")
    };
    assert_eq!((request.as_str(), answer), ("r1", &Answer::Deny { reason: None, interrupt: false }));
}
