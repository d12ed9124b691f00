//! Exhausted resources: files that may not grow, too few descriptors, closed streams, a full output, folders that are gone.

use std::path::PathBuf;

use crate::world::{LOGIN, World};
use crate::{assert_untouched, rounds, run, unfinished};

#[test]
fn exhausted_resources_leave_nothing_half_made() {
    rounds("exhausted_resources", 40, |random| {
        let world = World::new();
        let commands: [&[&str]; 12] = [
            &["list", "--all"],
            &["show", LOGIN],
            &["show", LOGIN, "--html"],
            &["search", "redirect"],
            &["index"],
            &["fork", LOGIN, "other", "--yes"],
            &["fork", LOGIN, "other", "--worktree", "--yes"],
            &["clone", LOGIN, "other", "--yes"],
            &["delete", LOGIN, "--yes"],
            &["export", "../exported"],
            &["doctor"],
            &["mcp"],
        ];
        let words = *random.choose(&commands);
        if random.below(2) == 0 {
            assert_eq!(world.run(["list", "--all"]).code, 0);
        }
        let before = world.agents_files();
        let limit = match random.below(8) {
            0 | 1 => format!("ulimit -f {}; exec \"$@\"", random.below(600)),
            2 | 3 => format!("ulimit -n {}; exec \"$@\"", 4 + random.below(60)),
            4 => "exec \"$@\" >/dev/full".to_owned(),
            5 => "exec \"$@\" >&- 2>&-".to_owned(),
            6 => "exec \"$@\" <&- 2>/dev/full".to_owned(),
            _ => "mkdir ../gone && cd ../gone && rmdir ../gone && exec \"$@\"".to_owned(),
        };
        let mut command = world.sandbox.command("sh");
        command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_tine")]).args(words).current_dir(&world.shop);
        let is_done = run(&mut command).status.success();
        // The next run cleans up, without the limit.
        assert_eq!(world.run(["list", "--all"]).code, 0, "{limit}: {words:?}");
        assert_eq!(unfinished(world.sandbox.root()), [] as [PathBuf; 0], "{limit}: {words:?}");
        let is_deleted = words[0] == "delete" && !before.keys().all(|path| path.exists());
        assert!(!is_deleted || is_done || world.run(["undo"]).code == 0, "{limit}: {words:?}");
        if !is_deleted || !is_done {
            assert_untouched(&before);
        }
        if matches!(words[0], "fork" | "clone") {
            let is_known = world.run(["info", "other"]).code == 0;
            let tree = world.shop.with_file_name("shop.worktrees").join("other");
            assert!(is_known || !tree.exists(), "{limit}: {words:?}");
            assert!(!is_done || is_known || words.contains(&"--plan"), "{limit}: {words:?}");
        }
    });
}
