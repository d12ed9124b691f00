//! The active history, over small trees. A record is written `id<parent`; behind it `*` marks a tool's result and `+` a
//! line of the message that all `+` lines are parts of; `id<~parent` is a compaction boundary; `>id` is a `last-prompt`.

use super::*;

/// The ids of the active history, in order.
fn history(file: &str) -> String {
    let key = |id: &str| crate::fingerprint(id.as_bytes());
    let mut builder = HistoryBuilder::default();
    let mut ids: Vec<&str> = Vec::new();
    for word in file.split_whitespace() {
        if let Some(leaf) = word.strip_prefix('>') {
            builder.last_prompt(key(leaf));
            continue;
        }
        let (is_result, is_part) = (word.ends_with('*'), word.ends_with('+'));
        let (id, parent) = word.trim_end_matches(['*', '+']).split_once('<').unwrap_or((word, ""));
        let (parent, logical) = match parent.strip_prefix('~') {
            Some(logical) => ("", logical),
            None => (parent, ""),
        };
        let parent = [parent, logical].into_iter().find(|id| !id.is_empty()).map(key);
        builder.push(Link { key: key(id), parent, is_result, message: u64::from(is_part) });
        ids.push(id);
    }
    let (history, _) = builder.finish(|_| HashMap::new());
    let mut active: Vec<u32> = (0..ids.len() as u32).filter(|index| history.is_active(*index)).collect();
    active.sort_by_key(|index| history.rank(*index));
    active.iter().map(|index| ids[*index as usize]).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_active_history_is_the_one_that_the_client_resumes() {
    let check = |file: &str, expected: &str| assert_eq!(history(file), expected, "{file}");
    check("", "");
    check("a", "a");
    check("a b<a c<b", "a b c");
    // A rewind: the branch that was written last is active, unless `last-prompt` says otherwise.
    check("a b<a c<b d<a", "a d");
    check("a b<a c<b d<a >c", "a b c");
    check("a b<a c<b d<a >b", "a b");
    check("a b<a c<b >a", "a b c");
    check("a b<a c<b d<a >nowhere", "a d");
    // Two processes wrote at once.
    check("a b<a x<a c<b y<x d<c", "a b c d");
    // Calls in parallel: the results hang below their own calls.
    check("a p<a+ q<p+ r<p* s<q* z<s", "a p q r s z");
    check("a p<a+ r<p* q<p+ s<q* z<s", "a p r q s z");
    check("a p<a+ q<p+ s<q* r<p* z<r", "a p q s r z");
    // A call that was streamed after the result of another hangs below that result.
    check("a p<a+ q<p+ s<q* t<s+ u<t* r<p* z<r", "a p q s t u r z");
    // The result of a branch that was given up stays away.
    check("a p<a+ r<p* b<a c<b", "a b c");
    // Compaction: what lies before the boundary stays.
    check("a b<a c<~b d<c", "a b c d");
    // A fork after a compaction: the boundary's parent was not copied.
    check("c<~b d<c e<d", "c d e");
    // Records before their parents, as 2.1.197 writes at the start of a session.
    check("c<b d<c a b<a e<d", "a b c d e");
    check("c<b d<c a b<a", "a b c d");
    check("c<b d<c a b<a e<d p<e+ q<p+ r<p* s<q* z<s", "a b c d e p q r s z");
    // A link that leads nowhere: the client goes on with what stands before.
    check("a b<a c<gone d<c", "a b c d");
    // Circles, which only damage can make, end.
    check("a<b b<a", "a b");
}

#[test]
fn a_parent_far_away_is_found_by_a_second_pass() {
    let mut builder = HistoryBuilder::default();
    let total = 2 * WINDOW as u32;
    let key = |index: u32| u64::from(index) + 1;
    for index in 0..total {
        let parent = index.checked_sub(1).map(key);
        builder.push(Link { key: key(index), parent, ..Link::default() });
    }
    builder.push(Link { key: key(total), parent: Some(key(3)), ..Link::default() });
    let (history, broken) = builder.finish(|wanted| {
        assert_eq!(wanted, &HashSet::from([key(3)]));
        HashMap::from([(key(3), 3)])
    });
    let active: Vec<u32> = (0..=total).filter(|index| history.is_active(*index)).collect();
    assert_eq!(active, [0, 1, 2, 3, total]);
    assert_eq!(broken, 0);
}
