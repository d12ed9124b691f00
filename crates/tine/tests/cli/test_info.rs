//! `tine info`.

use crate::world::{EXPORT, LOGIN, World};

#[test]
fn everything_known_is_told() {
    let world = World::new();
    insta::assert_snapshot!("claude", world.run(["info", LOGIN]).out);
    insta::assert_snapshot!("codex", world.run(["inspect", EXPORT]).out);
    insta::assert_snapshot!("json", world.run(["info", LOGIN, "--json"]).out);
}
