//! Who is whose parent, over small families. A session is written `id born turns`, with `^parent` for a pointer.

use agents::Stamp;
use transcript::Summary;

use super::*;

/// Each session as `child<parent@turn`, with `~` where it is inferred.
fn lineage(agent: Agent, family: &[&str]) -> String {
    let entries: Vec<Entry> = family
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let id = SessionId::new(words[0]).unwrap();
            let mut summary = Summary::new(agent, id, format!("/{}.jsonl", words[0]).into());
            summary.turn_keys = words[2].bytes().map(u64::from).filter(|key| *key != u64::from(b'-')).collect();
            summary.parent = words.get(3).map(|pointer| ParentPointer {
                id: SessionId::new(&pointer[1..]).unwrap(),
                source: ParentSource::Agent,
            });
            let born = words[1].parse().unwrap();
            Entry::fresh(summary, Stamp { size: 1, modified: born, inode: 1, born: Some(born) })
        })
        .collect();
    let mut found: Vec<String> = infer(&entries, &HashMap::new(), |_| true)
        .into_iter()
        .map(|((_, child), parent)| {
            let guess = if parent.source == ParentSource::Inferred { "~" } else { "" };
            let turn = parent.turn.map_or("?".into(), |turn| turn.to_string());
            format!("{child}<{guess}{}@{turn}", parent.id)
        })
        .collect();
    found.sort();
    found.join(" ")
}

#[test]
fn parents_are_found_by_pointer_or_by_shared_turns() {
    let check = |family: &[&str], expected: &str| assert_eq!(lineage(Agent::Claude, family), expected, "{family:?}");
    check(&["a 1 xyz", "b 2 pq"], "");
    check(&["a 1 xyz", "b 2 xyq"], "b<~a@2");
    check(&["a 1 xyz", "b 2 xyq ^a"], "b<a@2");
    check(&["b 2 xyq ^a"], "b<a@?");
    // The older file is the parent, in whichever order they are found.
    check(&["b 2 xyq", "a 1 xyz"], "b<~a@2");
    // Two forks at the same turn are siblings, not parent and child.
    check(&["a 1 xyz", "b 2 xyq", "c 3 xyr"], "b<~a@2 c<~a@2");
    // A fork of a fork shares more with the fork.
    check(&["a 1 xyz", "b 2 xyq", "c 3 xyqr"], "b<~a@2 c<~b@3");
    // `--fork-session` of a branch keeps the branch's pointer, which names an ancestor.
    check(&["a 1 xyz", "b 2 xyq ^a", "c 3 xyqr ^a"], "b<a@2 c<~b@3");
    // A fork that holds only what came after a compaction.
    check(&["a 1 xyzw", "b 2 zwq ^a"], "b<a@4");
    // A fork whose file is older than its parent's, as after a restore, does not become the parent of its parent.
    check(&["a 2 xyz", "b 1 xyq ^a"], "b<a@2");
    check(&["a 3 xyz", "b 2 xyq ^a", "c 1 xyqr ^b"], "b<a@2 c<b@3");
    check(&["a 1 -", "b 2 -"], "");
    check(&["a 1 x ^a"], "");
}

#[test]
fn codex_always_names_the_direct_parent() {
    let family = ["a 1 xyz", "b 2 xyq ^a", "c 3 xyqr ^a"];
    assert_eq!(lineage(Agent::Codex, &family), "b<a@2 c<a@2");
}
