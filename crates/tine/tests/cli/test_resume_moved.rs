//! Directories that are gone: where `tine resume` finds their repositories.

use std::fs;
use std::path::PathBuf;

use testkit::build::CodexSession;

use crate::test_start_profile::world;

#[test]
fn a_repository_is_found_again_by_its_commits() {
    let world = world();
    let work = world.sandbox.work();
    let output = world.run(["start", "work", "--in", "headless", "--prompt", "x"]);
    assert_eq!(output.code, 0, "{}", output.err);
    let inner = world.shop.join("src");
    fs::create_dir(&inner).unwrap();
    assert_eq!(world.run_in(&inner, ["start", "inside", "--in", "headless", "--prompt", "x"]).code, 0);
    let hint = |session: &str| {
        let output = world.run_in(&world.blog, ["resume", session, "--in", "none"]);
        assert_eq!(output.code, 1, "{}", output.whole());
        output.err.lines().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default().to_owned()
    };
    let at = |path: &str| format!("its repository is now at [ROOT]/work/{path}");
    fs::rename(&world.shop, work.join("shop-2")).unwrap();
    assert!(hint("work").starts_with(&at("shop-2")), "{}", hint("work"));
    assert!(hint("inside").starts_with(&at("shop-2/src")), "{}", hint("inside"));
    // An unrelated one of the same name is none, with commits of its own or without.
    fs::create_dir_all(work.join("unrelated/shop")).unwrap();
    world.sandbox.project("another/shop");
    fs::create_dir_all(work.join("deep/er")).unwrap();
    let deep: PathBuf = work.join("deep/er/shop");
    fs::rename(work.join("shop-2"), &deep).unwrap();
    assert!(hint("work").starts_with(&at("deep/er/shop")), "{}", hint("work"));
    fs::rename(&deep, world.sandbox.root().join("out of sight")).unwrap();
    assert!(hint("work").starts_with("its repository was not found"), "{}", hint("work"));
    let output = world.run_in(&world.blog, ["resume", "work", "--to", "nowhere"]);
    assert!(output.err.contains("work/blog/nowhere not found"), "{}", output.err);
}

#[test]
fn a_worktree_that_is_gone_leads_to_its_repository() {
    let world = world();
    let tree = world.sandbox.work().join("tree");
    world.sandbox.git(&world.shop, ["worktree", "add", "--quiet", "-b", "side", tree.to_str().unwrap()]);
    assert_eq!(world.run_in(&tree, ["start", "side", "--in", "headless", "--prompt", "x"]).code, 0);
    let moved = world.sandbox.work().join("moved-tree");
    world.sandbox.git(&world.shop, ["worktree", "move", tree.to_str().unwrap(), moved.to_str().unwrap()]);
    let hint = || world.run_in(&world.blog, ["resume", "side", "--in", "none"]).err;
    assert!(hint().contains("is now at [ROOT]/work/moved-tree:"), "{}", hint());
    world.sandbox.git(&world.shop, ["worktree", "remove", moved.to_str().unwrap()]);
    assert!(hint().contains("is now at [ROOT]/work/shop:"), "{}", hint());
}

#[test]
fn what_an_agent_wrote_down_of_a_repository_will_do() {
    let world = world();
    let thread = "019a9999-3c52-7e10-8a4b-6d1f0c9e2b37";
    let path = CodexSession::new(thread)
        .cwd(&world.shop)
        .turn(|turn| turn.prompt("a").text("b"))
        .write(&world.sandbox.codex_home());
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut first: serde_json::Value = serde_json::from_str(first).unwrap();
    let commit = world.sandbox.git(&world.shop, ["rev-parse", "HEAD"]);
    first["payload"]["git"] = serde_json::json!({"commit_hash": commit.trim(), "branch": "main"});
    fs::write(&path, format!("{first}\n{rest}")).unwrap();
    fs::rename(&world.shop, world.sandbox.work().join("market")).unwrap();
    let output = world.run_in(&world.blog, ["resume", thread, "--in", "none"]);
    assert!(output.err.contains("its repository is now at [ROOT]/work/market"), "{}", output.err);
}
