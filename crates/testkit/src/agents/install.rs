//! Finds the installed agents: npm packages under aliases such as `claude-2.1.325-linux-x64`; qmd; and a client of the
//! Model Context Protocol.
//!
//! `./test` installs into `agents-<hash of the lockfile>` below its cache. Any such directory with the right version
//! will do: what counts is the version that the package itself states.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

/// The native binary of an agent, such as `installed("claude", "2.1.325")`.
///
/// # Panics
/// When it is not installed: a test of a real agent fails rather than passes in silence.
pub fn installed(agent: &str, version: &str) -> PathBuf {
    let directories = install_directories("agents-");
    directories.iter().find_map(|directory| find(directory, agent, version)).unwrap_or_else(|| {
        panic!(
            "{agent} {version} is not installed below {}: run ./test once, it installs the agents that tests drive",
            cache_directory().display()
        )
    })
}

/// The qmd that is installed, and the Node.js that runs it where the machine's own may be too old.
///
/// # Panics
/// When it is not installed.
pub fn installed_qmd(version: &str) -> (PathBuf, Option<PathBuf>) {
    let found = install_directories("qmd-").into_iter().find_map(|directory| {
        let modules = directory.join("node_modules");
        let package = modules.join("@tobilu/qmd");
        let node = fs::read_dir(&modules).into_iter().flatten().flatten().map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("node-2") && name.ends_with(&platform())
        });
        states_version(&package, version).then(|| (package.join("bin/qmd"), node.map(|node| node.join("bin/node"))))
    });
    found.unwrap_or_else(|| {
        panic!("qmd {version} is not installed below {}: run ./test once", cache_directory().display())
    })
}

/// The directory in which the official client of the Model Context Protocol is installed.
///
/// # Panics
/// When it is not installed.
pub fn installed_mcp_client(version: &str) -> PathBuf {
    let package = |directory: &Path| directory.join("node_modules/@modelcontextprotocol/sdk");
    let found = install_directories("mcp-").into_iter().find(|directory| states_version(&package(directory), version));
    found.unwrap_or_else(|| {
        panic!("the MCP client {version} is not installed below {}: run ./test once", cache_directory().display())
    })
}

/// The directories that may hold what was installed under such a name.
fn install_directories(beginning: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache_directory()).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning));
    let mut directories: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    directories.sort();
    directories
}

/// `$TINE_TEST_CACHE`, or `tine-test` in the user's cache. `./test` has the same rule.
pub fn cache_directory() -> PathBuf {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("TINE_TEST_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("tine-test")))
        .or_else(|| from("HOME").map(|home| home.join(".cache").join("tine-test")))
        .expect("one of TINE_TEST_CACHE, XDG_CACHE_HOME and HOME is set")
}

fn find(directory: &Path, agent: &str, version: &str) -> Option<PathBuf> {
    let modules = directory.join("node_modules");
    // A package for Node.js is the same on every platform.
    let names = [format!("{agent}-{version}-{}", platform()), format!("{agent}-{version}")];
    let package = names.map(|name| modules.join(name)).into_iter().find(|package| states_version(package, version))?;
    match agent {
        "gemini" => Some(package.join("bundle/gemini.js")),
        "claude" => Some(package.join("claude")),
        "opencode" => Some(package.join("bin/opencode")).filter(|binary| binary.is_file()),
        _ => vendored(&package, agent),
    }
}

/// npm's name of this platform: `linux-x64`.
fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { env::consts::OS };
    let processor = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{system}-{processor}")
}

/// Codex's platform packages call themselves `0.166.0-linux-x64`.
fn states_version(package: &Path, version: &str) -> bool {
    let manifest = fs::read_to_string(package.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let stated = manifest["version"].as_str().unwrap_or_default();
    stated == version || stated.strip_prefix(version).is_some_and(|rest| rest == format!("-{}", platform()))
}

fn vendored(package: &Path, program: &str) -> Option<PathBuf> {
    let targets = fs::read_dir(package.join("vendor")).ok()?.flatten();
    targets.map(|target| target.path().join("bin").join(program)).find(|binary| binary.is_file())
}
