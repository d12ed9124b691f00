//! Everything that is linked into tine may be given away under its own licence.

use std::process::Command;

use serde_json::Value;

const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
];

/// Whether an SPDX expression leaves a choice that is allowed: every part of an AND, one part of an OR.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression.split(" AND ").all(|part| {
        part.split(" OR ").any(|licence| {
            let licence = licence.trim();
            ALLOWED.contains(&licence) || licence == "Zlib"
        })
    })
}

#[test]
fn licences_of_dependencies_are_allowed() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or("none")))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(packages.len() > 20, "too few packages to be true");
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn expressions_are_read_as_meant() {
    for allowed in ["MIT", "MIT OR GPL-3.0", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "Zlib"] {
        assert!(is_allowed(allowed), "{allowed}");
    }
    for refused in ["GPL-3.0", "MIT AND GPL-3.0", "none", ""] {
        assert!(!is_allowed(refused), "{refused}");
    }
}
