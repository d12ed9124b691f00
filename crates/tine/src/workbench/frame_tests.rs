//! Frames of the workbench over real sessions, drawn into memory.

use engine::chat::{
    Action, AgentRequest, AnswerChoice, Ask, ChatEvent, ContextUse, Question, StreamPart, TurnEnd, TurnOutcome,
};
use engine::{Clock, Context, Environment, Paths, Snippet, Tine};
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use testkit::Sandbox;
use testkit::build::{ClaudeSession, Random};
use transcript::BlockKind;

use super::event::{Effect, ErrorText, Event, Hit};
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
        Bench::with(width, height, |_, _| {})
    }

    /// The same with more sessions.
    pub(super) fn with(width: u16, height: u16, more: impl FnOnce(&Sandbox, &std::path::Path)) -> Self {
        let sandbox = Sandbox::new();
        let project = sandbox.project("shop");
        more(&sandbox, &project);
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
            surroundings: agents::AgentEnvironment { home: home.clone(), ..agents::AgentEnvironment::default() },
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

    pub(super) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let event = self.worker.carry_out(effect);
            let more = update(&mut self.state, event);
            self.carry_out(more);
        }
    }

    fn buffer(&self) -> Buffer {
        let (width, height) = self.state.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view::draw(frame, &self.state, true)).unwrap();
        terminal.backend().buffer().clone()
    }

    /// The underlined words on the screen.
    pub(super) fn underlined(&self) -> Vec<String> {
        let buffer = self.buffer();
        let mut words = vec![String::new()];
        for cell in &buffer.content {
            match cell.modifier.contains(Modifier::UNDERLINED) {
                true => words.last_mut().unwrap().push_str(cell.symbol()),
                false => words.push(String::new()),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// What is on the screen.
    pub(super) fn screen(&self) -> String {
        let width = self.state.size.0;
        let buffer = self.buffer();
        let rows = buffer.content.chunks(width.into());
        let text = |row: &[ratatui::buffer::Cell]| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
        let screen: Vec<String> = rows.map(|row| text(row).trim_end().to_owned()).collect();
        screen.join("\n")
    }
}

#[test]
fn the_list_and_its_preview() {
    let bench = Bench::new(120, 16);
    insta::assert_snapshot!(bench.screen(), @r"
    tine   shop · repository   all agents   newest first                                                         1 session
    ~/shop                                                     │   1  ❯ Why do users land on /undefined?
      1f3a5c60  claude   Why do users land on /unde…   2    1d │
                                                               │      The form drops it.
                                                               │
                                                               │   2  ❯ Fix it, please.
                                                               │
                                                               │      Done, in a hidden field.
                                                               │
                                                               │
                                                               │
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
    tine   everywhere   all agents   newest first                       2 sessions
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

      2  ❯ Fix it, please.

         Done, in a hidden field.

    esc back   f fork at this turn   ] next turn   [ previous turn   ? help
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
    bench.press(&[Key::Alt('F'), Key::Left]);
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
    let hits = vec![Hit { session, turn: 1, snippet: Snippet { text: "outdated".to_owned(), marks: Vec::new() } }];
    update(&mut bench.state, Event::Found { ticket: *old, hits, notices: Vec::new(), complete: true });
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
    use engine::chat::{Always, Answer};
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
    // Letters without a meaning here answer nothing, and neither does Enter.
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

/// Whatever an agent sends and whatever else happens, only a key of the user answers a request.
#[test]
fn no_event_but_a_key_answers_a_request() {
    let mut bench = Bench::new(80, 24);
    bench.press(&[Key::Char('c')]);
    let tab = bench.state.tabs[0].number;
    let mut random = Random::new(7);
    let mut most_requests = 0;
    for round in 0..3000 {
        let event = match random.below(8) {
            0 => Event::Paste("y\ny a yes".to_owned()),
            1 => Event::Resize(1 + random.below(200) as u16, 1 + random.below(60) as u16),
            2 => Event::TabSession { tab, session: None },
            3 => Event::Failed(ErrorText { message: "no".into(), hint: None }),
            _ => Event::Chat { tab, event: any_chat_event(&mut random) },
        };
        for effect in update(&mut bench.state, event) {
            let is_answer = matches!(effect, Effect::Act { action: Action::Answer { .. }, .. });
            assert!(!is_answer, "a request was answered without a key");
        }
        most_requests = most_requests.max(bench.state.tabs[0].requests.len());
        if round % 20 == 0 {
            bench.screen();
        }
    }
    assert!(most_requests > 1, "requests were open");
}

/// No sequence of keys and events breaks the workbench, at any size.
#[test]
fn any_keys_in_any_order_are_survived() {
    let mut bench = Bench::new(80, 24);
    let mut random = Random::new(11);
    let named = [
        Key::Enter,
        Key::AltEnter,
        Key::Escape,
        Key::Backspace,
        Key::Delete,
        Key::Tab,
        Key::BackTab,
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::AltUp,
        Key::AltLeft,
        Key::AltRight,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Function(1),
        Key::Other,
    ];
    for round in 0..4000 {
        let letter = char::from(b' ' + random.below(95) as u8);
        let key = match random.below(6) {
            0 => Key::Alt(letter),
            // The one that quits does nothing else.
            1 => Key::Ctrl(if letter == 'c' { 'd' } else { letter }),
            2 | 3 => *random.choose(&named),
            _ => Key::Char(letter),
        };
        update(&mut bench.state, Event::Key(key));
        let tab = bench.state.tabs.first().map(|tab| tab.number);
        if let Some(tab) = tab.filter(|_| random.below(3) == 0) {
            update(&mut bench.state, Event::Chat { tab, event: any_chat_event(&mut random) });
        }
        if random.below(50) == 0 {
            update(&mut bench.state, Event::Resize(1 + random.below(150) as u16, 1 + random.below(50) as u16));
        }
        if round % 20 == 0 {
            bench.screen();
        }
    }
}

fn any_chat_event(random: &mut Random) -> ChatEvent {
    let text = || "some *text*\n\u{1b}[2J```\n".to_owned();
    let subagent = (random.below(4) == 0).then(|| "call".to_owned());
    let id = random.below(5).to_string();
    let question = Question {
        id: "q".into(),
        header: text(),
        text: text(),
        choices: vec![AnswerChoice { label: text(), description: text() }],
        several: random.below(2) == 0,
        free: true,
    };
    let ask = match random.below(4) {
        0 => Ask::Questions(vec![question]),
        1 => Ask::Plan { text: text(), modes: vec!["default", "acceptEdits"] },
        2 => Ask::Unknown { name: text() },
        _ => Ask::Tool {
            name: text(),
            input: serde_json::json!({ "command": text(), "other": [1] }),
            reason: Some(text()),
            can_edit: true,
            hears_reason: true,
            always: Vec::new(),
        },
    };
    let kinds = [
        BlockKind::Prompt { text: text(), steer: false },
        BlockKind::Answer { text: text(), model: None },
        BlockKind::Thinking { text: text() },
        BlockKind::Call { id: "call".into(), name: "Task".into(), input: serde_json::json!({ "description": text() }) },
        BlockKind::Output { call: "call".into(), name: None, text: text(), error: true, exit_code: Some(1) },
    ];
    let outcomes = [TurnOutcome::Completed, TurnOutcome::Interrupted, TurnOutcome::Failed(text())];
    match random.below(14) {
        0..=2 => ChatEvent::Request(AgentRequest { id, call: None, by_subagent: false, ask }),
        3 => ChatEvent::Withdrawn(id),
        4 | 5 => ChatEvent::Delta { subagent, part: StreamPart::Answer, text: text() },
        6 => ChatEvent::Delta { subagent, part: StreamPart::Output { call: id }, text: text() },
        7 | 8 => ChatEvent::Block { subagent, kind: random.choose(&kinds).clone() },
        9 => ChatEvent::TurnEnded(TurnEnd {
            outcome: random.choose(&outcomes).clone(),
            total_cost: Some(1.0),
            windows: Vec::new(),
        }),
        10 => ChatEvent::Settings { model: Some(text()), mode: Some(text()) },
        11 => ChatEvent::Context(ContextUse { used: 5_000_000, window: Some(0), cached: 0 }),
        12 => ChatEvent::Retrying { attempt: 1, after: None, reason: text() },
        _ => ChatEvent::TurnStarted,
    }
}
