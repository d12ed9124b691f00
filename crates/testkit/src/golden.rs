//! Files in the repository that a test generates and a person reviews.

use std::fs;
use std::path::Path;

/// Fails when a generated file in the repository is stale; `TINE_UPDATE=1 cargo test` rewrites it instead.
///
/// `path` is relative to the root of the repository.
pub fn assert_file(path: &str, generated: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(path);
    if std::env::var_os("TINE_UPDATE").is_some() {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder for generated files");
        return fs::write(&file, generated).expect("a writable repository");
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let first = stored.lines().zip(generated.lines()).position(|(stored, generated)| stored != generated);
    let line = first.unwrap_or(stored.lines().count().min(generated.lines().count()));
    assert!(
        stored == generated,
        "{path} is stale at line {}; rewrite it with TINE_UPDATE=1 and review the change\n  stored:    {}\n  generated: {}",
        line + 1,
        stored.lines().nth(line).unwrap_or("(end)"),
        generated.lines().nth(line).unwrap_or("(end)"),
    );
}

/// Fails when a folder of generated files holds others than `names`; `TINE_UPDATE=1 cargo test` removes them instead.
pub fn assert_folder(path: &str, names: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    for entry in fs::read_dir(&folder).expect("a folder of generated files").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_known = names.contains(&name);
        if !is_known && std::env::var_os("TINE_UPDATE").is_some() {
            fs::remove_file(entry.path()).expect("a writable repository");
        } else {
            assert!(is_known, "{path}/{name} is no longer generated; remove it");
        }
    }
}
