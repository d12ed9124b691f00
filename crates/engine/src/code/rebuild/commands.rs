//! Which files a command may have changed, judged by its words. A command is harmless only if every part of it is known to be.

use std::path::{Component, Path, PathBuf};

/// What a command may have done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suspicion {
    /// It only reads.
    None,
    /// It could have done anything, but nothing says that it changed this file.
    Weak,
    /// It writes, and it names the file, a folder around it, or everything.
    Strong,
}

/// Commands that read files and print.
const READERS: [&str; 62] = [
    "[",
    "awk",
    "basename",
    "bat",
    "cat",
    "cd",
    "clear",
    "cmp",
    "column",
    "comm",
    "command",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "exit",
    "export",
    "false",
    "fd",
    "fgrep",
    "file",
    "find",
    "free",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "jq",
    "less",
    "locate",
    "ls",
    "md5sum",
    "nl",
    "od",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rg",
    "sed",
    "seq",
    "set",
    "sha256sum",
    "sleep",
    "stat",
    "tail",
    "test",
    "tree",
    "true",
    "type",
    "uname",
    "wc",
    "which",
    "whoami",
    "xxd",
];

/// What git does without touching the working tree's files.
const GIT_READERS: [&str; 26] = [
    "add",
    "blame",
    "branch",
    "cat-file",
    "commit",
    "config",
    "describe",
    "diff",
    "fetch",
    "for-each-ref",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "push",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "tag",
];

/// Words of commands that rewrite whatever they find.
const SWEEPING: [&str; 8] = ["--fix", "--write", "codemod", "format", "fmt", "generate", "lint-fix", "prettier"];

/// What `command`, run in `directory`, may have done to the file at `path`. Both paths are absolute.
pub(super) fn suspicion(command: &str, directory: &Path, path: &Path) -> Suspicion {
    parts(command).iter().map(|words| of_part(words, directory, path)).max().unwrap_or(Suspicion::None)
}

fn of_part(words: &[String], directory: &Path, path: &Path) -> Suspicion {
    let writes_to = words.iter().position(|word| word == ">").map(|at| &words[at + 1..]);
    let mut rest = words.iter().map(String::as_str).filter(|word| *word != ">");
    // Assignments, and programs that run another one.
    let program = rest.by_ref().find(|word| {
        let is_assignment =
            word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        !is_assignment
            && !matches!(*word, "sudo" | "time" | "nohup" | "nice" | "then" | "do" | "else" | "if" | "while" | "!")
    });
    let Some(program) = program else { return Suspicion::None };
    let program = program.rsplit('/').next().unwrap_or(program);
    let rest: Vec<&str> = rest.collect();
    if program == "xargs" {
        let told = rest.iter().skip_while(|word| word.starts_with('-')).map(|word| (*word).to_owned());
        return of_part(&told.chain(["*".to_owned()]).collect::<Vec<_>>(), directory, path);
    }
    let names_it = |words: &[&str]| words.iter().any(|word| names(word, directory, path));
    if let Some(targets) = writes_to
        && targets.iter().any(|word| names(word, directory, path))
    {
        return Suspicion::Strong;
    }
    let only_reads = match program {
        "git" => {
            let verb = rest.iter().find(|word| !word.starts_with('-')).copied().unwrap_or("help");
            if !GIT_READERS.contains(&verb) {
                return Suspicion::Strong;
            }
            true
        }
        "sed" => !rest.iter().any(|word| word.starts_with("-i") || word.starts_with("--in-place")),
        "awk" => !rest.contains(&"inplace"),
        "find" | "fd" => {
            !rest.iter().any(|word| matches!(*word, "-delete" | "-exec" | "-execdir" | "-ok" | "-x" | "-X"))
        }
        // It changes the mode, not what is in the file.
        "chmod" | "chown" | "mkdir" => true,
        program => READERS.contains(&program),
    };
    if only_reads {
        return Suspicion::None;
    }
    // Their first word is what to do, not a folder.
    let verb = matches!(program, "cargo" | "npm" | "npx" | "yarn" | "pnpm" | "go" | "make" | "just");
    let sweeps = SWEEPING.contains(&program) || rest.iter().any(|word| SWEEPING.contains(word));
    if sweeps || names_it(&rest[rest.len().min(usize::from(verb))..]) {
        return Suspicion::Strong;
    }
    // Scripts inside words may name anything.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if rest.iter().any(|word| word.contains(&*name)) { Suspicion::Strong } else { Suspicion::Weak }
}

/// The paths that the parts of a command name which do more than read.
pub(super) fn named_paths(command: &str, directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for words in parts(command) {
        let plain = |word: &&String| {
            !word.starts_with('-') && !word.contains(|c: char| c.is_whitespace() || "*?[$\"".contains(c))
        };
        for word in words.iter().filter(plain) {
            let path = normal(&directory.join(word));
            if of_part(&words, directory, &path) == Suspicion::Strong {
                paths.push(path);
            }
        }
    }
    paths
}

/// Whether a word names a file, a folder around it, or a pattern that it may match.
fn names(word: &str, directory: &Path, path: &Path) -> bool {
    let word = word.rsplit('=').next().unwrap_or(word);
    if word.is_empty() || word.starts_with('-') {
        return false;
    }
    if word.contains(&*path.file_name().unwrap_or_default().to_string_lossy()) {
        return true;
    }
    if word.contains(|c: char| c.is_whitespace() || c == '"') {
        return false;
    }
    let literal = match word.find(['*', '?', '[', '{', '$']) {
        Some(at) => &word[..word[..at].rfind('/').map_or(0, |slash| slash + 1)],
        None => word,
    };
    path.starts_with(normal(&directory.join(literal)))
}

/// A path without `.` and `..`, by its words alone.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// A command line in its simple commands, each as words. A redirection to a file is the word `>` before its target.
fn parts(command: &str) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut chars = command.chars().peekable();
    let end_word = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some('"'), '`') | (None, '`') => {
                end_word(&mut word, &mut words);
                parts.push(std::mem::take(&mut words));
            }
            (Some('"') | None, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                // Whatever it prints may be a path.
                word.push('*');
                end_word(&mut word, &mut words);
                parts.push(std::mem::take(&mut words));
            }
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => word.extend(chars.next().filter(|c| *c != '\n')),
            (None, '>') => {
                // `2>&1` and `>/dev/null` write no file.
                if word.chars().all(|c| c.is_ascii_digit()) || word == "&" {
                    word.clear();
                }
                end_word(&mut word, &mut words);
                while chars.next_if(|c| matches!(c, '>' | '|' | ' ')).is_some() {}
                if chars.next_if_eq(&'&').is_some() {
                    while chars.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
                    continue;
                }
                let target: String =
                    std::iter::from_fn(|| chars.next_if(|c| !c.is_whitespace() && !";|&)".contains(*c))).collect();
                if !target.starts_with("/dev/") {
                    words.extend([">".to_owned(), target.trim_matches(['"', '\'']).to_owned()]);
                }
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}') if c != '{' && c != '}' || word.is_empty() => {
                end_word(&mut word, &mut words);
                parts.push(std::mem::take(&mut words));
            }
            (None, c) if c.is_whitespace() => end_word(&mut word, &mut words),
            (None, c) => word.push(c),
        }
    }
    end_word(&mut word, &mut words);
    parts.push(words);
    parts.retain(|words| !words.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_judged_by_their_words() {
        let check = |command: &str, expected: Suspicion| {
            assert_eq!(suspicion(command, Path::new("/r"), Path::new("/r/src/auth/a.rs")), expected, "{command}");
        };
        for command in [
            "ls -la",
            "cat src/auth/a.rs | head",
            "git status && git diff src/auth/a.rs",
            "grep -rn x . 2>/dev/null",
            "sed -n 1,5p src/auth/a.rs",
            "cd src && rg fn 2>&1",
            "git add -A && git commit -m 'src/auth/a.rs'",
            "chmod +x src/auth/a.rs",
            "echo 'rm a.rs'",
            "X=1 wc -l src/auth/a.rs",
            "find . -name '*.rs'",
        ] {
            check(command, Suspicion::None);
        }
        for command in
            ["cargo test", "make", "python gen.py", "rm other.rs", "echo x > other.txt", "(cd docs; touch b.md)"]
        {
            assert!(
                suspicion(command, Path::new("/r"), Path::new("/r/src/auth/a.rs")) < Suspicion::Strong,
                "{command}"
            );
        }
        check("cargo test", Suspicion::Weak);
        for command in [
            "sed -i s/a/b/ src/auth/a.rs",
            "rm -rf src",
            "sed -i s/a/b/ src/*/*.rs",
            "echo x > src/auth/a.rs",
            "cat x >> src/auth/a.rs",
            "git checkout .",
            "git stash",
            "cargo fmt",
            "prettier --write .",
            "find . -exec rm {} +",
            "ls && mv b src/auth/a.rs",
            "python -c \"open('src/auth/a.rs','w')\"",
            "git -C x reset --hard",
            "tee /r/src/auth/a.rs",
            "rm -r /r/src",
            "perl -pi -e s/a/b/ $(git ls-files)",
            "git ls-files | xargs sed -i s/a/b/",
            "cd src/auth; sed -i s/a/b/ a.rs",
        ] {
            check(command, Suspicion::Strong);
        }
        let below = |command: &str| suspicion(command, Path::new("/r/src"), Path::new("/r/src/auth/a.rs"));
        assert_eq!(below("sed -i s/a/b/ auth/a.rs"), Suspicion::Strong);
        assert_eq!(below("rm -r ../src/auth"), Suspicion::Strong);
        assert_eq!(below("rm -r ../docs"), Suspicion::Weak);
    }
}
