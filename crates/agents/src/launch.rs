//! What tine must know of an agent's command line to launch it again the same way: which words are options, what stands
//! behind each of them, and which of them are said once.
//!
//! The tables are what the agents' own help says; tests compare them with it. An option that is not in them may have a
//! value, because losing one would be worse than keeping a word too many.

use transcript::Agent;

/// An agent's options, as far as they matter for a launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchOptions {
    /// Every option: its spellings, what stands behind it, what it is for.
    options: &'static [(&'static str, Takes, Role)],
    /// First words that choose a session, with the word behind them.
    commands: &'static [&'static str],
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
    /// Every word up to the next option.
    Values,
}

/// What an option is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// How the session is launched, now and later.
    Kept,
    /// The same, and its values may be files.
    File,
    /// The same, and its value may be one of these keys with a file: `key=file`.
    FileOf(&'static [&'static str]),
    /// It belongs to the first launch alone.
    Once,
    /// It chooses a session or its directory, which tine does.
    Session,
}

/// Words of a command line, told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Options that are kept, each with its values.
    pub kept: Vec<GivenOption>,
    /// Words of options that belong to one launch alone.
    pub once: Vec<String>,
    /// Words that are no options: what is said first.
    pub said: Vec<String>,
}

/// One option with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// The words, as they were given. Where values may be files, each is a word of its own.
    pub words: Vec<String>,
    /// What it is for.
    pub role: Role,
}

use Role::{File, FileOf, Kept, Once, Session};
use Takes::{MaybeValue, Nothing, Value, Values};

/// The options of an agent.
pub fn launch_options(agent: Agent) -> LaunchOptions {
    match agent {
        Agent::Claude => LaunchOptions {
            options: CLAUDE,
            commands: &[],
            settings: Some("--settings"),
            system_prompt: Some("--system-prompt-file"),
        },
        Agent::Codex => LaunchOptions {
            options: CODEX,
            commands: &["resume", "fork"],
            settings: None,
            system_prompt: Some("-c model_instructions_file="),
        },
    }
}

/// Claude Code 2.1.197 and 2.1.325, and those that their help does not show.
const CLAUDE: &[(&str, Takes, Role)] = &[
    ("--session-id", Value, Session),
    ("-r --resume", MaybeValue, Session),
    ("-c --continue", Nothing, Session),
    ("--fork-session", Nothing, Session),
    ("-n --name", Value, Session),
    ("--resume-session-at", Value, Session),
    ("--rewind-files", Value, Session),
    ("--from-pr", MaybeValue, Session),
    ("--teleport", MaybeValue, Session),
    ("--cloud", MaybeValue, Session),
    ("--environment", Value, Session),
    ("-p --print", Nothing, Once),
    ("-w --worktree", MaybeValue, Once),
    ("--tmux", Nothing, Once),
    ("--bg --background", Nothing, Once),
    ("--desktop", Nothing, Once),
    ("--prefill", Value, Once),
    ("--init", Nothing, Once),
    ("--init-only", Nothing, Once),
    ("--maintenance", Nothing, Once),
    ("-h --help", Nothing, Once),
    ("-v --version", Nothing, Once),
    ("--settings", Value, File),
    ("--mcp-config", Values, File),
    ("--system-prompt-file", Value, File),
    ("--append-system-prompt-file", Value, File),
    ("--append-subagent-system-prompt-file", Value, File),
    ("--agents", Value, File),
    ("--add-dir", Values, Kept),
    ("--allowedTools --allowed-tools", Values, Kept),
    ("--disallowedTools --disallowed-tools", Values, Kept),
    ("--tools", Values, Kept),
    ("--betas", Values, Kept),
    ("--channels", Values, Kept),
    ("--file", Values, Kept),
    ("-d --debug", MaybeValue, Kept),
    ("--prompt-suggestions", MaybeValue, Kept),
    ("--remote-control", MaybeValue, Kept),
    ("--advisor", Value, Kept),
    ("--agent", Value, Kept),
    ("--append-subagent-system-prompt", Value, Kept),
    ("--append-system-prompt", Value, Kept),
    ("--autocompact", Value, Kept),
    ("--debug-file", Value, Kept),
    ("--effort", Value, Kept),
    ("--fallback-model", Value, Kept),
    ("--input-format", Value, Kept),
    ("--json-schema", Value, Kept),
    ("--managed-settings", Value, Kept),
    ("--max-budget-usd", Value, Kept),
    ("--max-thinking-tokens", Value, Kept),
    ("--max-turns", Value, Kept),
    ("--model", Value, Kept),
    ("--output-format", Value, Kept),
    ("--permission-mode", Value, Kept),
    ("--permission-prompt-tool", Value, Kept),
    ("--permission-prompts", Value, Kept),
    ("--plugin-dir", Value, Kept),
    ("--plugin-dir-no-mcp", Value, Kept),
    ("--plugin-url", Value, Kept),
    ("--project-config-root", Value, Kept),
    ("--remote-control-session-name-prefix", Value, Kept),
    ("--setting-sources", Value, Kept),
    ("--system-prompt", Value, Kept),
    ("--system-prompt-snapshot", Value, Kept),
    ("--thinking", Value, Kept),
    ("--allow-dangerously-skip-permissions", Nothing, Kept),
    ("--ax-screen-reader", Nothing, Kept),
    ("--bare", Nothing, Kept),
    ("--brief", Nothing, Kept),
    ("--chrome", Nothing, Kept),
    ("--dangerously-skip-permissions", Nothing, Kept),
    ("--disable-slash-commands", Nothing, Kept),
    ("--exclude-dynamic-system-prompt-sections", Nothing, Kept),
    ("--forward-subagent-text", Nothing, Kept),
    ("--ide", Nothing, Kept),
    ("--include-hook-events", Nothing, Kept),
    ("--include-partial-messages", Nothing, Kept),
    ("--no-chrome", Nothing, Kept),
    ("--no-session-persistence", Nothing, Kept),
    ("--replay-user-messages", Nothing, Kept),
    ("--restricted", Nothing, Kept),
    ("--safe-mode", Nothing, Kept),
    ("--strict-mcp-config", Nothing, Kept),
    ("--verbose", Nothing, Kept),
];

/// Codex 0.140 and 0.166: `codex`, `codex resume` and `codex exec`.
const CODEX: &[(&str, Takes, Role)] = &[
    ("--last", Nothing, Session),
    ("--all", Nothing, Session),
    ("--include-non-interactive", Nothing, Session),
    ("-C --cd", Value, Session),
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

impl LaunchOptions {
    /// What stands behind an option, and what it is for.
    pub fn find(&self, flag: &str) -> Option<(Takes, Role)> {
        let found = self.options.iter().find(|(spellings, ..)| spellings.split(' ').any(|spelling| spelling == flag));
        found.map(|(_, takes, role)| (*takes, *role))
    }

    /// Tells the words of a command line apart.
    pub fn read(&self, args: &[String]) -> Given {
        let (mut given, mut said) = (Given::default(), Vec::new());
        let mut words = args.iter().cloned().collect::<std::collections::VecDeque<_>>();
        while let Some(word) = words.pop_front() {
            if word == "--" {
                break;
            }
            if !is_option(&word) {
                said.push(word);
                continue;
            }
            let (flag, glued) = self.split(&word);
            let (takes, role) = self.find(&flag).unwrap_or((MaybeValue, Kept));
            let mut values = Vec::new();
            match (takes, glued) {
                // Another short option is glued to this one: `-cp`.
                (Nothing, Some(rest)) if !flag.starts_with("--") => words.push_front(format!("-{rest}")),
                (_, Some(value)) => values.push(value),
                (Nothing, None) => {}
                (Value, None) => values.extend(words.pop_front()),
                (MaybeValue, None) => values.extend(words.pop_front_if(|word| !is_option(word))),
                (Values, None) => {
                    while let Some(value) = words.pop_front_if(|word| !is_option(word)) {
                        values.push(value);
                    }
                }
            }
            let is_apart = matches!(role, File | FileOf(_)) || !word.contains('=') || !flag.starts_with("--");
            let words = if is_apart { std::iter::once(flag).chain(values).collect() } else { vec![word] };
            match role {
                Session => {}
                Once => given.once.extend(words),
                _ => given.kept.push(GivenOption { words, role }),
            }
        }
        let chooses = said.first().is_some_and(|word| self.commands.contains(&word.as_str()));
        given.said = said.into_iter().skip(if chooses { 2 } else { 0 }).chain(words).collect();
        given
    }

    /// An option and what is glued to it.
    fn split(&self, word: &str) -> (String, Option<String>) {
        if word.starts_with("--") {
            let (flag, value) = word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
            return (flag.to_owned(), value.map(str::to_owned));
        }
        let end = word.char_indices().nth(2).map_or(word.len(), |(end, _)| end);
        match (self.find(&word[..end]), &word[end..]) {
            (Some(_), rest) if !rest.is_empty() => {
                (word[..end].to_owned(), Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()))
            }
            _ => (word.to_owned(), None),
        }
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(agent: Agent, given: &str, kept: &str, once: &str, said: &str) {
        let words = |line: &str| line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let read = launch_options(agent).read(&words(given));
        let found: Vec<String> = read.kept.into_iter().flat_map(|option| option.words).collect();
        assert_eq!((found, read.once, read.said), (words(kept), words(once), words(said)), "{given}");
    }

    #[test]
    fn options_are_told_from_what_is_said() {
        let check = |given, kept, once, said| check(Agent::Claude, given, kept, once, said);
        check("--model opus words", "--model opus", "", "words");
        check("words --verbose", "--verbose", "", "words");
        check("--mcp-config a.json b.json --verbose", "--mcp-config a.json b.json --verbose", "", "");
        check("--mcp-config=a.json b.json", "--mcp-config a.json", "", "b.json");
        check("--model=opus --settings={\"a\":\"b=c\"}", "--model=opus --settings {\"a\":\"b=c\"}", "", "");
        check("--model opus -- --words -x", "--model opus", "", "--words -x");
        check("--debug --verbose", "--debug --verbose", "", "");
        check("--not-yet-known value words", "--not-yet-known value", "", "words");
        check("-w tree -p words", "", "-w tree -p", "words");
        check("-", "", "", "-");
        check("--model", "--model", "", "");
    }

    #[test]
    fn what_chooses_a_session_goes() {
        for given in [
            "--session-id abc --model opus",
            "--session-id=abc --model opus",
            "--resume abc --model opus",
            "--resume --model opus",
            "-r abc -c --continue --fork-session --model opus",
            "--resume=abc --fork-session --model opus",
            "-rabc --model opus",
            "-r=abc --model opus",
            "--continue=true -n name --from-pr 3 --model opus",
        ] {
            check(Agent::Claude, given, "--model opus", "", "");
        }
        check(Agent::Claude, "-cp words", "", "-p", "words");
        check(Agent::Claude, "--verbose -- --resume x", "--verbose", "", "--resume x");
        check(Agent::Codex, "resume abc --model x", "--model x", "", "");
        check(Agent::Codex, "resume --last --model x", "--model x", "", "");
        check(Agent::Codex, "--model x resume abc -Cdir -C=dir", "--model x", "", "");
        check(
            Agent::Codex,
            "-mfoo -c a=b -i one.png two.png --search",
            "-m foo -c a=b --search",
            "-i one.png two.png",
            "",
        );
    }
}
