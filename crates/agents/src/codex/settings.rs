//! Options of a launch as settings for `codex app-server`, which accepts the options of the terminal interface without
//! honouring them.

use super::options::LAUNCH_OPTIONS;

/// What a thread of the app-server is given for the options of a launch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadSettings {
    /// Options that the server itself takes.
    pub words: Vec<String>,
    pub model: Option<String>,
    pub approval: Option<String>,
    pub sandbox: Option<String>,
    /// An option that can't be honoured.
    pub unsupported: Option<String>,
}

/// Options that make no difference: they concern the terminal or the output of `codex exec`.
const WITHOUT_EFFECT: [&str; 5] = ["--skip-git-repo-check", "--json", "--color", "--no-alt-screen", "--no-daemon"];

impl ThreadSettings {
    pub(super) fn of(options: &[String]) -> Self {
        let mut settings = ThreadSettings::default();
        let given = LAUNCH_OPTIONS.read(options);
        for option in &given.kept {
            let mut words = option.words.clone();
            let glued = words
                .first()
                .and_then(|word| word.split_once('='))
                .map(|(flag, value)| [flag.to_owned(), value.to_owned()]);
            if let Some(glued) = glued {
                words = glued.to_vec();
            }
            let value = words.get(1).cloned();
            match words.first().map(String::as_str).unwrap_or_default() {
                "-m" | "--model" => settings.model = value,
                "-s" | "--sandbox" => settings.sandbox = value,
                "-a" | "--ask-for-approval" => settings.approval = value,
                "--dangerously-bypass-approvals-and-sandbox" | "--yolo" => {
                    settings.approval = Some("never".to_owned());
                    settings.sandbox = Some("danger-full-access".to_owned());
                }
                "-c" | "--config" => settings.words.extend(["-c".to_owned(), words[1..].join("=")]),
                "--enable" | "--disable" | "--strict-config" => settings.words.extend(words),
                flag if WITHOUT_EFFECT.contains(&flag) => {}
                flag => settings.unsupported = Some(flag.to_owned()),
            }
        }
        settings.unsupported = settings.unsupported.or_else(|| given.once.first().cloned());
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_settings() {
        let check = |options: &str, expected: ThreadSettings| {
            let words: Vec<String> = options.split(' ').map(str::to_owned).collect();
            assert_eq!(ThreadSettings::of(&words), expected, "{options}");
        };
        let text = |text: &str| Some(text.to_owned());
        let words = |words: &str| words.split(' ').map(str::to_owned).collect();
        let none = ThreadSettings::default;
        check("--json --skip-git-repo-check", none());
        check("-m big -s read-only", ThreadSettings { model: text("big"), sandbox: text("read-only"), ..none() });
        check(
            "--model=big --ask-for-approval=never",
            ThreadSettings { model: text("big"), approval: text("never"), ..none() },
        );
        let everything = ThreadSettings { approval: text("never"), sandbox: text("danger-full-access"), ..none() };
        check("--dangerously-bypass-approvals-and-sandbox", everything);
        check(
            "-c model_reasoning_effort=high",
            ThreadSettings { words: words("-c model_reasoning_effort=high"), ..none() },
        );
        check(
            "-c model_instructions_file=/a=b",
            ThreadSettings { words: words("-c model_instructions_file=/a=b"), ..none() },
        );
        check("--enable web", ThreadSettings { words: words("--enable web"), ..none() });
        for option in ["-p work", "--oss", "--search", "--add-dir /x", "-i a.png", "--new-thing"] {
            let words: Vec<String> = option.split(' ').map(str::to_owned).collect();
            assert_eq!(ThreadSettings::of(&words).unsupported.as_deref(), option.split(' ').next(), "{option}");
        }
    }
}
