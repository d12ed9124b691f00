//! The command line of Codex, as its own help describes it; tests compare the two.

use crate::options::Choice::{Directory, Fork, Newest, Resume};
use crate::options::LaunchOptions;
use crate::options::OptionValue::{Nothing, Value, Values};
use crate::options::Role::{File, FileOf, Kept, Once, Session};
use crate::options::{OptionValue, Role};

/// What tine has to know about it.
pub(super) const LAUNCH_OPTIONS: LaunchOptions = LaunchOptions {
    options: OPTIONS,
    commands: &[("resume", Resume), ("fork", Fork)],
    headless: &["exec", "app-server"],
    skip_permissions: "--dangerously-bypass-approvals-and-sandbox",
    unasked: &[
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
        "-a never",
        "--ask-for-approval never",
        "-s danger-full-access",
        "--sandbox danger-full-access",
        "-c approval_policy never",
        "--config approval_policy never",
        "-c sandbox_mode danger-full-access",
        "--config sandbox_mode danger-full-access",
    ],
    settings: None,
    system_prompt: Some("-c model_instructions_file="),
};

/// Codex 0.140 and 0.166: `codex`, `codex resume` and `codex exec`.
const OPTIONS: &[(&str, OptionValue, Role)] = &[
    ("--last", Nothing, Session(Newest)),
    ("--all", Nothing, Session(Resume)),
    ("--include-non-interactive", Nothing, Session(Resume)),
    ("-C --cd", Value, Session(Directory)),
    ("-i --image", Values, Once),
    ("--worktree", Nothing, Once),
    ("-h --help", Nothing, Once),
    ("-V --version", Nothing, Once),
    ("-c --config", Value, FileOf(&["model_instructions_file", "experimental_instructions_file"])),
    ("--output-schema", Value, File),
    ("--enable", Value, Kept),
    ("--disable", Value, Kept),
    ("--remote", Value, Kept),
    ("--remote-auth-token-env", Value, Kept),
    ("-m --model", Value, Kept),
    ("--local-provider", Value, Kept),
    ("-p --profile", Value, Kept),
    ("-s --sandbox", Value, Kept),
    ("--add-dir", Value, Kept),
    ("-a --ask-for-approval", Value, Kept),
    ("--thread-source", Value, Kept),
    ("--cyber-access-program", Value, Kept),
    ("--color", Value, Kept),
    ("-o --output-last-message", Value, Kept),
    ("--approve-for-me", Nothing, Kept),
    ("--dangerously-bypass-approvals-and-sandbox", Nothing, Kept),
    ("--dangerously-bypass-hook-trust", Nothing, Kept),
    ("--ephemeral", Nothing, Kept),
    ("--ignore-rules", Nothing, Kept),
    ("--ignore-user-config", Nothing, Kept),
    ("--json", Nothing, Kept),
    ("--no-alt-screen", Nothing, Kept),
    ("--no-daemon", Nothing, Kept),
    ("--oss", Nothing, Kept),
    ("--search", Nothing, Kept),
    ("--skip-git-repo-check", Nothing, Kept),
    ("--strict-config", Nothing, Kept),
];
