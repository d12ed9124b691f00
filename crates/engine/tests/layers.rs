//! The engine's folders depend on each other in one direction, and so do the folders of `search/`. This test reads the source
//! and fails on an import that points up, or that goes around the folders through the crate's root, and on SQL outside
//! `registry/`.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders and files of the engine, the lowest first. Each may use what stands before it.
const LAYERS: [&str; 25] = [
    "advice",
    "reported",
    "private",
    "signal",
    "names",
    "terminal",
    "progress",
    "context",
    "config",
    "workspace",
    "registry",
    "ctx",
    "program",
    "sessions",
    "operations",
    "hook",
    "code",
    "run",
    "naming",
    "jobs",
    "fork",
    "search",
    "setup",
    "error",
    "tine",
];

/// The same of the files and folders in `search/`.
const SEARCH: [&str; 9] = ["error", "query", "index", "rank", "show", "qmd", "request", "smart", "view"];

/// What only SQL and those who send it contain.
const SQL: [&str; 6] = ["rusqlite", "SELECT ", "INSERT ", "UPDATE ", "DELETE FROM ", "PRAGMA "];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, found),
            path if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The first words of all paths in a text that begin with `prefix`, those in braces included.
fn first_words(text: &str, prefix: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut words = Vec::new();
    for (at, found) in text.match_indices(prefix) {
        let rest = &text[at + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            words.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut begins = true;
        for (at, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    words.push(word(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    words
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    // Above the module stands its `cfg`, which may name a system as well.
    let tests = text.find("\nmod tests").and_then(|at| text[..at].rfind("\n#[cfg(")).unwrap_or(text.len());
    text[..tests].lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The words between `begin` and the next closing bracket, wherever that occurs.
fn words_in(text: &str, begin: &str) -> Vec<String> {
    let lists = text.match_indices(begin).filter_map(|(at, found)| text[at + found.len()..].split(')').next());
    lists.flat_map(|list| list.split(',')).map(|word| word.trim().to_owned()).collect()
}

/// The imports in `folder` that point up in its `layers`. `prefix` is how a path into the folder begins.
fn upward_imports(folder: &Path, layers: &[&str], prefix: &str) -> Vec<String> {
    let mut files = Vec::new();
    sources(folder, &mut files);
    let rank = |layer: &str| layers.iter().position(|known| *known == layer);
    let mut wrong = Vec::new();
    for path in files {
        let relative = path.strip_prefix(folder).expect("a file of the folder").to_string_lossy().into_owned();
        let is_test = relative.ends_with("tests.rs") || relative == "test_world.rs";
        if relative == "lib.rs" || relative == "mod.rs" || is_test {
            continue;
        }
        let own = relative.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(own_rank) = rank(own) else {
            wrong.push(format!("{relative}: `{own}` isn't in the list of layers"));
            continue;
        };
        // The façade stands above everything, so it may use the crate's root.
        if own == "tine" {
            continue;
        }
        let text = code(&fs::read_to_string(&path).expect("a text"));
        // A path in a macro belongs to where the macro is used: `wraps!` names the folders whose errors it converts.
        let text = text.replace("$crate::", "");
        let wrapped = words_in(&text, "wraps!(").into_iter().map(|word| word.to_lowercase());
        let wrapped = wrapped.filter(|word| rank(word).is_some());
        for used in first_words(&text, prefix).into_iter().chain(wrapped).filter(|used| used != own) {
            match rank(&used) {
                Some(rank) if rank < own_rank => {}
                Some(_) => wrong.push(format!("{relative}: `{used}` stands above `{own}`")),
                None => wrong.push(format!("{relative}: `{prefix}{used}` goes around the folders")),
            }
        }
    }
    wrong
}

#[test]
fn folders_depend_on_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100, "{} files in {}", files.len(), root.display());
    let wrong = upward_imports(&root, &LAYERS, "crate::");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folders of `search/` name each other by full paths; `super` stays inside of one.
#[test]
fn the_steps_of_a_search_depend_on_each_other_in_one_direction() {
    let search = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/search");
    let mut wrong = upward_imports(&search, &SEARCH, "crate::search::");
    for layer in SEARCH {
        // A file in the folder `search` itself would leave its layer with `super`; one in a folder below, with two.
        for (path, prefix) in [(format!("{layer}.rs"), "super::"), (format!("{layer}/mod.rs"), "super::")] {
            let Ok(text) = fs::read_to_string(search.join(&path)) else { continue };
            let text = code(&text);
            wrong.extend(first_words(&text, prefix).into_iter().map(|used| format!("{path}: `{prefix}{used}`")));
        }
    }
    let mut files = Vec::new();
    sources(&search, &mut files);
    for path in files.iter().filter(|path| path.components().count() == search.components().count() + 2) {
        let text = code(&fs::read_to_string(path).expect("a text"));
        wrong.extend(text.contains("super::super::").then(|| format!("{}: `super::super`", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Everything else asks the registry by functions, so that a table can change without a search through the engine.
#[test]
fn only_the_registry_contains_sql() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let relative = path.strip_prefix(&root).expect("a file of the engine").to_string_lossy().into_owned();
        if relative.starts_with("registry/") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a text");
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = SQL.iter().find(|word| line.contains(*word)) {
                wrong.push(format!("{relative}:{}: `{}` belongs into registry/", number + 1, word.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A façade with too many methods is an object that knows everything. What a value can decide alone is its own method.
#[test]
fn the_facade_stays_thin() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut elsewhere = Vec::new();
    let mut methods = 0;
    for path in files {
        let text = fs::read_to_string(&path).expect("a text");
        let has_impl = text.lines().any(|line| line.starts_with("impl") && line.ends_with(" Tine {"));
        if path == root.join("tine.rs") {
            assert!(has_impl, "the façade is in another file");
            let facade = text.split("\nimpl Tine {").skip(1).filter_map(|block| block.split("\n}").next());
            methods = facade.flat_map(str::lines).filter(|line| line.starts_with("    pub fn ")).count();
        } else if has_impl {
            elsewhere.push(path.display().to_string());
        }
    }
    assert!(elsewhere.is_empty(), "methods of `Tine` outside its own file: {}", elsewhere.join(", "));
    assert!((1..60).contains(&methods), "`Tine` has {methods} public methods");
}

#[test]
fn paths_are_found_in_braces_too() {
    let text = "use crate::{a::{B, C}, d};\nuse crate::e::F; crate::g::h()";
    assert_eq!(first_words(text, "crate::"), ["a", "d", "e", "g"]);
    assert_eq!(first_words("use crate::search::{query::Query, rank};", "crate::search::"), ["query", "rank"]);
    for attribute in ["#[cfg(test)]", "#[cfg(all(test, unix))]"] {
        assert_eq!(code(&format!("a // crate::b\n{attribute}\nmod tests {{\n    use crate::c;\n}}")), "a ");
    }
}
