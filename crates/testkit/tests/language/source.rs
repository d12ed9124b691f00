//! Reads the product's source: its comments and its texts.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that are linked into tine.
pub const CRATES: [&str; 6] = ["agents", "diagnostics", "engine", "meaning", "tine", "transcript"];

/// A source file of the product, without its tests.
pub struct File {
    /// The crate.
    pub krate: &'static str,
    /// The path below `crates`, with slashes.
    pub path: String,
    /// The comments, one paragraph each.
    pub comments: Vec<String>,
    /// The string literals.
    pub texts: Vec<Text>,
}

/// A string literal.
pub struct Text {
    /// The code before it, up to the previous line but one.
    pub before: String,
    /// What is written between the quotes, with folded line breaks.
    pub text: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file of the product, sorted by path.
pub fn files() -> Vec<File> {
    let mut files = Vec::new();
    for krate in CRATES {
        let mut paths = Vec::new();
        collect(&root().join("crates").join(krate).join("src"), "rs", &mut paths);
        paths.sort();
        for path in paths {
            let source = fs::read_to_string(&path).expect("a source file");
            let product: Vec<&str> = source.lines().take_while(|line| line.trim() != "mod tests {").collect();
            let below = path.strip_prefix(root().join("crates")).expect("a path below the crates");
            let path = below.to_string_lossy().replace('\\', "/");
            let (comments, texts) = read(&product.join("\n"));
            files.push(File { krate, path, comments, texts });
        }
    }
    assert!(files.len() > 100, "too few source files to be true");
    files
}

/// All files below a folder with this extension, except those that are compiled only for tests.
pub fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_test = extension == "rs" && name.contains("test");
        if path.is_dir() && !is_test {
            collect(&path, extension, files);
        } else if !is_test && path.extension().is_some_and(|own| own == extension) {
            files.push(path);
        }
    }
}

/// The comments and the string literals of Rust code.
fn read(source: &str) -> (Vec<String>, Vec<Text>) {
    let (mut comments, mut texts): (Vec<String>, Vec<Text>) = (Vec::new(), Vec::new());
    let mut rest = source;
    let mut comment_goes_on = false;
    while let Some(first) = rest.chars().next() {
        let done = &source[..source.len() - rest.len()];
        if let Some(comment) = rest.strip_prefix("//") {
            let line = comment.lines().next().unwrap_or_default();
            let text = line.trim_start_matches(['/', '!']).trim();
            match comments.last_mut() {
                Some(last) if comment_goes_on && !text.is_empty() => *last = format!("{last} {text}"),
                _ => comments.push(text.to_owned()),
            }
            comment_goes_on = !text.is_empty();
            rest = &comment[line.len()..];
            continue;
        }
        comment_goes_on &= first.is_whitespace();
        let is_word = done.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_');
        let hashes = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
        if let Some(hashes) = hashes.filter(|hashes| !is_word && rest[1 + hashes..].starts_with('"')) {
            let text = &rest[hashes + 2..];
            let end = text.find(&format!("\"{}", "#".repeat(hashes))).expect("the end of a raw string");
            texts.push(Text { before: before(done), text: text[..end].replace('\n', "\\n") });
            rest = &text[end + 1 + hashes..];
        } else if let Some(text) = rest.strip_prefix('"') {
            let end = end_of(text);
            texts.push(Text { before: before(done), text: folded(&text[..end]) });
            rest = &text[end + 1..];
        } else if let Some(length) = length_of_char(rest) {
            rest = &rest[length..];
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    (comments, texts)
}

/// Where the quote is that ends a string.
fn end_of(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, character)| {
        let ends = *character == '"' && !escaped;
        escaped = *character == '\\' && !escaped;
        ends
    });
    end.expect("the end of a string").0
}

/// The length of a character literal; a lifetime has none.
fn length_of_char(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if inner.starts_with('\\') {
        return inner[2..].find('\'').map(|end| end + 4);
    }
    let length = inner.chars().next()?.len_utf8();
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// The two lines before a literal, the one that it is on included.
fn before(done: &str) -> String {
    let lines: Vec<&str> = done.rsplitn(3, '\n').take(2).collect();
    lines.into_iter().rev().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A literal without line breaks that Rust ignores.
fn folded(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |folded, part| folded + part.trim_start())
}
