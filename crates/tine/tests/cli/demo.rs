//! `tine demo`.

use crate::world::World;

#[test]
fn the_tour_fits_on_two_screens_and_leaves_nothing_behind() {
    let world = World::empty();
    let before = world.agents_files();
    let told = world.run(["demo"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(told.err, "forked login-fix after turn 1 as login-retry; resume it with\n");
    assert!(told.out.lines().count() <= 48, "{} lines", told.out.lines().count());
    assert!(told.out.lines().all(|line| line.chars().count() <= 120), "{}", told.out);
    for word in [
        "tine list --all",
        "tine show",
        "tine fork",
        "login-retry",
        "tine tree",
        "csv-export",
        "claude",
        "codex",
        "nothing of yours was touched",
    ] {
        assert!(told.out.contains(word), "{word} in {}", told.out);
    }
    assert_eq!(world.agents_files(), before);
    let left: Vec<_> = std::fs::read_dir(world.sandbox.tmp()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let data = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_DATA_HOME").unwrap().1.clone();
    assert!(!std::path::Path::new(&data).join("tine").exists());
}
