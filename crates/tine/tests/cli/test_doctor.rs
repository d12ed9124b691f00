//! `tine doctor`.

use crate::world::{LOGIN, STREAM, World};

#[test]
fn a_healthy_home_is_told_so() {
    let world = World::new();
    world.sandbox.script("claude", "#!/bin/sh\necho 2.1.325 '(Claude Code)'\n");
    world.sandbox.script("git", "#!/bin/sh\necho git version 2.47.3\n");
    let output = world.run(["doctor"]);
    insta::assert_snapshot!(output.whole());
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
    assert_eq!(index(), ("note".into(), "4 sessions, 4 not embedded yet".into()));
    world.run(["index"]);
    assert_eq!(index(), ("good".into(), "4 sessions".into()));
    let folder = world.sandbox.root().join("cache/tine/index/words-6");
    let terms = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let terms = terms.into_iter().find(|path| path.extension().is_some_and(|end| end == "term")).unwrap();
    std::fs::write(terms, "x").unwrap();
    let (verdict, found) = index();
    assert_eq!(verdict, "note");
    assert!(found.starts_with("the index is damaged and will be rebuilt"), "{found}");
}

#[test]
fn damage_is_named_with_a_hint() {
    let world = World::new();
    world.sandbox.script("git", "#!/bin/sh\necho git version 2.47.3\n");
    let path = world.json(["list", "--agent", "claude", "--json"])[0]["path"].as_str().unwrap().to_owned();
    let mut content = std::fs::read(&path).unwrap();
    content.extend(b"garbage\n{\"type\":\"user\",\"uu");
    std::fs::write(&path, content).unwrap();
    let output = world.run(["doctor"]);
    assert_eq!(output.code, 0);
    assert!(output.out.contains("1 × lines that are not JSON objects were skipped"), "{}", output.out);
    assert!(output.out.contains("1 × the last line is incomplete"), "{}", output.out);
    // A registry that others can read is not as it should be.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let data = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_DATA_HOME").unwrap().1.clone();
        let registry = std::path::Path::new(&data).join("tine/registry.db");
        assert_eq!(registry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&registry, std::fs::Permissions::from_mode(0o644)).unwrap();
        let output = world.run(["doctor"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.out.contains("chmod 600"), "{}", output.out);
    }
}

/// `start` and `fork --worktree` failed on the file, and doctor said that all was well.
#[test]
fn a_broken_configuration_is_not_healthy() {
    let world = World::new();
    let path = world.sandbox.root().join("config/tine/config.toml");
    let check = |text: &str| {
        world.sandbox.write(&path, text);
        let output = world.run(["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&output.raw).unwrap();
        let check = report["checks"].as_array().unwrap().iter().find(|check| check["subject"] == "configuration");
        (output.code, check.unwrap().clone())
    };
    let (code, found) = check("[worktree]\nplace = 3\n");
    assert_eq!((code, &found["verdict"]), (1, &"bad".into()), "{found:#}");
    assert_eq!(check("not TOML").0, 1);
    let (code, found) = check("[worktree]\nplaec = \"x\"\n");
    assert_eq!((code, &found["verdict"]), (0, &"note".into()), "{found:#}");
    assert!(found["found"].as_str().unwrap().ends_with("unknown: `worktree.plaec`"), "{found:#}");
    assert_eq!(check("[worktree]\nplace = \"{repository}.trees/{branch}\"\n").1["verdict"], "good");
    let (code, found) = check("[profiles.p]\nsettings = \"nowhere.json\"\n");
    assert_eq!((code, &found["verdict"]), (1, &"bad".into()), "{found:#}");
    assert!(found["found"].as_str().unwrap().contains("profile `p`: cannot read "), "{found:#}");
    assert_eq!(check("[profiles.p]\nagent = \"codex\"\nsettings = \"Cargo.toml\"\n").0, 1);
    let start = world.run(["start", "other", "--profile", "p", "--agent", "codex", "--in", "none"]);
    assert_eq!(start.code, 1, "{}", start.whole());

    let check = |text: &str| {
        world.sandbox.write(&path, text);
        let output = world.run(["doctor", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&output.raw).unwrap();
        let check = report["checks"].as_array().unwrap().iter().find(|check| check["subject"] == "Claude Code");
        (output.code, check.unwrap().clone())
    };
    let (code, found) = check("[agents.claude]\ncommand = \"/nonexistent\"\n");
    assert_eq!((code, &found["verdict"]), (1, &"bad".into()), "{found:#}");
    assert!(found["found"].as_str().unwrap().starts_with("/nonexistent not found; it is set in "), "{found:#}");
    let (code, found) = check("");
    assert_eq!((code, &found["verdict"]), (0, &"note".into()), "{found:#}");
    world.sandbox.script("my-claude", "#!/bin/sh\necho 2.1.325\n");
    let (code, found) = check("[agents.claude]\ncommand = \"my-claude\"\n");
    assert_eq!((code, &found["verdict"]), (0, &"good".into()), "{found:#}");
}

/// A deletion that only the trash knows, as after a registry was lost.
#[test]
fn a_registry_is_restored_from_its_backup_and_lost_deletions_from_the_trash() {
    let world = World::new();
    let registry = world.sandbox.root().join("data/tine/registry.db");
    assert_eq!(world.run(["adopt", LOGIN, "login"]).code, 0);
    let before = world.agents_files();
    assert_eq!(world.run(["delete", STREAM, "--yes"]).code, 0);
    let lose = || {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", registry.display()));
        }
    };
    lose();
    std::fs::write(&registry, "no database, but long enough to be looked at as one").unwrap();
    let output = world.run(["doctor"]);
    assert_eq!(output.code, 1, "{}", output.whole());
    assert!(
        output.out.contains("`tine doctor --repair` restores the backup of 2026-11-15 12:00 UTC"),
        "{}",
        output.whole()
    );

    let output = world.run(["doctor", "--repair"]);
    assert_eq!(output.code, 0, "{}", output.whole());
    assert!(output.err.contains("restored the registry from the backup of 2026-11-15 12:00 UTC"), "{}", output.whole());
    assert!(
        output.err.contains(&format!("added `delete {}` to the log again; `tine undo 2`", &STREAM[..8])),
        "{output:?}"
    );
    assert_eq!(world.json(["info", "login", "--json"])["id"], LOGIN);
    assert_eq!(world.run(["undo", "2"]).code, 0);
    assert_eq!(world.agents_files(), before);
    let output = world.run(["doctor", "--repair"]);
    assert!(output.code == 0 && output.err.contains("nothing to repair"), "{}", output.whole());

    // A registry that is gone is as bad as one that is damaged.
    lose();
    assert!(world.run(["doctor"]).out.contains("is empty, although there are backups"));
    assert_eq!(world.run(["doctor", "--repair"]).code, 0);
    assert_eq!(world.json(["info", "login", "--json"])["id"], LOGIN);
}

/// An earlier tine deleted without a registry, numbered its folders and wrote no labels.
#[test]
fn a_deletion_without_a_label_is_restored_from_its_transcript() {
    let world = World::new();
    let before = world.agents_files();
    let trash = world.sandbox.root().join("data/tine/trash/1");
    std::fs::create_dir_all(&trash).unwrap();
    for session in [LOGIN, STREAM] {
        let path = std::path::PathBuf::from(world.json(["info", session, "--json"])["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap();
        std::fs::rename(&path, trash.join(format!("0-{name}"))).unwrap();
        let output = world.run(["doctor"]);
        assert!(output.out.contains(&format!("the log doesn't list: `delete {session}`")), "{}", output.whole());
        assert_eq!(world.run(["doctor", "--repair"]).code, 0);
        assert_eq!(world.run(["undo"]).code, 0);
        assert_eq!(world.agents_files(), before);
        assert!(!trash.exists());
        std::fs::create_dir_all(&trash).unwrap();
    }
}
