//! What tine must know about an agent's command line to repeat a launch: which words are options, what follows each of
//! them, and which belong to one launch only.
//!
//! The tables match the agents' own help; tests compare them. An unknown option may have a value, because losing a
//! value is worse than keeping a word too many.

/// An agent's options that matter for a launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchOptions {
    /// Every option: its spellings, its values, its role.
    pub(crate) options: &'static [(&'static str, OptionValue, Role)],
    /// Commands that choose a session, which follows them.
    pub(crate) commands: &'static [(&'static str, Choice)],
    /// Options for a headless run.
    pub(crate) headless: &'static [&'static str],
    /// The option that skips permission prompts.
    pub skip_permissions: &'static str,
    /// All options with that effect.
    pub(crate) unasked: &'static [&'static str],
    /// The option for a settings file.
    pub settings: Option<&'static str>,
    /// The option for a system prompt file. If it ends with `=`, its value is in the same word.
    pub system_prompt: Option<&'static str>,
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionValue {
    /// Nothing.
    Nothing,
    /// A value, always.
    Value,
    /// A value, unless the next word is an option.
    MaybeValue,
    /// Every word up to the next option.
    Values,
}

/// The role of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Part of the session's launch, now and later.
    Kept,
    /// The same, and its values can be files.
    File,
    /// The same, and its value can be one of these keys with a file: `key=file`.
    FileOf(&'static [&'static str]),
    /// Only for the first launch.
    Once,
    /// Chooses a session or its directory, which is tine's task.
    Session(Choice),
}

/// What an option does with sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The id of a new one.
    NewId,
    /// Resume the given one, or the one that the user picks.
    Resume,
    /// Resume the newest one in this directory.
    Newest,
    /// Fork the resumed or the given one.
    Fork,
    /// Resume at an earlier message.
    Rewind,
    /// Its name in the agent's own list.
    Name,
    /// Its directory.
    Directory,
    /// Fetch it from somewhere else, such as the cloud.
    Fetch,
}

/// The classified words of a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Options to keep, each with its values.
    pub kept: Vec<GivenOption>,
    /// Options for one launch only.
    pub once: Vec<String>,
    /// Words that are not options: the first prompt.
    pub said: Vec<String>,
    /// Options that choose a session.
    pub chosen: Vec<Chosen>,
}

/// An option that chooses a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// What it chooses.
    pub choice: Choice,
    /// The option or command as typed.
    pub flag: String,
    /// Its value.
    pub value: Option<String>,
}

/// One option with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenOption {
    /// The words as typed. If values can be files, each is a separate word.
    pub words: Vec<String>,
    /// Its role.
    pub role: Role,
}

use OptionValue::{MaybeValue, Nothing, Value, Values};
use Role::{File, FileOf, Kept, Once, Session};

impl LaunchOptions {
    /// What follows an option, and its role.
    pub fn find(&self, flag: &str) -> Option<(OptionValue, Role)> {
        let found = self.options.iter().find(|(spellings, ..)| spellings.split(' ').any(|spelling| spelling == flag));
        found.map(|(_, takes, role)| (*takes, *role))
    }

    /// Whether a command line starts a headless run.
    pub fn is_headless(&self, args: &[String]) -> bool {
        let given = self.read(args);
        let words = given.once.iter().chain(given.said.first());
        words.into_iter().any(|word| self.headless.contains(&word.as_str()))
    }

    /// Splits kept options into those that keep permission prompts and those that skip them.
    pub fn split_by_permission(&self, args: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut asking, mut unasked) = (Vec::new(), Vec::new());
        for option in self.read(args).kept {
            let is_unasked = self.unasked.contains(&option.words.join(" ").replacen('=', " ", 1).as_str());
            if is_unasked { &mut unasked } else { &mut asking }.extend(option.words);
        }
        (asking, unasked)
    }

    /// Classifies the words of a command line.
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
                // Another short option follows in the same word: `-cp`.
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
            if let Session(choice) = role {
                given.chosen.push(Chosen { choice, flag, value: values.pop() });
                continue;
            }
            let is_apart = matches!(role, File | FileOf(_)) || !word.contains('=') || !flag.starts_with("--");
            let words = if is_apart { std::iter::once(flag).chain(values).collect() } else { vec![word] };
            match role {
                Once => given.once.extend(words),
                _ => given.kept.push(GivenOption { words, role }),
            }
        }
        let command = self.commands.iter().find(|(command, _)| said.first().is_some_and(|word| word == command));
        let mut said = said.into_iter();
        if let Some((_, choice)) = command {
            let flag = said.next().unwrap_or_default();
            given.chosen.insert(0, Chosen { choice: *choice, flag, value: said.next() });
        }
        given.said = said.chain(words).collect();
        given
    }

    /// An option and a value in the same word.
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
    use transcript::Agent;

    use super::Choice::{Fork, NewId, Newest, Resume};
    use super::*;
    use crate::about;

    fn check(agent: Agent, given: &str, kept: &str, once: &str, said: &str) {
        let words = |line: &str| line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let read = about(agent).options.read(&words(given));
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
    fn options_that_skip_permissions_are_told_apart() {
        let check = |agent, given: &str, asking: &str, unasked: &str| {
            let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
            let (left, right) = about(agent).options.split_by_permission(&words);
            assert_eq!((left.join(" ").as_str(), right.join(" ").as_str()), (asking, unasked), "{given}");
        };
        let skip = "--dangerously-skip-permissions";
        check(Agent::Claude, &format!("--model opus {skip}"), "--model opus", skip);
        check(Agent::Claude, "--permission-mode plan", "--permission-mode plan", "");
        let bypass = "--permission-mode=bypassPermissions";
        check(Agent::Claude, &format!("{bypass} --verbose"), "--verbose", bypass);
        check(Agent::Codex, "--yolo -m x", "-m x", "--yolo");
        check(Agent::Codex, "-anever -s workspace-write", "-s workspace-write", "-a never");
        check(Agent::Codex, "-c approval_policy=never -c a=b", "-c a=b", "-c approval_policy=never");
    }

    #[test]
    fn what_chooses_a_session_is_told_apart() {
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
        let chosen = |agent, line: &str| -> Vec<(Choice, String, Option<String>)> {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let chosen = about(agent).options.read(&words).chosen.into_iter();
            chosen.map(|chosen| (chosen.choice, chosen.flag, chosen.value)).collect()
        };
        let expect = |choice, flag: &str, value: Option<&str>| (choice, flag.to_owned(), value.map(str::to_owned));
        assert_eq!(
            chosen(Agent::Claude, "--model x -rabc -c"),
            [expect(Resume, "-r", Some("abc")), expect(Newest, "-c", None)]
        );
        assert_eq!(chosen(Agent::Claude, "--session-id=abc"), [expect(NewId, "--session-id", Some("abc"))]);
        assert_eq!(chosen(Agent::Codex, "-m x fork abc"), [expect(Fork, "fork", Some("abc"))]);
        assert_eq!(
            chosen(Agent::Codex, "resume --last"),
            [expect(Resume, "resume", None), expect(Newest, "--last", None)]
        );
        check(
            Agent::Codex,
            "-mfoo -c a=b -i one.png two.png --search",
            "-m foo -c a=b --search",
            "-i one.png two.png",
            "",
        );
    }
}
