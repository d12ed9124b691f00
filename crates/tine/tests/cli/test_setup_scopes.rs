//! `tine setup --project` and `--plugin`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::test_setup::{SETTINGS, TINE, claude, done, equal, files, install_claude, run_entry, text};
use crate::world::World;

#[test]
fn a_project_needs_nothing_where_the_person_has_it() {
    let world = World::empty();
    let settings = world.shop.join(".claude/settings.json");
    let inner = world.shop.join("src");
    fs::create_dir_all(&inner).unwrap();
    let output = world.run_in(&inner, ["setup", "--project", "--yes"]);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(fs::read_to_string(&settings).unwrap().contains("session-start"));
    // Equal commands are run once, so that the person's own may come as well.
    assert!(!done(&world, &["claude"]).contains("--project"));
    done(&world, &["claude", "--uninstall"]);
    assert!(settings.exists());
    done(&world, &["claude", "--project", "--uninstall"]);
    assert!(!world.shop.join(".claude").exists());

    done(&world, &["claude"]);
    let output = done(&world, &["--project"]);
    assert!(output.contains("already has the hooks for all projects"), "{output}");
    assert!(!settings.exists());
    let output = world.run(["setup", "codex", "--project", "--yes"]);
    assert!(output.err.contains("Codex does not support hooks for a project"), "{}", output.err);
}

#[test]
fn the_plugin_takes_the_place_of_the_entries() {
    let world = World::empty();
    install_claude(&world);
    world.sandbox.write(claude(&world), SETTINGS);
    done(&world, &["claude"]);
    let before = files(&world);
    // Claude Code refuses settings with comments, and says so.
    world.sandbox.write(world.sandbox.home().join("refuse"), "");
    let output = world.run(["setup", "claude", "--plugin", "--yes"]);
    assert!(output.code == 1 && output.err.contains("it does not want to"), "{}", output.err);
    // What was to give way is there again.
    assert_eq!(files(&world), before);
    let folder = world.sandbox.root().join("data/tine/claude-plugin");
    assert!(!folder.exists());
    fs::remove_file(world.sandbox.home().join("refuse")).unwrap();

    let output = done(&world, &["claude", "--plugin"]);
    assert!(output.contains("+ the plugin"), "{output}");
    let mut written = String::new();
    for name in [
        ".claude-plugin/plugin.json",
        ".claude-plugin/marketplace.json",
        "hooks/hooks.json",
        ".mcp.json",
        "commands/tine.md",
    ] {
        written.push_str(&format!("=== {name}\n{}", text(&world, &folder.join(name))));
    }
    insta::assert_snapshot!("setup_plugin", written);
    let status = world.json(["setup", "claude", "--status", "--json"]);
    assert_eq!(
        (&status["agents"][0]["places"][0]["scope"], status["agents"][0]["places"].as_array().unwrap().len()),
        (&"plugin".into(), 1)
    );
    // It stays a plugin.
    assert_eq!(done(&world, &["claude"]), "claude: already set up\n");
    fs::write(folder.join("hooks/hooks.json"), "{}").unwrap();
    assert!(done(&world, &["claude"]).contains("~ the plugin"));
    assert!(fs::read_to_string(folder.join("hooks/hooks.json")).unwrap().contains("session-start"));

    done(&world, &["claude", "--uninstall"]);
    assert_eq!(fs::read_to_string(claude(&world)).unwrap(), SETTINGS);
    assert_eq!(fs::read_dir(world.sandbox.claude_home()).unwrap().count(), 1);
    assert!(!folder.exists());
    let asked = equal(&world, &fs::read_to_string(world.sandbox.home().join("asked")).unwrap());
    assert_eq!(asked.lines().last(), Some("plugin marketplace remove tine"));
}

#[test]
fn a_projects_entries_are_the_same_for_everybody() {
    let world = World::empty();
    done(&world, &["claude", "--project"]);
    let path = world.shop.join(".claude/settings.json");
    let settings = fs::read_to_string(&path).unwrap();
    assert!(!settings.contains(TINE) && settings.contains("exec tine hook stop"), "{settings}");
    let quiet = (Some(0), String::new());
    assert_eq!(run_entry(&world, &settings), quiet);
    assert_eq!(world.json(["setup", "claude", "--status", "--json"])["agents"][0]["installed"], false);
    // Whoever has tine is told of.
    world.sandbox.script("tine", "#!/bin/sh\necho ran $*\n");
    assert_eq!(run_entry(&world, &settings), (Some(0), "ran hook stop --agent claude\n".into()));
    assert_eq!(done(&world, &["claude", "--project"]), "claude: already set up\n");
    // Whoever has entries of their own, or the plugin, is told once.
    for own in [
        r#"{"hooks":{"Stop":[{"hooks":[{"command":"'/a b/tine' hook stop --agent claude"}]}]}}"#,
        r#"{"enabledPlugins": {"tine@tine": true}}"#,
    ] {
        world.sandbox.write(claude(&world), own);
        assert_eq!(run_entry(&world, &settings), quiet);
    }
    world.sandbox.write(claude(&world), r#"{"enabledPlugins": {"tine@tine": false}}"#);
    assert_eq!(run_entry(&world, &settings).1, "ran hook stop --agent claude\n");
    done(&world, &["claude", "--project", "--uninstall"]);
    assert!(!path.exists());
}

#[test]
fn a_plugin_needs_claude_code_to_come_and_not_to_go() {
    let world = World::empty();
    world.sandbox.write(claude(&world), "{\n  \"model\": \"opus\"\n}\n");
    done(&world, &["claude"]);
    let before = files(&world);
    let output = world.run(["setup", "claude", "--plugin", "--yes"]);
    assert!(output.code == 1 && output.err.contains("claude not found"), "{}", output.err);
    assert_eq!(files(&world), before);
    install_claude(&world);
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o444)).unwrap();
    let output = world.run(["setup", "claude", "--plugin", "--yes"]);
    assert!(output.code == 1 && output.err.contains("read-only"), "{}", output.err);
    assert_eq!(files(&world), before);
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o644)).unwrap();

    done(&world, &["claude", "--plugin"]);
    // As Claude Code writes it, and the person after it.
    let noted = "{\n  \"model\": \"haiku\",\n  \"extraKnownMarketplaces\": {\n    \"tine\": {}\n  },\n  \"enabledPlugins\": {\n    \"tine@tine\": true\n  }\n}\n";
    world.sandbox.write(claude(&world), noted);
    let plugins = world.sandbox.claude_home().join("plugins");
    world.sandbox.write(plugins.join("installed_plugins.json"), r#"{"version":2,"plugins":{"tine@tine":[],"a@b":[]}}"#);
    world.sandbox.write(plugins.join("known_marketplaces.json"), r#"{"tine":{},"b":{}}"#);
    world.sandbox.write(plugins.join("cache/tine/tine/0.1.0/README.md"), "");
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(world.run(["setup", "claude", "--uninstall", "--yes"]).err.contains("read-only"));
    fs::set_permissions(claude(&world), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(world.sandbox.bin().join("claude")).unwrap();
    done(&world, &["claude", "--uninstall"]);
    assert_eq!(fs::read_to_string(claude(&world)).unwrap(), "{\n  \"model\": \"haiku\"\n}\n");
    let left = |name: &str| fs::read_to_string(plugins.join(name)).unwrap();
    assert_eq!(left("installed_plugins.json"), r#"{"version":2,"plugins":{"a@b":[]}}"#);
    assert_eq!(left("known_marketplaces.json"), r#"{"b":{}}"#);
    assert!(!plugins.join("cache/tine").exists());
    assert!(!world.sandbox.root().join("data/tine/claude-plugin").exists());
}
