//! The command line of Gemini CLI, as its own help describes it; tests compare the two.

use crate::options::Choice::{Directory, Fork, NewId, Resume};
use crate::options::LaunchOptions;
use crate::options::OptionValue::{MaybeValue, Nothing, Value, Values};
use crate::options::Role::{File, Kept, Once, Session};
use crate::options::{OptionValue, Role};

/// What tine has to know about it.
pub(super) const LAUNCH_OPTIONS: LaunchOptions = LaunchOptions {
    options: OPTIONS,
    commands: &[],
    headless: &["-p", "--prompt"],
    skip_permissions: "--yolo",
    unasked: &["-y", "--yolo", "--approval-mode yolo"],
    settings: None,
    system_prompt: None,
};

/// Gemini CLI 0.61.0.
const OPTIONS: &[(&str, OptionValue, Role)] = &[
    ("-r --resume", MaybeValue, Session(Resume)),
    ("--session-file", Value, Session(Fork)),
    ("--session-id", Value, Session(NewId)),
    ("-w --worktree", MaybeValue, Session(Directory)),
    ("-p --prompt", Value, Once),
    ("-i --prompt-interactive", Value, Once),
    ("--acp", Nothing, Once),
    ("--experimental-acp", Nothing, Once),
    ("-l --list-extensions", Nothing, Once),
    ("--list-sessions", Nothing, Once),
    ("--delete-session", Value, Once),
    ("-o --output-format", Value, Once),
    ("-v --version", Nothing, Once),
    ("-h --help", Nothing, Once),
    ("-d --debug", Nothing, Kept),
    ("-m --model", Value, Kept),
    ("--skip-trust", Nothing, Kept),
    ("-s --sandbox", Nothing, Kept),
    ("-y --yolo", Nothing, Kept),
    ("--approval-mode", Value, Kept),
    ("--policy", Values, File),
    ("--admin-policy", Values, File),
    ("--allowed-mcp-server-names", Values, Kept),
    ("--allowed-tools", Values, Kept),
    ("-e --extensions", Values, Kept),
    ("--include-directories", Values, File),
    ("--screen-reader", Nothing, Kept),
    ("--raw-output", Nothing, Kept),
    ("--accept-raw-output-risk", Nothing, Kept),
];
