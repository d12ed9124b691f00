//! What a snapshot leaves out by rule: files that hold secrets, and large ones.
//!
//! A file that git tracks and that is the same as in the index is part of the repository anyway, so the rules are for
//! files that a snapshot would add to it.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::workspace::git::objects::Mode;

/// Names of files that hold secrets, in small letters. `*` stands for anything at one end.
const SECRETS: [&str; 31] = [
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    "credentials",
    "credentials.*",
    "secrets.*",
    "client_secret*",
    "service-account*",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.asc",
    "*.gpg",
    "*.tfvars",
];

/// Ends of names that look like secrets and are there to be read.
const TEMPLATES: [&str; 6] = [".example", ".sample", ".template", ".dist", ".defaults", ".pub"];

/// Whether the name of a file says that it holds a secret.
pub(super) fn is_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let fits = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (_, Some(beginning)) => name.starts_with(beginning),
        _ => name == pattern,
    };
    SECRETS.iter().any(|pattern| fits(pattern)) && !TEMPLATES.iter().any(|end| name.ends_with(end))
}

/// Whether git refuses to have such a path in a tree: it would become part of a repository's own folder.
pub(crate) fn is_refused(path: &Path, mode: Mode) -> bool {
    let is = |part: &OsStr, name: &str| part.eq_ignore_ascii_case(name);
    path.components().any(|part| matches!(part, Component::Normal(part) if is(part, ".git")))
        || (mode == Mode::Symlink && path.file_name().is_some_and(|name| is(name, ".gitmodules")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for path in [".env", "app/.env.local", "prod.env", "ID_RSA", "tls/server.key", "a/credentials.json", "x.pem"] {
            assert!(is_secret(Path::new(path)), "{path}");
        }
        for path in ["env", ".env.example", "app/.env.sample", "id_rsa.pub", "keys.rs", "monkey", ".environment/x"] {
            assert!(!is_secret(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_path_into_a_repository_is_refused() {
        let refused = |path: &str, mode| is_refused(Path::new(path), mode);
        assert!(refused("a/.GIT/config", Mode::File) && refused(".gitmodules", Mode::Symlink));
        assert!(!refused(".gitmodules", Mode::File) && !refused("a/.gitignore", Mode::Symlink));
    }
}
