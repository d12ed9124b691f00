//! `tine list`.

use testkit::build::ClaudeSession;

use crate::world::{COOKIE, EXPORT, LOGIN, STREAM, World, is_harmless};

#[test]
fn sessions_are_listed_newest_first() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["list"]).whole());
    // With the sandbox for a home, its random name is not part of what is cut.
    let home = world.sandbox.root().to_owned();
    let mut command = world.command(["list", "--all"]);
    command.env("COLUMNS", "80").env("HOME", home).env("CLAUDE_CONFIG_DIR", world.sandbox.claude_home());
    insta::assert_snapshot!("in 80 columns", command.output().map(text).unwrap());
}

#[test]
fn json_is_the_contract() {
    let world = World::new();
    insta::assert_snapshot!(world.run(["list", "--json"]).out);
}

#[test]
fn filters_narrow_it_down() {
    let world = World::new();
    let ids = |arguments: &[&str]| {
        let sessions = world.json(arguments.iter().copied().chain(["--json"]));
        sessions
            .as_array()
            .unwrap()
            .iter()
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&["list"]), [STREAM, EXPORT, LOGIN, COOKIE]);
    assert_eq!(ids(&["ls", "--agent", "claude"]), [LOGIN, COOKIE]);
    assert_eq!(ids(&["list", "-n", "1"]), [STREAM]);
    assert_eq!(ids(&["list", "--dir", "../blog"]), [] as [&str; 0]);
    assert_eq!(ids(&["list", "--all"]).len(), 4);
}

#[test]
fn worktrees_and_subdirectories_belong_to_the_repository() {
    let world = World::new();
    let worktree = world.sandbox.work().join("shop-worktree");
    world.sandbox.git(&world.shop, ["worktree", "add", "-b", "side", worktree.to_str().unwrap()]);
    ClaudeSession::new("22222222-2222-4222-8222-222222222222")
        .cwd(&worktree)
        .turn(|turn| turn.prompt("In the worktree.").text("Yes."))
        .write(&world.sandbox.claude_home());
    let count = |directory: &std::path::Path| world.run_in(directory, ["list"]).out.lines().count();
    let below = world.shop.join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    assert_eq!(count(&world.shop), 5);
    assert_eq!(count(&worktree), 5);
    assert_eq!(count(&below), 5);
    assert_eq!(count(&world.blog), 0);
}

#[test]
fn an_empty_home_is_told_kindly() {
    let world = World::empty();
    insta::assert_snapshot!(world.run(["list"]).whole());
    insta::assert_snapshot!(world.run(["list", "--all"]).whole());
    assert_eq!(world.run(["list", "--json"]).out, "[]\n");
}

#[test]
fn titles_cannot_control_the_terminal() {
    let world = World::empty();
    ClaudeSession::new(LOGIN)
        .cwd(&world.shop)
        .title("\u{1b}]0;owned\u{7}\u{1b}[2Jclean \u{9b}31m\u{202e}title\r\n\u{8}")
        .turn(|turn| turn.prompt("\u{1b}[31mred").text("\u{1b}]52;c;aGk=\u{7}answer"))
        .write(&world.sandbox.claude_home());
    for arguments in [
        &["list"][..],
        &["info", "."],
        &["show", "."],
        &["show", ".", "--markdown"],
        &["tree", "."],
        &["list", "--json"],
    ] {
        let told = world.run(arguments);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(is_harmless(&told.raw), "{arguments:?}: {:?}", told.raw);
    }
    assert!(world.run(["list"]).out.contains("clean title"), "{}", world.run(["list"]).out);
    assert_eq!(world.json(["list", "--json"])[0]["title"], "clean title");
}

#[test]
fn colour_follows_the_rules() {
    let world = World::new();
    let colored = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = world.command(arguments).envs(variables.iter().copied()).output().unwrap();
        text(output).contains('\u{1b}')
    };
    assert!(!colored(&["list"], &[]));
    assert!(colored(&["list", "--color", "always"], &[]));
    assert!(colored(&["list"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!colored(&["list"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn listing_touches_nothing_of_the_agents() {
    let world = World::new();
    let before = world.agents_files();
    for arguments in
        [&["list", "--all"][..], &["show", LOGIN, "--tools"], &["info", EXPORT], &["tree"], &["status"], &["doctor"]]
    {
        assert_eq!(world.run(arguments).code, 0, "{arguments:?}");
    }
    assert_eq!(world.agents_files(), before);
}

#[test]
fn a_change_is_seen_and_a_deleted_cache_is_no_loss() {
    let world = World::new();
    assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 4);
    let path = world.json(["info", LOGIN, "--json"])["path"].as_str().unwrap().to_owned();
    let mut content = std::fs::read_to_string(&path).unwrap();
    content.push_str("{\"type\":\"custom-title\",\"customTitle\":\"Renamed\",\"sessionId\":\"x\"}\n");
    std::fs::write(&path, content).unwrap();
    assert_eq!(world.json(["info", LOGIN, "--json"])["title"], "Renamed");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 3);
    let cache = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_CACHE_HOME").unwrap().1.clone();
    let catalog = std::path::Path::new(&cache).join("tine/catalog");
    for damage in [&b""[..], b"tinecat4", b"garbage that is long enough to be a header and more"] {
        std::fs::write(&catalog, damage).unwrap();
        assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 3);
    }
    std::fs::remove_dir_all(&cache).unwrap();
    assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 3);
}

fn text(output: std::process::Output) -> String {
    String::from_utf8(output.stdout).unwrap()
}
