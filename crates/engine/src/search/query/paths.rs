//! File names in queries and in the index.

/// Whether the end of a name is a file extension.
pub(crate) fn is_extension(end: &str) -> bool {
    (1..=10).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The indexed form of a path.
pub(crate) fn normal_path(text: &str) -> String {
    let text = text.trim().to_lowercase().replace('\\', "/");
    text.trim_start_matches("./").trim_start_matches("~/").trim_matches('/').to_owned()
}
