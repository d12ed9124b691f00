//! The list of sessions as it changes, the mouse, the search and the fork dialog, as pure updates and frames.

use agents::{Holder, LiveSession};
use engine::{MouseLevel, Project, Session};
use testkit::build::ClaudeSession;
use transcript::State as Activity;

use super::event::{Effect, ErrorText, Event, Mouse, MouseKind};
use super::fork_dialog::ForkField;
use super::frame_tests::Bench;
use super::state::{Popup, Screen};
use super::update::update;
use crate::keymap::Key;

fn sessions(bench: &Bench) -> Vec<Session> {
    bench.state.sessions.clone().unwrap()
}

/// The sessions change, as if they were read again.
fn change(bench: &mut Bench, sessions: Vec<Session>) {
    let project = bench.state.project.clone();
    let effects = update(&mut bench.state, Event::Sessions(sessions, project));
    bench.carry_out(effects);
}

/// A session that waits for the user.
fn waiting(session: &mut Session, wish: &str) {
    session.view.state = Activity::Waiting;
    session.live = Some(LiveSession {
        pid: Some(1),
        holder: Holder::Agent,
        state: Some(Activity::Waiting),
        since: None,
        waiting_for: Some(wish.to_owned()),
        cwd: None,
        folders: Vec::new(),
    });
}

#[test]
fn a_session_that_needs_you_is_on_top_and_one_key_away() {
    let mut bench = Bench::new(120, 16);
    let mut now = sessions(&bench);
    // It is in another project.
    waiting(&mut now[1], "permission to run `npm test`");
    change(&mut bench, now);
    insta::assert_snapshot!(bench.screen().lines().take(6).collect::<Vec<_>>().join("\n"), @r"
    tine   shop · repository   all agents   newest first                                          1 needs you   2 sessions
    NEEDS YOU                                                  │   1  ❯ Why do users land on /undefined?
    ◐ 2b4c6d80  claude   waits for permission to ru…   1    2d │
    ~/shop                                                     │      The form drops it.
      1f3a5c60  claude   Why do users land on /unde…   2    1d │
                                                               │   2  ❯ Fix it, please.
    ");
    // The selection stays with its session.
    assert_eq!(bench.state.selection().unwrap().view.turns, 2);
    bench.press(&[Key::Char('w')]);
    assert_eq!(bench.state.selection().unwrap().view.turns, 1);
    bench.press(&[Key::Alt('w')]);
    assert!(matches!(bench.state.screen, Screen::Chat(_)), "it is opened");
}

#[test]
fn an_unchanged_list_draws_nothing_and_new_sessions_leave_the_selection_alone() {
    let mut bench = Bench::new(120, 16);
    bench.press(&[Key::Tab, Key::Down]);
    let before = bench.state.selection().unwrap().key();
    bench.state.is_stale = false;
    let same = sessions(&bench);
    change(&mut bench, same);
    assert!(!bench.state.is_stale, "nothing has changed");
    // One more, newer than all others.
    let mut now = sessions(&bench);
    let mut new = now[0].clone();
    new.view.id = "aaaaaaaa-0000-4000-8000-000000000000".parse().unwrap();
    new.view.path = new.view.path.with_file_name("new.jsonl");
    now.insert(0, new);
    change(&mut bench, now);
    assert!(bench.state.is_stale && bench.screen().contains("3 sessions"), "{}", bench.screen());
    assert_eq!(bench.state.selection().unwrap().key(), before);
    let effects = update(&mut bench.state, Event::SessionsChanged);
    assert!(matches!(effects.as_slice(), [Effect::LoadSessions]));
    let effects = update(&mut bench.state, Event::SessionsChanged);
    assert!(effects.is_empty(), "they are being read already");
}

#[test]
fn the_scope_goes_from_repository_to_everywhere_and_to_the_directory() {
    let mut bench = Bench::new(80, 12);
    assert!(bench.screen().starts_with(" tine   shop "), "{}", bench.screen());
    let shop = bench.state.directory.clone();
    std::fs::create_dir_all(shop.join(".git")).unwrap();
    let project = Project::of(&shop);
    let now = sessions(&bench);
    update(&mut bench.state, Event::Sessions(now, project));
    let mut scopes = Vec::new();
    for _ in 0..3 {
        bench.press(&[Key::Tab]);
        scopes.push(bench.screen().lines().next().unwrap()[8..28].trim().to_owned());
    }
    assert_eq!(scopes, ["everywhere   all age", "shop · directory", "shop · repository"]);
}

fn mouse(bench: &mut Bench, column: u16, row: u16, kind: MouseKind) {
    let effects = update(&mut bench.state, Event::Mouse(Mouse { column, row, kind }));
    bench.carry_out(effects);
}

#[test]
fn the_wheel_scrolls_what_is_under_it_and_clicks_open_only_where_wanted() {
    let mut bench = Bench::with(120, 12, |sandbox, project| {
        let long = ClaudeSession::new("7a3a5c60-0000-4000-8000-000000000000").cwd(project).seed(3);
        let lines = (1..60).map(|number| format!("- line {number}")).collect::<Vec<_>>().join("\n");
        let long = long.started(1_794_700_000_000).turn(|turn| turn.prompt("A long one").text(&lines));
        long.write(&sandbox.claude_home());
    });
    assert_eq!(bench.state.mouse, MouseLevel::Wheel);
    // The preview at the right.
    mouse(&mut bench, 100, 5, MouseKind::WheelDown);
    assert_eq!((bench.state.selected, bench.state.preview.as_ref().unwrap().top > 0), (1, true));
    // The list at the left.
    mouse(&mut bench, 3, 5, MouseKind::WheelDown);
    assert_eq!(bench.state.selected, 2);
    mouse(&mut bench, 3, 2, MouseKind::Click);
    assert_eq!(bench.state.selected, 2, "clicks belong to the terminal");
    bench.press(&[Key::Alt('z')]);
    assert_eq!(bench.state.mouse, MouseLevel::Full);
    mouse(&mut bench, 3, 2, MouseKind::Click);
    assert_eq!((bench.state.selected, bench.state.context().name()), (1, "sessions"));
    mouse(&mut bench, 3, 2, MouseKind::Click);
    assert_eq!(bench.state.context().name(), "transcript");
    bench.press(&[Key::Escape, Key::Char('c')]);
    assert_eq!(bench.state.context().name(), "chat");
    mouse(&mut bench, 2, 0, MouseKind::Click);
    assert_eq!(bench.state.context().name(), "sessions");
    mouse(&mut bench, 14, 0, MouseKind::Click);
    assert_eq!(bench.state.context().name(), "chat");
    bench.press(&[Key::Alt('z')]);
    assert_eq!(bench.state.mouse, MouseLevel::Off);
}

#[test]
fn a_hit_is_previewed_with_its_words_and_forked_at_its_turn() {
    let mut bench = Bench::new(120, 14);
    bench.press(&[Key::Char('/')]);
    bench.type_text("land");
    let screen = bench.screen();
    assert!(screen.contains("turn 1 of 2") && screen.contains("❯ Why do users land on"), "{screen}");
    assert_eq!(bench.state.preview.as_ref().unwrap().words, ["land"]);
    assert!(bench.underlined().contains(&"land".to_owned()), "{:?}", bench.underlined());
    // Letters belong to the query until the user turns to the hits.
    bench.press(&[Key::Tab, Key::Char('f')]);
    let Some(Popup::Fork(dialog)) = &bench.state.popup else { panic!("a dialog") };
    assert_eq!(dialog.request.turns, Some(1));
    bench.press(&[Key::Escape, Key::Enter]);
    assert_eq!(bench.state.context().name(), "transcript");
    bench.press(&[Key::Escape]);
    assert!(bench.screen().contains("search: land"), "{}", bench.screen());
}

#[test]
fn every_field_of_a_fork_can_be_changed_before_it_is_made() {
    let mut bench = Bench::new(100, 30);
    bench.press(&[Key::Alt('F')]);
    let screen = bench.screen();
    // The id is random.
    let shown: Vec<&str> = screen.lines().skip(6).filter(|line| !line.contains("Session  ")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    ┌ Fork 1f3a5c60 ───────────────────────────────────────────────────────────────────────────────────┐
    │ Turn       ‹ turn 2 of 2 ›                                                                       │
    │               1 ❯ Why do users land on /undefined?                                          11 k │
    │               2 ❯ Fix it, please.                                                           11 k │
    │                   Done, **in a hidden field**.                                                   │
    │ Agent      Claude Code                                                                           │
    │ Model      claude-opus-5-5                                                                       │
    │ Method     copy: a copy can work in another directory                                            │
    │ Name       why-do-users-land-on-und-fork-1                                                       │
    │ Workspace  new worktree   ~/shop.worktrees/why-do-users-land-on-und-fork-1                       │
    │ Branch     why-do-users-land-on-und-fork-1                                                       │
    │ Changes    nothing uncommitted is copied                                                         │
    │                                                                                                  │
    │ Tokens     11 k of 1 M (1 %)                                                                     │
    │ Cache      cold, about 11 k tokens are written again: the last request was over 5 min ago        │
    │ enter fork   ↑↓ field   ←→ change   esc cancel                                                   │
    └──────────────────────────────────────────────────────────────────────────────────────────────────┘




     enter open   c chat   f fork   / search   i filter   tab scope   a agent   r rename   ? help
    ");
    let field = |bench: &Bench| match &bench.state.popup {
        Some(Popup::Fork(dialog)) => dialog.field,
        _ => panic!("a dialog"),
    };
    bench.press(&[Key::Left, Key::Down, Key::Down]);
    assert_eq!(field(&bench), ForkField::Model);
    bench.type_text("opus");
    // From tine's own choice to a native fork and a copy.
    bench.press(&[Key::Down, Key::Right, Key::Right]);
    assert_eq!(field(&bench), ForkField::Method);
    // Letters are the name.
    bench.type_text("cookies");
    assert_eq!(field(&bench), ForkField::Name);
    // From a new worktree over the same directory to a copy.
    bench.press(&[Key::Down, Key::Right, Key::Right, Key::Down]);
    assert_eq!(field(&bench), ForkField::Path);
    let copy = bench.state.directory.with_file_name("shop-copy");
    bench.type_text(&copy.to_string_lossy());
    let Some(Popup::Fork(dialog)) = &bench.state.popup else { panic!("a dialog") };
    let plan = dialog.possible().unwrap_or_else(|| panic!("no plan:\n{}", bench.screen()));
    assert_eq!((plan.turns, plan.model.as_deref(), plan.name.as_str()), (1, Some("opus"), "cookies"));
    assert_eq!(plan.workspace.path, copy);
    assert!(plan.profile.args.ends_with(&["--model".to_owned(), "opus".to_owned()]));
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("Fork created") && copy.is_dir(), "{}", bench.screen());
}

#[test]
fn a_fork_that_failed_is_offered_again() {
    let mut bench = Bench::new(100, 30);
    bench.press(&[Key::Alt('F')]);
    let effects = update(&mut bench.state, Event::Key(Key::Enter));
    assert!(matches!(effects.as_slice(), [Effect::Fork { .. }]));
    update(&mut bench.state, Event::Forking("the agent reads the transcript".into()));
    assert!(bench.screen().contains("forking… the agent reads"), "{}", bench.screen());
    assert!(update(&mut bench.state, Event::Key(Key::Escape)).is_empty(), "it can't be stopped half-way");
    let trouble = ErrorText { message: "the agent did not answer".into(), hint: None };
    update(&mut bench.state, Event::ForkFailed(trouble));
    let screen = bench.screen();
    assert!(screen.contains("the agent did not answer") && screen.contains("enter try again"), "{screen}");
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("Fork created"), "{}", bench.screen());
}

#[test]
fn a_busy_source_is_planned_once_it_is_idle() {
    let mut bench = Bench::new(100, 30);
    bench.press(&[Key::Alt('F')]);
    let Some(Popup::Fork(dialog)) = &mut bench.state.popup else { panic!("a dialog") };
    dialog.request.source.view.state = Activity::Busy;
    dialog.plan = Some(Err(ErrorText { message: "`login` is busy".into(), hint: Some("pass `--wait`".into()) }));
    let screen = bench.screen();
    assert!(screen.contains("Busy") && screen.contains("planned when it is idle"), "{screen}");
    // The source is idle now.
    let mut now = sessions(&bench);
    now[0].view.title = Some("changed".into());
    change(&mut bench, now);
    let Some(Popup::Fork(dialog)) = &bench.state.popup else { panic!("a dialog") };
    assert!(dialog.possible().is_some(), "{}", bench.screen());
}
