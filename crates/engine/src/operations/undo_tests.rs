use testkit::build::ClaudeSession;

use super::*;
use crate::test_world::World;

/// It has no session, so there was nothing to forget, and it stayed the last operation for ever.
#[test]
fn a_worktree_without_a_session_is_taken_back_once() {
    let world = World::new();
    let tine = world.tine();
    let (tree, operation) = crate::fork::empty::new_worktree(&tine.ctx, "try", None).expect("a worktree");
    assert!(tree.exists());
    assert_eq!(tine.undo(None, false).expect("undone").id, operation);
    assert!(!tree.exists());
    assert!(matches!(tine.undo(None, false), Err(crate::Error::Operations(Error::NothingToUndo(None)))));
}

#[test]
fn a_worktree_in_which_a_session_began_stays() {
    let world = World::new();
    let tine = world.tine();
    let (tree, operation) = crate::fork::empty::new_worktree(&tine.ctx, "try", None).expect("a worktree");
    let session = ClaudeSession::new("11111111-1111-4111-8111-111111111111").cwd(&tree);
    session.turn(|turn| turn.prompt("hi").text("ok")).write(&world.claude_home());
    assert!(
        matches!(tine.undo(None, false), Err(crate::Error::Operations(Error::WorksThere { id, .. })) if id == operation)
    );
    assert!(tree.exists());
    tine.undo(Some(operation), true).expect("undone");
    assert!(!tree.exists());
}
