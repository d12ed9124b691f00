//! `tine demo`.

use crate::world::World;

#[test]
fn the_tour_fits_on_three_screens_and_leaves_nothing_behind() {
    let world = World::empty();
    let before = world.agents_files();
    let output = world.run(["demo"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        output.err,
        "forked login-fix after turn 1 as login-retry; resume it with:\n\
         no session contains `spreadsheet` or `download`\n\
         best match: csv-export, turn 1 of 2, score 0.62\n\
         forked csv-export after turn 2 as customers; resume it with:\n"
    );
    assert!(output.out.lines().count() <= 60, "{} lines", output.out.lines().count());
    let is_command = |line: &str| line.starts_with("cd ");
    assert!(output.out.lines().all(|line| is_command(line) || line.chars().count() <= 120), "{}", output.out);
    for word in [
        "tine list --all",
        "tine show",
        "tine fork",
        "login-retry",
        "tine tree",
        "csv-export",
        "claude",
        "codex",
        "tine search",
        "csv-export · codex",
        "tine smart-fork",
        "└─ customers @2",
        "Your own files are untouched",
    ] {
        assert!(output.out.contains(word), "{word} in {}", output.out);
    }
    assert_eq!(world.agents_files(), before);
    let left: Vec<_> = std::fs::read_dir(world.sandbox.tmp()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let data = world.sandbox.environment().iter().find(|(name, _)| *name == "XDG_DATA_HOME").unwrap().1.clone();
    assert!(!std::path::Path::new(&data).join("tine").exists());
}

/// What the README shows is what people see when they try it.
#[test]
fn the_readme_shows_what_the_tour_prints() {
    let world = World::empty();
    let output = world.command(["demo"]).env("COLUMNS", "100").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let readme = include_str!("../../../../README.md");
    let blocks: Vec<&str> =
        readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(blocks.len() > 2, "{}", blocks.len());
    for block in blocks {
        assert!(printed.contains(block), "the README shows\n{block}\nbut the tour prints\n{printed}");
    }
}
