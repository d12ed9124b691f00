//! `tine list`.

use serde_json::json;
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

/// The title was the name again, and nothing told worktrees apart.
#[test]
fn a_named_session_says_what_it_is_about_and_which_worktree_it_is_in() {
    let world = World::new();
    assert_eq!(world.run(["fork", LOGIN, "try-cookie", "-w"]).code, 0);
    let row = |directory: &std::path::Path, label: &str| {
        let out = world.run_in(directory, ["list"]).out;
        out.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{out}")).to_owned()
    };
    let title = "Why do users land on /undefined after login?";
    assert!(
        row(&world.shop, "try-cookie").ends_with(&format!("  [try-cookie] {title}")),
        "{}",
        row(&world.shop, "try")
    );
    assert!(row(&world.shop, "1f3a5c60").ends_with(&format!("  {title}")));
    let tree = world.shop.with_file_name("shop.worktrees").join("try-cookie");
    assert!(row(&tree, "try-cookie").ends_with(&format!("  {title}")));
    assert!(row(&tree, "1f3a5c60").ends_with(&format!("  [shop] {title}")));
    assert_eq!(world.json(["info", "try-cookie", "--json"])["title"], title);
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
        let output = world.run(arguments);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(is_harmless(&output.raw), "{arguments:?}: {:?}", output.raw);
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
    for damage in [&b""[..], b"tinecat7", b"garbage that is long enough to be a header and more"] {
        std::fs::write(&catalog, damage).unwrap();
        assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 3);
    }
    std::fs::remove_dir_all(&cache).unwrap();
    assert_eq!(world.json(["list", "--json"]).as_array().unwrap().len(), 3);
}

fn text(output: std::process::Output) -> String {
    String::from_utf8(output.stdout).unwrap()
}

/// Every process replaces the cache; what one of them read must not be mixed with what another wrote.
#[test]
fn listings_at_once_do_not_mix_up_lineage() {
    let world = World::empty();
    let claude = world.sandbox.claude_home();
    let id = |number: usize, kind: u32| format!("{number:08x}-0000-4000-8000-{kind:012}");
    let mut paths = Vec::new();
    for number in 0..40 {
        let mut parent = ClaudeSession::new(&id(number, 1)).cwd(&world.shop).seed(number as u64);
        for turn in 0..=number % 5 {
            parent = parent.turn(|t| t.prompt(format!("{number} {turn}")).text("yes"));
        }
        parent.branch(&id(number, 2)).turn(|turn| turn.prompt("on").text("yes")).write(&claude);
        paths.push(parent.write(&claude));
    }
    let lineage = || {
        let sessions = world.json(["list", "--all", "--json"]);
        let mut parents: Vec<(String, serde_json::Value)> = Vec::new();
        for session in sessions.as_array().unwrap() {
            let parent = json!([session["parent"]["id"], session["parent"]["turn"]]);
            parents.push((session["id"].as_str().unwrap().to_owned(), parent));
        }
        parents.sort_by(|a, b| a.0.cmp(&b.0));
        parents
    };
    let before = lineage();
    std::thread::scope(|scope| {
        for part in paths.chunks(10) {
            let world = &world;
            scope.spawn(move || {
                for path in part {
                    let mut content = std::fs::read(path).unwrap();
                    content.extend(b"{\"type\":\"mode\",\"mode\":\"normal\"}\n");
                    std::fs::write(path, content).unwrap();
                    assert_eq!(world.run(["list", "--all"]).code, 0);
                }
            });
        }
    });
    assert_eq!(lineage(), before);
    // Nor did the cache keep anything wrong: a new registry learns the same from it.
    let data = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_DATA_HOME").unwrap().1.clone();
    std::fs::remove_dir_all(data).unwrap();
    assert_eq!(lineage(), before);
}

#[test]
fn a_fork_whose_base_is_gone_says_so_until_it_is_back() {
    let world = World::new();
    let turns = || world.json(["info", STREAM, "--json"])["turns"].clone();
    let base = std::path::PathBuf::from(world.json(["info", EXPORT, "--json"])["path"].as_str().unwrap());
    assert_eq!(turns(), 2);
    let away = base.with_extension("away");
    std::fs::rename(&base, &away).unwrap();
    assert_eq!(turns(), 1);
    assert_eq!(world.json(["info", STREAM, "--json"])["defects"]["missing-base"], 1);
    std::fs::rename(&away, &base).unwrap();
    assert_eq!(turns(), 2);
}

#[test]
fn narrow_terminals_and_missing_directories() {
    let world = World::new();
    for columns in ["20", "40", "79"] {
        let output = world.command(["list", "--all"]).env("COLUMNS", columns).output().unwrap();
        let widest = text(output).lines().map(transcript::text::width).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{widest} in {columns} columns");
    }
    insta::assert_snapshot!(world.run(["list", "--dir", "nowhere"]).whole());
    insta::assert_snapshot!(world.run(["info", &format!("{LOGIN}@1")]).whole());
}
