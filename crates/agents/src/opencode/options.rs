//! The command line of OpenCode, as its own help describes it; tests compare the two.

use crate::options::Choice::{Directory, Fetch, Fork, Name, Newest, Resume};
use crate::options::LaunchOptions;
use crate::options::OptionValue::{Nothing, Value, Values};
use crate::options::Role::{Kept, Once, Session};
use crate::options::{OptionValue, Role};

/// What tine has to know about it.
pub(super) const LAUNCH_OPTIONS: LaunchOptions = LaunchOptions {
    options: OPTIONS,
    commands: &[],
    headless: &["run"],
    skip_permissions: "--auto",
    unasked: &["--auto"],
    settings: None,
    system_prompt: None,
};

/// OpenCode 1.18.33: `opencode` and `opencode run`.
const OPTIONS: &[(&str, OptionValue, Role)] = &[
    ("-s --session", Value, Session(Resume)),
    ("-c --continue", Nothing, Session(Newest)),
    ("--fork", Nothing, Session(Fork)),
    ("--title", Value, Session(Name)),
    ("--dir", Value, Session(Directory)),
    ("--attach", Value, Session(Fetch)),
    ("--prompt", Value, Once),
    ("-f --file", Values, Once),
    ("--command", Value, Once),
    ("--share", Nothing, Once),
    ("--format", Value, Once),
    ("-i --interactive", Nothing, Once),
    ("-p --password", Value, Once),
    ("-u --username", Value, Once),
    ("-h --help", Nothing, Once),
    ("-v --version", Nothing, Once),
    ("--port", Value, Once),
    ("--hostname", Value, Once),
    ("--mdns", Nothing, Once),
    ("--mdns-domain", Value, Once),
    ("--cors", Values, Once),
    ("-m --model", Value, Kept),
    ("--variant", Value, Kept),
    ("--agent", Value, Kept),
    ("--auto", Nothing, Kept),
    ("--mini", Nothing, Kept),
    ("--no-replay", Nothing, Kept),
    ("--replay-limit", Value, Kept),
    ("--thinking", Nothing, Kept),
    ("--pure", Nothing, Kept),
    ("--print-logs", Nothing, Kept),
    ("--log-level", Value, Kept),
];
