//! Forks by reference, by copy, and going back.

use std::fs;
use std::path::Path;

use transcript::DefectKind;

use super::{File, Lab, id};

/// The field that makes a fork by reference.
fn base(n: u32, ordinal: u64) -> String {
    base_of(&id(n), n, ordinal)
}

fn base_of(segment: &str, forked_from: u32, ordinal: u64) -> String {
    let source = id(forked_from);
    format!(
        r#","forked_from_id":"{source}","history_base":{{"thread_id":"{segment}","end_ordinal_exclusive":{ordinal},"end_byte_offset":0}}"#
    )
}

/// Three turns; the second ends before the ordinal that is returned.
fn source(lab: &Lab) -> (File, u64) {
    let mut file = File::paginated(1, "");
    file.turn("one").turn("two");
    let end = file.ordinal.unwrap();
    file.turn("three");
    lab.write(1, file.text());
    (file, end)
}

#[test]
fn a_reference_is_followed_and_keeps_the_keys() {
    let lab = Lab::new();
    let (file, end) = source(&lab);
    let mut child = File::paginated_from(2, end, &base(1, end));
    child.turn("child's");
    let child_path = lab.write(2, child.text());
    let mut grandchild = File::paginated_from(3, child.ordinal.unwrap(), &base(2, child.ordinal.unwrap()));
    grandchild.turn("grandchild's");
    let grandchild_path = lab.write(3, grandchild.text());

    let parent = lab.scan(&lab.write(1, file.text()));
    let child = lab.scan(&child_path);
    let grandchild = lab.scan(&grandchild_path);
    assert_eq!((parent.turns, child.turns, grandchild.turns), (3, 3, 4));
    assert_eq!(parent.turn_keys[..2], child.turn_keys[..2]);
    assert_ne!(parent.turn_keys[2], child.turn_keys[2]);
    assert_eq!(child.turn_keys[..], grandchild.turn_keys[..3]);
    assert_eq!(child.parent.unwrap().id.as_str(), id(1));
    assert_eq!(child.id.as_str(), id(2));
    assert_eq!(child.first_prompt.as_deref(), Some("one"));
    assert!(grandchild.defects.is_empty());
    let expected = ["1 prompt one", "1 answer answer to one", "2 prompt two", "2 answer answer to two"];
    let shown = lab.show(&grandchild_path);
    assert_eq!(shown[..4], expected);
    assert_eq!(
        shown[4..],
        ["3 prompt child's", "3 answer answer to child's", "4 prompt grandchild's", "4 answer answer to grandchild's"]
    );

    // Archived, the source still counts.
    fs::create_dir(lab.folder.path().join("archived_sessions")).unwrap();
    let name = lab.path(&format!("{}.jsonl", id(1)));
    fs::rename(&name, lab.folder.path().join("archived_sessions").join(name.file_name().unwrap())).unwrap();
    assert_eq!(lab.show(&grandchild_path), shown);
}

#[test]
fn where_the_source_is_missing_the_rest_is_read() {
    let lab = Lab::new();
    let (file, end) = source(&lab);
    let path = lab.write(2, File::paginated_from(2, end, &base(1, end)).turn("own").text());
    let check = |turns: u32, missing: u64| {
        let summary = lab.scan(&path);
        assert_eq!((summary.turns, summary.defects.count(DefectKind::MissingBase)), (turns, missing));
        assert_eq!(summary.id.as_str(), id(2));
        assert_eq!(lab.show(&path).last().unwrap(), &format!("{turns} answer answer to own"));
    };
    check(3, 0);
    // Cut off behind the first turn, then gone.
    let text = file.text();
    let cut = text.find("\"two\"").unwrap();
    lab.write(1, &text[..text[..cut].rfind('\n').unwrap() + 1]);
    check(2, 1);
    lab.write(1, "");
    check(1, 1);
    fs::remove_file(lab.path(&format!("{}.jsonl", id(1)))).unwrap();
    check(1, 1);
    // What comes back is seen when somebody looks through the folders again.
    lab.write(1, text);
    crate::Transcripts::discover(&lab.codex);
    check(3, 0);
}

#[test]
fn references_in_circles_end() {
    let lab = Lab::new();
    let first = lab.write(1, File::paginated_from(1, 9, &base(2, 99)).turn("one").text());
    lab.write(2, File::paginated_from(2, 9, &base(1, 99)).turn("two").text());
    let summary = lab.scan(&first);
    assert_eq!((summary.turns, summary.defects.count(DefectKind::MissingBase)), (2, 1));
    let itself = lab.write(3, File::paginated_from(3, 9, &base(3, 99)).turn("three").text());
    assert_eq!(lab.show(&itself), ["1 prompt three", "1 answer answer to three"]);
}

#[test]
fn a_source_without_ordinals_is_cut_by_offset() {
    let lab = Lab::new();
    let mut file = File::legacy(1, "");
    let end = file.turn("one").text().len();
    file.turn("two");
    lab.write(1, file.text());
    let more =
        format!(r#","history_base":{{"thread_id":"{}","end_ordinal_exclusive":9,"end_byte_offset":{end}}}"#, id(1));
    let path = lab.write(2, File::paginated_from(2, 9, &more).turn("own").text());
    assert_eq!(lab.show(&path), ["1 prompt one", "1 answer answer to one", "2 prompt own", "2 answer answer to own"]);
    assert!(lab.scan(&path).defects.is_empty());
}

#[test]
fn going_back_starts_a_new_file_of_the_same_thread() {
    // 0.166: the new file refers to the old one by the thread's id, a third to the second by its segment's.
    let lab = Lab::new();
    let (_, end) = source(&lab);
    let segment = |n: u32| format!("01a1e0f5-{n:04x}-7e12-a270-d6afc9a28ee4");
    let reverted = |segment: &str| lab.path(&format!("{}_{segment}.jsonl", id(1)));
    let mut second = File::paginated_from(1, end, &base_of(&id(1), 1, end).replace("forked_from_id", "x"));
    second.task = 500;
    second.turn("other");
    fs::write(reverted(&segment(8)), second.text()).unwrap();
    let end = second.ordinal.unwrap();
    let third = File::paginated_from(1, end, &base_of(&segment(8), 1, end).replace("forked_from_id", "x")).text();
    fs::write(reverted(&segment(9)), third).unwrap();

    let found = crate::Transcripts::discover(&lab.codex);
    assert_eq!(found.files.len(), 1);
    assert_eq!(found.files[0].path, reverted(&segment(9)));
    assert!(found.files[0].is_called(&id(1)));
    let summary = lab.scan(&found.files[0].path);
    assert_eq!((summary.id.as_str(), summary.turns, summary.parent), (id(1).as_str(), 3, None));
    assert_eq!(summary.created.map(|time| time.as_millisecond()), super::super::home::time_of(&id(1)));
    assert!(summary.defects.is_empty());
    assert_eq!(lab.show(&found.files[0].path)[4..], ["3 prompt other", "3 answer answer to other"]);
}

#[test]
fn a_copy_is_known_by_its_first_line() {
    let lab = Lab::new();
    let mut parent = File::legacy(1, "");
    parent.add("turn_context", r#"{"turn_id":"01a1e0f5-0001-7960-8a48-5463f3d62da2","cwd":"/home/u/a","model":"m"}"#);
    parent.turn("one").turn("two");
    let mut child = File::legacy(2, &format!(r#","forked_from_id":"{}""#, id(1)));
    child.lines[0] = child.lines[0].replace("/home/u/a", "/home/u/b");
    // The copied lines get the time of the fork.
    child.lines.extend(parent.lines.iter().map(|line| line.replace("20:45:50", "20:59:59")));
    child.turn("own");
    let (first, second) = (lab.write(1, parent.text()), lab.write(2, child.text()));
    let (parent, child) = (lab.scan(&first), lab.scan(&second));
    assert_eq!(child.id.as_str(), id(2));
    assert_eq!(child.parent.unwrap().id.as_str(), id(1));
    assert_eq!(child.turn_keys[..2], parent.turn_keys[..]);
    assert_eq!(child.turns, 3);
    // The source's turns say nothing of where the fork works.
    assert_eq!(child.cwd.as_deref(), Some(Path::new("/home/u/b")));
    assert_eq!(parent.cwd.as_deref(), Some(Path::new("/home/u/a")));
}

#[test]
fn without_ids_copies_have_equal_keys_and_strangers_do_not() {
    let lab = Lab::new();
    let thread = |n: u32| {
        let mut file = File::legacy(n, "");
        file.asks("hi").answers("hello").asks("more").answers("more");
        file
    };
    let original = thread(1);
    // By hand, with a new id; and as Codex does it, with the source's first line behind its own and new times.
    let by_hand = original.text().replace(&id(1), &id(2));
    let by_codex = format!(
        "{}{}",
        thread(3).text().lines().next().unwrap().to_owned() + "\n",
        original.text().replace("20:45:50", "20:59:59")
    );
    let keys = |n: u32, text: &str| lab.scan(&lab.write(n, text)).turn_keys;
    let expected = keys(1, &original.text());
    assert_eq!(keys(2, &by_hand), expected);
    assert_eq!(keys(3, &by_codex), expected);
    // Migrated to the paginated dialect, turns get ids that are the same in every thread.
    let migrated = |n: u32| {
        let mut file = File::paginated(n, "");
        file.lines[0] = file.lines[0].replace(":44.", ":48.");
        for (turn, words) in ["hi", "more"].iter().enumerate() {
            file.event(&format!(r#"{{"type":"task_started","turn_id":"rollout-{turn}"}}"#)).asks(words).ends();
        }
        file.text()
    };
    assert_eq!(keys(1, &migrated(1)), expected);
    assert_ne!(keys(5, &migrated(5)), expected);
    let stranger = keys(4, &thread(4).text());
    assert!(expected.iter().all(|key| !stranger.contains(key)));
    assert_ne!(expected[0], expected[1]);
}
