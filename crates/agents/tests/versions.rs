//! What older versions wrote is read, and copied at every turn, in every dialect.

use std::fs;
use std::path::{Path, PathBuf};

use agents::claude::Claude;
use agents::codex::Codex;
use agents::{Adapter, AgentEnvironment, CopyRequest, PlainScan, write_copy};
use testkit::build::versions::{OldSession, every};
use transcript::{Block, BlockKind, DefectKind, SessionId};

const COPY: &str = "019a9000-0000-7000-8000-000000000001";

/// The session on disk, and the adapter that reads it.
fn written(session: &OldSession, home: &Path) -> (Box<dyn Adapter>, PathBuf) {
    let surroundings = AgentEnvironment { home: home.to_owned(), ..AgentEnvironment::default() };
    let adapter: Box<dyn Adapter> = match session.agent {
        "claude" => Box::new(Claude::new(&surroundings)),
        _ => Box::new(Codex::new(&surroundings)),
    };
    let path = session.write(adapter.home());
    (adapter, path)
}

fn read(adapter: &dyn Adapter, path: &Path, until: Option<u32>, known: Option<&PlainScan>) -> Vec<Block> {
    let mut blocks = adapter.read(path, until, known).unwrap();
    std::iter::from_fn(|| blocks.next_block()).collect()
}

/// What a copy has to hold: the threads of Codex's subagents stay with the source.
fn own(session: &OldSession, mut blocks: Vec<Block>) -> Vec<Block> {
    if session.agent == "codex" {
        blocks.retain(|block| block.depth == 0 && !matches!(block.kind, BlockKind::Subagent { .. }));
    }
    blocks
}

/// The prompt and the last answer of each turn, without those of subagents.
fn turns(blocks: &[Block]) -> Vec<(String, String)> {
    let mut turns: Vec<(String, String)> = Vec::new();
    for block in blocks.iter().filter(|block| block.depth == 0) {
        match (&block.kind, turns.last_mut()) {
            (BlockKind::Prompt { text, steer: false }, _) => turns.push((text.clone(), String::new())),
            (BlockKind::Answer { text, .. }, Some((_, answer))) => answer.clone_from(text),
            _ => {}
        }
    }
    turns
}

#[test]
fn every_dialect_is_read() {
    for session in every() {
        let home = tempfile::tempdir().unwrap();
        let (adapter, path) = written(&session, home.path());
        let what = format!("{} {}: {}", session.agent, session.versions, session.quirk);
        let summary = adapter.scan(&path);
        assert_eq!(summary.id.as_str(), session.id, "{what}");
        assert_eq!(summary.title(), Some(session.title), "{what}");
        assert_eq!(summary.turns as usize, session.turns.len(), "{what}");
        assert!(!summary.mid_turn, "{what}");
        let defects: Vec<String> = summary
            .defects
            .iter()
            .map(|(kind, _)| serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned())
            .collect();
        assert_eq!(defects, session.defects, "{what}");
        let blocks = read(&*adapter, &path, None, None);
        let expected: Vec<(String, String)> =
            session.turns.iter().map(|(prompt, answer)| ((*prompt).to_owned(), (*answer).to_owned())).collect();
        assert_eq!(turns(&blocks), expected, "{what}");
        if let Some(known) = PlainScan::of(&summary) {
            assert_eq!(read(&*adapter, &path, None, Some(&known)), blocks, "{what}");
        }
    }
}

#[test]
fn every_dialect_is_copied_at_every_turn() {
    for session in every().into_iter().filter(OldSession::can_be_copied) {
        let home = tempfile::tempdir().unwrap();
        let (adapter, path) = written(&session, home.path());
        let (id, now) = (SessionId::new(COPY).unwrap(), "2026-11-15T12:00:00Z".parse().unwrap());
        let (before, summary) = (fs::read(&path).unwrap(), adapter.scan(&path));
        for cut in (1..=summary.turns).map(Some).chain([None]) {
            let what = format!("{} {} at {cut:?}: {}", session.agent, session.versions, session.quirk);
            let cwd = PathBuf::from("/elsewhere");
            let order = CopyRequest {
                source_id: SessionId::new(session.id.as_str()).unwrap(),
                target: adapter.path_for(&id, &cwd, now),
                id: id.clone(),
                turns: cut,
                tip: None,
                relink: summary.defects.count(DefectKind::BrokenLink) > 0,
                cwd,
                branch: None,
                title: None,
                now,
            };
            fs::create_dir_all(order.target.parent().unwrap()).unwrap();
            for known in [None, PlainScan::of(&summary)] {
                let file = fs::File::create(&order.target).unwrap();
                let (copied, found) =
                    write_copy(&*adapter, &path, &order, known.as_ref(), (&order.target, &file)).unwrap();
                assert_eq!(copied.compare(&found, &order), Ok(()), "{what}");
                assert_eq!(copied.turn_keys.len(), cut.unwrap_or(summary.turns) as usize, "{what}");
            }
            for piece in adapter.side_files(&path, &order) {
                adapter.copy_side_file(&path, &piece, &order, cut.is_some().then_some(&*order.target)).unwrap();
                if piece.prepared.exists() {
                    fs::create_dir_all(piece.place.parent().unwrap()).unwrap();
                    let _ = fs::remove_dir_all(&piece.place);
                    fs::rename(&piece.prepared, &piece.place).unwrap();
                }
            }
            let copy = own(&session, read(&*adapter, &order.target, None, None));
            assert_eq!(copy, own(&session, read(&*adapter, &path, cut, None)), "{what}");
            assert_eq!(fs::read(&path).unwrap(), before, "{what}: the source is as it was");
        }
    }
}

#[test]
fn every_dialects_subagents_are_read() {
    for session in every().into_iter().filter(|session| session.agent == "claude") {
        let home = tempfile::tempdir().unwrap();
        let (adapter, path) = written(&session, home.path());
        let all = session.beside.iter().flat_map(|(_, lines)| lines).chain(&session.lines);
        let answers = all.filter(|line| line["isSidechain"] == true && line["type"] == "assistant");
        let mut expected: Vec<String> =
            answers.map(|line| line["message"]["content"][0]["text"].as_str().unwrap().to_owned()).collect();
        let mut found: Vec<String> = read(&*adapter, &path, None, None)
            .into_iter()
            .filter(|block| block.depth > 0)
            .filter_map(|block| match block.kind {
                BlockKind::Answer { text, .. } => Some(text),
                _ => None,
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{} {}: {}", session.agent, session.versions, session.quirk);
    }
}
