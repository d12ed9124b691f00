//! What tine must know of an agent's command line to launch it again the same way.

use transcript::Agent;

/// An agent's options, as far as they matter for a launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchOptions {
    /// Options that choose a session.
    pub session: &'static [(&'static str, Takes)],
    /// First words that choose a session, with the word behind them.
    pub commands: &'static [&'static str],
    /// Options whose value is a file.
    pub files: &'static [&'static str],
    /// The option for a file of settings.
    pub settings: Option<&'static str>,
    /// The option for a file with the system prompt. One that ends with `=` takes its value in the same word.
    pub system_prompt: Option<&'static str>,
}

/// What stands behind an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A value, always.
    Value,
    /// A value, unless the next word is an option.
    MaybeValue,
}

/// The options of an agent.
pub fn launch_options(agent: Agent) -> LaunchOptions {
    match agent {
        Agent::Claude => LaunchOptions {
            session: &[
                ("--session-id", Takes::Value),
                ("--resume", Takes::MaybeValue),
                ("-r", Takes::MaybeValue),
                ("--continue", Takes::Nothing),
                ("-c", Takes::Nothing),
                ("--fork-session", Takes::Nothing),
                ("--name", Takes::Value),
                ("-n", Takes::Value),
                ("--resume-session-at", Takes::Value),
            ],
            commands: &[],
            files: &["--settings", "--mcp-config", "--system-prompt-file", "--append-system-prompt-file"],
            settings: Some("--settings"),
            system_prompt: Some("--system-prompt-file"),
        },
        Agent::Codex => LaunchOptions {
            session: &[("--last", Takes::Nothing), ("--cd", Takes::Value), ("-C", Takes::Value)],
            commands: &["resume", "fork"],
            files: &[],
            settings: None,
            system_prompt: Some("-c model_instructions_file="),
        },
    }
}
