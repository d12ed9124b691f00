//! Frames of transcripts: folding, moving between turns, searching, and sessions that are larger than memory should be.

use serde_json::json;
use testkit::build::{ClaudeSession, Random};

use super::event::{Effect, Event};
use super::frame_tests::Bench;
use super::reader::PageRequest;
use super::state::{Reader, Screen};
use super::update::update;
use crate::keymap::Key;

const LONG: &str = "7a3a5c60-0000-4000-8000-000000000000";

/// A session with many turns that take some kilobytes each. It is the newest one.
fn long(turns: usize, kilobytes: usize) -> Bench {
    Bench::with(80, 24, |sandbox, project| {
        let mut session = ClaudeSession::new(LONG).cwd(project).seed(9).started(1_794_700_000_000);
        for number in 1..=turns {
            session = session.turn(|turn| {
                let output = format!("line of turn {number}\n").repeat(kilobytes * 50);
                let turn = turn.prompt(format!("Prompt number {number}"));
                turn.tool("Bash", json!({ "command": "cat log" }), &output).text(format!("Answer number {number}"))
            });
        }
        session.write(&sandbox.claude_home());
    })
}

fn reader(bench: &Bench) -> &Reader {
    match &bench.state.screen {
        Screen::Transcript(reader) => reader,
        _ => panic!("a transcript"),
    }
}

fn megabytes(bench: &Bench) -> usize {
    reader(bench).pages.iter().flatten().map(|page| page.weight).sum::<usize>() >> 20
}

#[test]
fn a_call_is_opened_by_itself_and_all_of_them_together() {
    let mut bench = long(2, 1);
    bench.press(&[Key::Enter]);
    let folded = bench.screen();
    assert!(folded.contains("▸ Bash  cat log") && !folded.contains("line of turn"), "{folded}");
    bench.press(&[Key::Enter]);
    let open = bench.screen();
    assert!(open.contains("▾ Bash  cat log") && open.contains("│ line of turn"), "{open}");
    assert!(open.contains("turn 2 of 2"), "{open}");
    bench.press(&[Key::Enter, Key::Char('t')]);
    assert!(bench.screen().contains("│ line of turn"), "{}", bench.screen());
    bench.press(&[Key::Char('t')]);
    assert!(!bench.screen().contains("│ line of turn"), "{}", bench.screen());
}

#[test]
fn a_block_is_selected_and_copied_as_its_source() {
    let mut bench = long(2, 1);
    bench.press(&[Key::Enter, Key::Char('g')]);
    let copied = |bench: &mut Bench, key| {
        let effects = update(&mut bench.state, Event::Key(key));
        let [Effect::Copy(text)] = effects.as_slice() else { panic!("a copy") };
        text.clone()
    };
    bench.press(&[Key::Tab]);
    assert_eq!(copied(&mut bench, Key::Char('Y')), "Prompt number 1");
    bench.press(&[Key::Tab]);
    assert_eq!(copied(&mut bench, Key::Char('Y')), "cat log");
    bench.press(&[Key::BackTab]);
    assert_eq!(copied(&mut bench, Key::Char('Y')), "Prompt number 1");
    assert_eq!(copied(&mut bench, Key::Char('y')), "Prompt number 1\n\nAnswer number 1");
    bench.press(&[Key::Escape, Key::Char('n')]);
    assert_eq!(copied(&mut bench, Key::Char('y')), "Prompt number 2\n\nAnswer number 2");
}

#[test]
fn a_long_session_opens_at_its_end_and_is_read_around_the_screen() {
    let mut bench = long(200, 60);
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("turn 200 of 200"), "{}", bench.screen());
    assert!(megabytes(&bench) < 8, "{} MB", megabytes(&bench));
    // To the beginning turn by turn: every number comes once, and pages far below are dropped.
    let mut most = 0;
    for turn in (1..200).rev() {
        bench.press(&[Key::Char('[')]);
        assert_eq!(reader(&bench).turn(), Some(turn));
        most = most.max(megabytes(&bench));
    }
    assert!(bench.screen().contains("Prompt number 1"), "{}", bench.screen());
    assert!(most < 12, "{most} MB");
    bench.press(&[Key::Char('G')]);
    assert!(bench.screen().contains("Answer number 200"), "{}", bench.screen());
    bench.press(&[Key::Home]);
    let screen = bench.screen();
    assert!(screen.contains("turn 1 of 200") && screen.contains("Prompt number 1"), "{screen}");
    // Scrolling passes the ends of pages.
    for _ in 0..60 {
        bench.press(&[Key::PageDown]);
    }
    assert!(reader(&bench).turn() > Some(60), "{:?}", reader(&bench).turn());
}

#[test]
fn a_search_within_reads_the_pages_that_are_not_loaded() {
    let mut bench = long(60, 60);
    bench.press(&[Key::Enter, Key::Char('g'), Key::Char('/')]);
    bench.type_text("answer number 47");
    bench.press(&[Key::Enter]);
    let screen = bench.screen();
    assert!(screen.contains("Answer number 47") && screen.contains("turn 47 of 60"), "{screen}");
    bench.press(&[Key::Escape, Key::Char('/')]);
    bench.type_text("number 12 ");
    bench.press(&[Key::Enter]);
    assert!(bench.screen().contains("not found in this transcript"), "{}", bench.screen());
}

#[test]
fn the_focused_view_has_no_tools_and_stays_at_its_turn() {
    let mut bench = long(60, 30);
    bench.press(&[Key::Enter, Key::Char('['), Key::Char('['), Key::Char('o')]);
    let screen = bench.screen();
    assert!(screen.contains("turn 58 of 60") && !screen.contains("Bash"), "{screen}");
    assert!(screen.contains("Prompt number 58") && screen.contains("Answer number 59"), "{screen}");
    bench.press(&[Key::Char('o')]);
    let screen = bench.screen();
    assert!(screen.contains("turn 58 of 60") && screen.contains("Bash"), "{screen}");
}

#[test]
fn a_followed_session_shows_what_is_added_and_stays_at_the_end() {
    let mut bench = long(3, 1);
    bench.press(&[Key::Enter]);
    let path = reader(&bench).session.view.path.clone();
    let record = |uuid: u32, role: &str, text: &str| {
        let content = if role == "user" { json!(text) } else { json!([{ "type": "text", "text": text }]) };
        let uuid = format!("33333333-3333-4333-8333-{uuid:012}");
        json!({ "type": role, "uuid": uuid, "message": { "role": role, "content": content } }).to_string()
    };
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    for number in 4..30 {
        use std::io::Write;
        let (prompt, answer) = (format!("Prompt number {number}"), format!("Answer number {number}"));
        writeln!(file, "{}\n{}", record(number, "user", &prompt), record(number + 100, "assistant", &answer)).unwrap();
        let effects = update(&mut bench.state, Event::Changed(path.clone()));
        bench.carry_out(effects);
        let screen = bench.screen();
        assert!(screen.contains(&answer) && screen.contains(&format!("turn {number} of {number}")), "{screen}");
    }
    // Who reads further up is not moved.
    bench.press(&[Key::PageUp, Key::PageUp]);
    let before = bench.screen();
    use std::io::Write;
    writeln!(file, "{}", record(60, "user", "One more")).unwrap();
    let effects = update(&mut bench.state, Event::Changed(path));
    bench.carry_out(effects);
    let body = |screen: &str| screen.lines().skip(1).take(20).collect::<Vec<_>>().join("\n");
    assert_eq!(body(&bench.screen()), body(&before));
}

/// Whatever happens in whatever order, what is on the screen exists, and pages are neighbours.
#[test]
fn any_way_through_a_long_session_is_survived() {
    let mut bench = long(60, 40);
    bench.press(&[Key::Enter]);
    let mut random = Random::new(5);
    let keys = "[[[]]ttTogGjk/,;ny".chars().map(Key::Char);
    let keys: Vec<Key> = keys.chain([Key::PageUp, Key::PageDown, Key::Tab, Key::BackTab, Key::Enter]).collect();
    // Answers arrive late, twice, or never.
    let mut late: Vec<Effect> = Vec::new();
    for round in 0..300 {
        let mut effects = match random.below(12) {
            0 => update(&mut bench.state, Event::Resize(20 + random.below(120) as u16, 5 + random.below(50) as u16)),
            _ => update(&mut bench.state, Event::Key(*random.choose(&keys))),
        };
        effects.retain(|effect| matches!(effect, Effect::ReadPage { .. } | Effect::LayOut { .. }));
        late.extend(effects);
        while random.below(3) > 0 && !late.is_empty() {
            let effect = late.remove(random.below(late.len()));
            bench.carry_out(vec![effect]);
        }
        let Screen::Transcript(reader) = &bench.state.screen else { panic!("a transcript") };
        let extents: Vec<_> = reader.pages.iter().flatten().map(|page| page.extent).collect();
        for pair in extents.windows(2) {
            let [engine::Extent::Bytes { until, .. }, engine::Extent::Bytes { from, .. }] = pair else {
                panic!("bytes")
            };
            assert_eq!(until, from);
        }
        assert!(reader.top <= reader.length(), "round {round}");
        if round % 10 == 0 {
            bench.screen();
        }
    }
    bench.carry_out(late);
    let effects = update(&mut bench.state, Event::Key(Key::Char('G')));
    assert!(
        effects
            .iter()
            .all(|effect| matches!(effect, Effect::ReadPage { wish: PageRequest::Last | PageRequest::Before(_), .. }))
    );
}
