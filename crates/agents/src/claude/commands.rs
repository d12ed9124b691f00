//! What Claude Code treats as a command when it is typed, whatever follows it.

use std::path::Path;

/// Its own commands (2.1.325), in order.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "add-dir", "advisor", "agents", "allowed-tools", "app", "artifacts", "auto-mode-setup", "autocompact",
    "autofix-pr", "background", "bashes", "bg", "branch", "brief", "btw", "bug", "cd", "checkpoint", "clear",
    "cloud-plugins", "color", "compact", "config", "context", "continue", "copy", "cost", "daemon", "debug",
    "design-consent", "design-login", "design-revoke", "desktop", "diff", "doctor", "effort", "exit", "export",
    "extra-usage", "fast", "feedback", "focus", "fork", "goal", "heapdump", "help", "hooks", "ide", "import", "init",
    "insights", "install", "install-github-app", "install-slack-app", "ios", "keybindings", "list-agents", "login",
    "logout", "loop", "loops", "mcp", "memory", "mobile", "model", "new", "output-style", "passes", "pause-memory",
    "permissions", "plan", "plugin", "plugins", "powerup", "pr-comments", "privacy-settings", "project", "quit",
    "radio", "rate-limit-options", "rc", "recap", "release-notes", "reload-plugins", "reload-skills",
    "remote-control", "remote-env", "rename", "reset", "restart", "resume", "review", "rewind", "sandbox",
    "scroll-speed", "security-review", "session", "settings", "setup-bedrock", "setup-vertex", "simplify",
    "skill-doctor", "skills", "stats", "status", "statusline", "stickers", "stop", "subtask", "tasks", "teleport",
    "terminal-setup", "theme", "think-back", "todos", "tp", "tui", "ultraplan", "ultrareview", "undo", "upgrade",
    "usage", "usage-credits", "use-case", "version", "vim", "voice", "web-setup", "wellbeing", "workflows",
];

/// Words that end it.
const ENDS: [&str; 6] = ["exit", "quit", ":q", ":q!", ":wq", ":wq!"];

/// Whether Claude Code would do something else with a text than say it.
pub(super) fn is_command(text: &str, config: &Path) -> bool {
    let text = text.trim();
    if ENDS.contains(&text) {
        return true;
    }
    let Some(word) = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next()) else {
        return false;
    };
    // A plugin's commands have its name before a colon; a person's are files.
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    COMMANDS.binary_search(&word).is_ok()
        || word.contains(':') && !word.contains('/')
        || is_plain
            && (config.join("commands").join(format!("{word}.md")).exists()
                || config.join("skills").join(word).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_as_a_command_is_known() {
        assert!(COMMANDS.is_sorted());
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("commands")).unwrap();
        std::fs::write(folder.path().join("commands/ship.md"), "").unwrap();
        let check = |text: &str, expected: bool| assert_eq!(is_command(text, folder.path()), expected, "{text}");
        check("/exit", true);
        check(" /clear the cache of the app", true);
        check("exit", true);
        check("/ship it", true);
        check("/tine:tine list", true);
        check("exit the loop early", false);
        check("/not-a-command", false);
        check("/etc/hosts is wrong", false);
        check("/../x", false);
        check("say /exit", false);
    }
}
