//! Everything that is linked into tine is what `deny.toml` allows, as far as that can be checked without a network.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use toml::Table;

fn rules() -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deny.toml");
    fs::read_to_string(path).expect("deny.toml").parse().expect("TOML")
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages").clone();
    assert!(packages.len() > 20, "too few packages to be true");
    packages
}

/// Whether an SPDX expression leaves a choice that is allowed: every part of an AND, one part of an OR.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression.split(" AND ").all(|part| part.split(" OR ").any(|licence| allowed.contains(&licence.trim())))
}

#[test]
fn licences_are_allowed() {
    let rules = rules();
    let allowed: Vec<&str> = rules["licenses"]["allow"]
        .as_array()
        .expect("licences")
        .iter()
        .filter_map(|licence| licence.as_str())
        .collect();
    let packages = packages();
    let licence = |package: &Value| package["license"].as_str().unwrap_or("none").to_owned();
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(&licence(package), &allowed))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn banned_crates_and_other_sources_are_not_used() {
    let rules = rules();
    let banned: Vec<&str> =
        rules["bans"]["deny"].as_array().expect("crates").iter().filter_map(|ban| ban["crate"].as_str()).collect();
    assert!(banned.contains(&"openssl-sys"), "{banned:?}");
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        assert!(!banned.contains(&name), "{name} is banned by deny.toml");
        // Our own have none.
        let source = package["source"].as_str().unwrap_or("registry+");
        assert!(source.starts_with("registry+"), "{name} comes from {source}");
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
    for expression in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", allowed[2]] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "none", ""] {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}
