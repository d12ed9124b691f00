//! The active history, over small trees. A record is written `id<parent`; after it `*` marks a tool's result, `+` a line
//! of the message that all `+` lines are parts of, `-` a record that is no part of the conversation, and `=` the summary of a
//! compaction; `id<~parent` is a compaction boundary; `>id` is a `last-prompt`.

use super::*;

/// The ids of the active history, in order.
fn history(file: &str) -> String {
    worked(file).0
}

/// The ids of the active history, in order, and everything else that was found.
fn worked(file: &str) -> (String, ResolvedHistory) {
    let key = |id: &str| crate::files::fingerprint(id.as_bytes());
    let mut builder = HistoryBuilder::default();
    let mut ids: Vec<&str> = Vec::new();
    for word in file.split_whitespace() {
        if let Some(leaf) = word.strip_prefix('>') {
            builder.last_prompt(key(leaf));
            continue;
        }
        let (is_result, is_part) = (word.ends_with('*'), word.ends_with('+'));
        let bare = word.trim_end_matches(['*', '+', '-', '=']);
        let (id, parent) = bare.split_once('<').unwrap_or((bare, ""));
        let (parent, logical) = match parent.strip_prefix('~') {
            Some(logical) => ("", logical),
            None => (parent, ""),
        };
        let parent = [parent, logical].into_iter().find(|id| !id.is_empty()).map(key);
        builder.push(Link {
            key: key(id),
            parent,
            is_boundary: !logical.is_empty(),
            is_summary: word.ends_with('='),
            talks: !word.ends_with(['-', '=']),
            is_result,
            message: u64::from(is_part),
        });
        ids.push(id);
    }
    let worked = builder.finish(|_| HashMap::new());
    let history = &worked.history;
    let mut active: Vec<u32> = (0..ids.len() as u32).filter(|index| history.is_active(*index)).collect();
    active.sort_by_key(|index| history.rank(*index));
    (active.iter().map(|index| ids[*index as usize]).collect::<Vec<_>>().join(" "), worked)
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
    check("x<c c<gone", "c x");
    // Circles, which only damage can make, end.
    check("a<b b<a", "a b");
}

#[test]
fn a_branch_without_a_conversation_is_not_the_tip() {
    let check = |file: &str, expected: &str| assert_eq!(history(file), expected, "{file}");
    // 1.0.5x: `/export` hangs below the first caveat.
    check("a- b<a- c<b d<c e<a-", "a b c d");
    check("a b<a c<b- d<c e<d f<c- g<f-", "a b c d e");
    // What follows the last answer belongs to it, however it hangs there.
    check("a b<a c<b d<a e<d s<e- t<e-", "a d e t");
    check("a b<a s<b- t<b-", "a b t");
    // Results of calls in parallel are part of the conversation.
    check("a p<a+ q<p+ s<q* r<p*", "a p q s r");
    // The file has no messages.
    check("a- b<a- c<a-", "a c");
    // Records before their parents.
    check("d<c c<b a- b<a e<a-", "a b c d");
}

#[test]
fn a_tip_other_than_the_clients_is_noted() {
    let check = |file: &str, expected: bool| assert_eq!(worked(file).1.tip_differs, expected, "{file}");
    check("a b<a c<b", false);
    check("a b<a c<b d<a", false);
    check("a b<a c<b d<a >c", false);
    check("a b<a s<b- t<b-", false);
    check("a- b<a- c<a-", false);
    // The clients go on with `/export`, and where `last-prompt` tells them to.
    check("a- b<a- c<b d<c e<a-", true);
    check("a- b<a- c<b d<c >c e<a-", true);
    check("a- b<a- c<b d<c >d e<a-", false);
}

#[test]
fn an_old_compaction_keeps_what_stands_before_it() {
    let check = |file: &str, expected: &str| assert_eq!(history(file), expected, "{file}");
    check("a b<a s= c<s d<c", "a b s c d");
    // With the caveats of 1.0.5x, and after a rewind.
    check("a- b<a c<b d<a- s= e<s", "a b c s e");
    check("a b<a c<a s= d<s", "a c s d");
    check("s= a<s", "s a");
}

#[test]
fn other_branches_are_found() {
    let check = |file: &str, expected: &[u32]| assert_eq!(worked(file).1.branches, expected, "{file}");
    check("a b<a c<b", &[]);
    check("a b<a c<b d<a", &[2]);
    check("a b<a c<a d<a", &[2, 1]);
    check("a b<a c d<c", &[1]);
    // The branch has no messages, or they belong to the last answer.
    check("a- b<a c<b d<a- e<d-", &[]);
    check("a b<a s<b- t<b-", &[]);
    // Calls in parallel are on one branch, given up or not.
    check("a p<a+ q<p+ s<q* r<p* z<r", &[]);
    check("a p<a+ q<p+ s<q* r<p* z<a", &[4]);
}

#[test]
fn another_beginning_is_counted() {
    let check = |file: &str, expected: &str, lost: u64| {
        let (history, worked) = worked(file);
        assert_eq!((history.as_str(), worked.lost_roots), (expected, lost), "{file}");
    };
    check("a b<a", "a b", 0);
    check("a b<a c d<c", "c d", 1);
    check("a b<a c d<c e<b", "a b e", 1);
    // The branch has no messages.
    check("a- b<a- c d<c", "c d", 0);
    check("a b<a s= d<s", "a b s d", 0);
}

#[test]
fn a_missing_parent_is_counted_wherever_it_is() {
    let check = |file: &str, expected: &str, links: &[(u32, Option<u32>)]| {
        let (history, worked) = worked(file);
        let found: Vec<_> = worked.broken.iter().map(|broken| (broken.child, broken.parent)).collect();
        assert_eq!((history.as_str(), found.as_slice()), (expected, links), "{file}");
    };
    check("a<gone b<a", "a b", &[(0, None)]);
    check("a b<a c<gone d<c", "a b c d", &[(2, Some(1))]);
    // It continues from the last message, not from a branch without messages.
    check("a- b<a c<b d<a- e<gone", "a b c e", &[(4, Some(2))]);
    check("a b<a x<gone- c<gone", "a b x c", &[(2, Some(1)), (3, Some(2))]);
    // What stood before a compaction was left behind by a fork.
    check("c<~gone d<c", "c d", &[]);
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
    let ResolvedHistory { history, broken, .. } = builder.finish(|wanted| {
        assert_eq!(wanted, &HashSet::from([key(3)]));
        HashMap::from([(key(3), 3)])
    });
    let active: Vec<u32> = (0..=total).filter(|index| history.is_active(*index)).collect();
    assert_eq!(active, [0, 1, 2, 3, total]);
    assert_eq!(broken, []);
}
