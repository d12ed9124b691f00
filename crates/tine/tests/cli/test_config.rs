//! `tine config`.

use crate::world::World;

#[test]
fn keys_are_listed_as_configured() {
    let world = World::new();
    let keys = world.run(["config", "keys"]);
    let line = |output: &str, name: &str| {
        let found = output.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
        found.unwrap_or_else(|| panic!("{name} in {output}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line(&keys.out, "fork"), "sessions fork f alt+shift+f fork");
    let path = world.sandbox.root().join("config/tine/config.toml");
    world.sandbox.write(&path, "[workbench.keys]\nfork = [\"ctrl+f\"]\n");
    let keys = world.run(["config", "keys"]);
    assert_eq!(line(&keys.out, "fork"), "sessions fork ctrl+f fork");
    world.sandbox.write(&path, "[workbench.keys]\nforks = [\"ctrl+f\"]\n");
    let refused = world.run(["config", "keys"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("no action is called `forks`"), "{}", refused.whole());
}
