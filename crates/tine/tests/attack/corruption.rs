//! Damage to what tine keeps itself: registry, catalog, index, vectors and configuration.

use std::fs;
use std::path::Path;

use testkit::damage::damage_bytes;

use crate::world::{COOKIE, LOGIN, World};
use crate::{assert_untouched, files_in, rounds, run, unfinished};

#[test]
fn damaged_files_of_our_own_cost_no_conversation() {
    rounds("damaged_files", 12, |random| {
        let world = World::new();
        for words in [
            &["adopt", LOGIN, "login"][..],
            &["fork", "login", "retry"],
            &["delete", COOKIE, "--yes"],
            &["undo"],
            &["search", "redirect"],
        ] {
            assert!(run(&mut world.command(words)).status.success(), "{words:?}");
        }
        let root = world.sandbox.root().to_owned();
        world.sandbox.write(root.join("config/tine/config.toml"), "[worktree]\nplace = \"../trees/{branch}\"\n");
        let before = world.agents_files();
        let own = files_in([&*root.join("data"), &*root.join("cache"), &*root.join("config")]);
        let own: Vec<_> = own.into_iter().collect();
        for _ in 0..=random.below(3) {
            let (path, content) = random.choose(&own);
            match random.below(6) {
                0 => drop(fs::remove_file(path)),
                1 => fs::write(path, "").unwrap(),
                2 => fs::write(path, random.choose(&own).1.as_slice()).unwrap(),
                _ => fs::write(path, damage_bytes(content, random)).unwrap(),
            }
        }
        for words in [
            &["list", "--all", "--json"][..],
            &["tree", "--all"],
            &["search", "cookie", "--json"],
            &["show", LOGIN],
            &["log", "--json"],
            &["status"],
            &["doctor"],
            &["index"],
        ] {
            run(&mut world.command(words));
            assert!(world.agents_files() == before, "{words:?} changed the agents' files");
        }
        // A change happens, or nothing does.
        let changes: [&[&str]; 4] = [
            &["fork", LOGIN, "again", "--yes"],
            &["delete", COOKIE, "--yes"],
            &["undo"],
            &["fork", LOGIN, "tree", "--worktree", "--yes"],
        ];
        for words in changes {
            let before = world.agents_files();
            let is_done = run(&mut world.command(words)).status.success();
            assert!(is_done || world.agents_files() == before, "{words:?} failed and changed the agents' files");
        }
        assert_eq!(unfinished(&root), [] as [&Path; 0]);
        // The caches can be thrown away at any time.
        fs::remove_dir_all(root.join("cache/tine")).ok();
        let output = run(&mut world.command(["list", "--all", "--json"]));
        assert!(output.status.success(), "{output:?}");
        let login = before.iter().filter(|(path, _)| path.to_string_lossy().contains(LOGIN));
        assert_untouched(&login.map(|(path, content)| (path.clone(), content.clone())).collect());
    });
}
