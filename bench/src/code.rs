//! Snapshots of code: a clean tree and one with changes against `git status`, the hook that starts them against a program
//! that does nothing, and their space against ordinary commits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::build::ClaudeSession;

use crate::Bench;
use crate::measure::{in_turns, once, report};

const ID: &str = "33333333-3333-4333-8333-333333333333";
const SNAPSHOTS: u32 = 1000;

/// A home whose configuration asks for snapshots, with a repository in it.
struct Lab<'a> {
    bench: &'a Bench,
    home: PathBuf,
    repository: PathBuf,
    transcript: PathBuf,
    /// The size of the transcript after each turn.
    sizes: Vec<u64>,
}

impl<'a> Lab<'a> {
    fn new(bench: &'a Bench, name: &str, files: usize, turns: u32) -> Self {
        let home = bench.folder.join(name);
        let _ = fs::remove_dir_all(&home);
        let repository = home.join("app");
        fs::create_dir_all(home.join(".config/tine")).expect("a folder");
        fs::write(home.join(".config/tine/config.toml"), "[snapshots]\nenabled = true\n").expect("a configuration");
        for number in 0..files {
            let folder = repository.join(format!("{}/{}", number % 100, number / 100 % 20));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(format!("{number}.txt")), format!("line {number}\n").repeat(40)).expect("a file");
        }
        let (mut session, mut sizes, mut transcript) =
            (ClaudeSession::new(ID).cwd(&repository), Vec::new(), PathBuf::new());
        for number in 0..turns {
            session = session.turn(|turn| turn.prompt(format!("prompt {number}")).text("done"));
            if turns <= 10 || number + 1 == turns {
                transcript = session.write(&home.join(".claude"));
            }
        }
        // A record of a turn ends with its line, so every prompt begins where another turn has ended.
        let text = fs::read_to_string(&transcript).expect("a transcript");
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            if line.contains("\"prompt ") && offset > 0 {
                sizes.push(offset);
            }
            offset += line.len() as u64;
        }
        sizes.push(offset);
        let lab = Lab { bench, home, repository, transcript, sizes };
        lab.git(&["init", "--quiet"]);
        lab.git(&["add", "."]);
        lab.git(&["commit", "--quiet", "--message=first"]);
        lab
    }

    fn git(&self, words: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(&self.repository).args([
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.com",
            "-c",
            "gc.auto=0",
        ]);
        assert!(command.args(words).stdout(Stdio::null()).status().expect("git").success(), "{words:?}");
    }

    fn tine(&self) -> Command {
        let mut command = Command::new(&self.bench.tine);
        command.env_clear().env("HOME", &self.home).env("PATH", "/usr/bin:/bin:/usr/local/bin");
        command.current_dir(&self.repository);
        command
    }

    /// The process that a hook starts at the end of a turn.
    fn record(&self, turn: usize) -> Command {
        let request = format!(
            r#"{{"agent":"claude","session":"{ID}","transcript":"{}","size":{},"directory":null,"has_ended":true}}"#,
            self.transcript.display(),
            self.sizes[turn]
        );
        let mut command = self.tine();
        command.args(["record-code", &request]);
        command
    }

    fn status(&self) -> Command {
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "status", "--porcelain"]).current_dir(&self.repository);
        command
    }
}

pub(crate) fn run(bench: &Bench) {
    println!();
    for files in [20_000, 100_000] {
        let lab = Lab::new(bench, "code", files, 1);
        // Both know the files after the first time. Files that have just been written are looked at again by everybody.
        std::thread::sleep(Duration::from_millis(1100));
        lab.git(&["update-index", "--refresh"]);
        let first = once(&mut lab.record(0));
        let hashing = once(
            Command::new("sh")
                .args(["-c", "git ls-files | git hash-object --stdin-paths"])
                .current_dir(&lab.repository),
        );
        report(&format!("first snapshot of {files} files"), first.time, "git hash-object", hashing.time, None);
        std::thread::sleep(Duration::from_millis(100));
        once(&mut lab.record(0));
        let limits = if files == 20_000 { [Some(1.5), Some(2.0)] } else { [None, None] };
        let (floor, snapshot) = in_turns(15, || lab.status(), || lab.record(0));
        report(&format!("snapshot, {files} files, no change"), snapshot.time, "git status", floor.time, limits[0]);
        let mut number = 0;
        let (floor, snapshot) = in_turns(
            15,
            || lab.status(),
            || {
                for file in 0..10 {
                    number += 1;
                    fs::write(lab.repository.join(format!("{file}/0/{file}.txt")), format!("{number}\n"))
                        .expect("a file");
                }
                lab.record(0)
            },
        );
        report(&format!("snapshot, {files} files, 10 changed"), snapshot.time, "git status", floor.time, limits[1]);
        if files == 20_000 {
            hook(&lab);
        }
    }
    space(bench);
}

/// The hook at the end of a turn, which starts the process.
fn hook(lab: &Lab<'_>) {
    let payload = lab.home.join("payload.json");
    let text = format!(r#"{{"session_id":"{ID}","transcript_path":"{}","cwd":"/"}}"#, lab.transcript.display());
    fs::write(&payload, text).expect("a payload");
    let time = |mut command: Command| {
        command.stdin(fs::File::open(&payload).expect("the payload")).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        assert!(command.status().expect("the command").success());
        begun.elapsed()
    };
    let (mut floor, mut hook) = (Duration::MAX, Duration::MAX);
    for _ in 0..40 {
        for _ in 0..5 {
            floor = floor.min(time(Command::new("/bin/true")));
        }
        let mut command = lab.tine();
        command.args(["hook", "stop", "--agent", "claude"]);
        hook = hook.min(time(command));
        // The process that it started would disturb the next measure.
        std::thread::sleep(Duration::from_millis(500));
    }
    report("hook that starts a snapshot", hook, "/bin/true", floor, Some(3.0));
}

fn size(folder: &Path) -> Duration {
    let output = Command::new("du").args(["-sk"]).arg(folder).output().expect("du");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // As a duration, so that it is reported like the others: a kilobyte is a microsecond.
    Duration::from_micros(text.split_whitespace().next().and_then(|size| size.parse().ok()).expect("a size"))
}

/// As many snapshots as commits of the same trees.
fn space(bench: &Bench) {
    let recorded = Lab::new(bench, "code-snapshots", 300, SNAPSHOTS);
    let committed = Lab::new(bench, "code-commits", 300, 1);
    let before = [size(&recorded.repository.join(".git")), size(&committed.repository.join(".git"))];
    for turn in 0..SNAPSHOTS as usize {
        for file in 0..3 {
            let number = (turn * 7 + file * 31) % 300;
            let path = format!("{}/{}/{number}.txt", number % 100, number / 100 % 20);
            for lab in [&recorded, &committed] {
                let content = fs::read_to_string(lab.repository.join(&path)).expect("a file");
                fs::write(lab.repository.join(&path), format!("{content}turn {turn}\n")).expect("a file");
            }
        }
        once(&mut recorded.record(turn));
        committed.git(&["commit", "--quiet", "--all", "--message=x"]);
    }
    let refs = Command::new("git").args(["for-each-ref", "refs/tine"]).current_dir(&recorded.repository).output();
    let count = String::from_utf8_lossy(&refs.expect("git").stdout).lines().count();
    assert_eq!(count, SNAPSHOTS as usize);
    for (what, is_packed) in [("1,000 snapshots, KB", false), ("the same after git gc", true)] {
        if is_packed {
            recorded.git(&["gc", "--quiet"]);
            committed.git(&["gc", "--quiet"]);
        }
        let grown = |lab: &Lab<'_>, before: Duration| {
            size(&lab.repository.join(".git")).saturating_sub(if is_packed { Duration::ZERO } else { before })
        };
        let (snapshots, commits) = (grown(&recorded, before[0]), grown(&committed, before[1]));
        report(what, snapshots, "commits", commits, Some(1.3));
    }
}
