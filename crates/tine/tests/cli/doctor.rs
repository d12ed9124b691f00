//! `tine doctor`.

use crate::world::World;

#[test]
fn a_healthy_home_is_told_so() {
    let world = World::new();
    world.sandbox.script("claude", "#!/bin/sh\necho 2.1.325 '(Claude Code)'\n");
    world.sandbox.script("git", "#!/bin/sh\necho git version 2.47.3\n");
    let told = world.run(["doctor"]);
    insta::assert_snapshot!(told.whole());
    let report = world.json(["doctor", "--json"]);
    assert_eq!(report["healthy"], true);
}

#[test]
fn the_search_index_is_looked_at() {
    let world = World::new();
    let index = || {
        let report = world.json(["doctor", "--json"]);
        let check = report["checks"].as_array().unwrap().iter().find(|check| check["subject"] == "search index");
        let check = check.unwrap().clone();
        (check["verdict"].as_str().unwrap().to_owned(), check["found"].as_str().unwrap().to_owned())
    };
    assert_eq!(index(), ("note".into(), "not built yet".into()));
    world.run(["index", "--words"]);
    assert_eq!(index(), ("note".into(), "4 sessions, the meaning of 4 not known yet".into()));
    world.run(["index"]);
    assert_eq!(index(), ("good".into(), "4 sessions".into()));
    let folder = world.sandbox.root().join("cache/tine/index/words-4");
    let terms = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let terms = terms.into_iter().find(|path| path.extension().is_some_and(|end| end == "term")).unwrap();
    std::fs::write(terms, "x").unwrap();
    let (verdict, found) = index();
    assert_eq!(verdict, "note");
    assert!(found.starts_with("the index is damaged and will be built anew"), "{found}");
}

#[test]
fn damage_is_named_with_a_hint() {
    let world = World::new();
    world.sandbox.script("git", "#!/bin/sh\necho git version 2.47.3\n");
    let path = world.json(["list", "--agent", "claude", "--json"])[0]["path"].as_str().unwrap().to_owned();
    let mut content = std::fs::read(&path).unwrap();
    content.extend(b"garbage\n{\"type\":\"user\",\"uu");
    std::fs::write(&path, content).unwrap();
    let told = world.run(["doctor"]);
    assert_eq!(told.code, 0);
    assert!(told.out.contains("1 × lines that are not JSON objects were passed over"), "{}", told.out);
    assert!(told.out.contains("1 × the last line is cut off"), "{}", told.out);
    // A registry that others can read is not as it should be.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let data = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_DATA_HOME").unwrap().1.clone();
        let registry = std::path::Path::new(&data).join("tine/registry.db");
        assert_eq!(registry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&registry, std::fs::Permissions::from_mode(0o644)).unwrap();
        let told = world.run(["doctor"]);
        assert_eq!(told.code, 1, "{told:?}");
        assert!(told.out.contains("chmod 600"), "{}", told.out);
    }
}
