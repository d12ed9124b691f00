//! Which threads a process has open: those whose `thread-writer-locks/<id>.lock` is locked.
//!
//! Versions before the locks (0.140) are detected by the rollout that a process named `codex` has open.
//!
//! The locks are looked up in `/proc/locks` and never tried: if we held a lock for a moment, Codex would refuse the
//! thread. Whether an open thread is busy is in its transcript.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use transcript::SessionId;

use super::Codex;
use super::home::Name;
use crate::live::{ends_with_line, has_choices, with_closed_end};
use crate::process::{Terminal, has_word, name_of, terminals_of};
use crate::{ExitKey, Holder, Live, LiveSession, LiveState, Screen};

impl LiveState for Codex {
    fn live(&self) -> Live {
        live(self.home.root(), self.proc.as_deref())
    }

    fn live_session(&self, id: &SessionId) -> Option<LiveSession> {
        live_session(self.home.root(), self.proc.as_deref(), id)
    }

    fn reports_state(&self) -> bool {
        false
    }

    fn read_screen(&self, screen: &str) -> Screen {
        const TRUST: [&str; 2] = ["Trust this folder?", "Do you trust the contents of this directory?"];
        const PERMISSION: [&str; 2] =
            ["Would you like to run the following command", "Would you like to make the following edits"];
        let has_choices = has_choices(screen, '›');
        let shows = |all: &[&str]| has_choices && all.iter().any(|words| screen.contains(words));
        // The input line; choices of a dialog begin with a number.
        let is_input = |line: &str| {
            let rest = line.trim_start().strip_prefix('›')?.trim_start();
            Some(!rest.starts_with(|first: char| first.is_ascii_digit()))
        };
        match () {
            () if shows(&TRUST) => Screen::Asks("an answer to its folder trust prompt"),
            () if shows(&PERMISSION) => Screen::Asks("a permission"),
            () if ends_with_line(screen, "Browsing transcript") => Screen::Reading(ExitKey::Escape),
            () if screen.trim_start().starts_with("/ T R A N S C R I P T") => Screen::Reading(ExitKey::Q),
            // The model is below the input, once it is known.
            () if screen
                .lines()
                .skip_while(|line| is_input(line) != Some(true))
                .skip(1)
                .any(|line| line.contains(" · ")) =>
            {
                Screen::Ready
            }
            () => Screen::Unknown,
        }
    }

    fn as_plain_input(&self, text: &str) -> String {
        // Codex strips spaces before it checks for `!`, and would run the text after it in a shell; no visible prefix
        // helps.
        let text = with_closed_end(text);
        match text.trim_start().chars().next() {
            Some('/') => format!(" {text}"),
            Some('!') => format!("\u{200b}{text}"),
            _ => text,
        }
    }

    fn terminals(&self, variable: &str) -> Vec<Terminal> {
        self.proc.as_deref().map(|proc| terminals_of(proc, "codex", variable)).unwrap_or_default()
    }
}

fn live(root: &Path, proc: Option<&Path>) -> Live {
    let mut live = Live::default();
    let Some(proc) = proc else {
        live.weak = Some("without /proc, tine cannot see running Codex sessions");
        return live;
    };
    let folder = root.join("thread-writer-locks");
    let Ok(entries) = fs::read_dir(&folder) else {
        live.sessions = open_rollouts(root, proc);
        return live;
    };
    let Ok(locks) = fs::read_to_string(proc.join("locks")) else {
        live.weak = Some("/proc/locks is not readable, so tine cannot see running Codex sessions");
        return live;
    };
    let holders = holders(&locks);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else {
            continue;
        };
        let (Ok(id), Ok(metadata)) = (SessionId::new(id), entry.metadata()) else {
            continue;
        };
        if let Some(session) = holder_of(proc, &holders, &entry.path(), &metadata) {
            live.sessions.insert(id, session);
        }
    }
    live
}

/// The process that has one thread open.
fn live_session(root: &Path, proc: Option<&Path>, id: &SessionId) -> Option<LiveSession> {
    let proc = proc?;
    let folder = root.join("thread-writer-locks");
    if !folder.is_dir() {
        return open_rollouts(root, proc).remove(id);
    }
    let path = folder.join(format!("{id}.lock"));
    let metadata = fs::symlink_metadata(&path).ok()?;
    let locks = fs::read_to_string(proc.join("locks")).ok()?;
    holder_of(proc, &holders(&locks), &path, &metadata)
}

/// The process that holds the lock on a file.
fn holder_of(
    proc: &Path,
    holders: &HashMap<u64, Vec<Lock>>,
    path: &Path,
    metadata: &fs::Metadata,
) -> Option<LiveSession> {
    let holder = holders.get(&inode(metadata))?.iter().find(|holder| {
        // On some file systems (btrfs) the lock names another device than the file does.
        holder.device == device(metadata) || has_open(proc, holder.pid, path)
    })?;
    Some(LiveSession {
        pid: Some(holder.pid),
        holder: kind(proc, holder.pid),
        state: None,
        since: crate::process::began_at(proc, holder.pid),
        waiting_for: None,
        cwd: None,
        folders: Vec::new(),
    })
}

/// The threads whose rollout a process called `codex` has open.
fn open_rollouts(root: &Path, proc: &Path) -> HashMap<SessionId, LiveSession> {
    let mut open = HashMap::new();
    let Ok(root) = root.canonicalize() else {
        return open;
    };
    for process in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if !name_of(&process.path()).starts_with(b"codex") {
            continue;
        }
        for file in fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let Ok(path) = fs::read_link(file.path()) else {
                continue;
            };
            let thread = path.starts_with(&root).then(|| Name::of_path(&path)).flatten();
            if let Some(id) = thread.and_then(|name| SessionId::new(name.thread).ok()) {
                let since = crate::process::began_at(proc, pid);
                let holder = kind(proc, pid);
                let session = LiveSession {
                    pid: Some(pid),
                    holder,
                    state: None,
                    since,
                    waiting_for: None,
                    cwd: None,
                    folders: Vec::new(),
                };
                open.insert(id, session);
            }
        }
    }
    open
}

/// What a process is that has a thread open.
fn kind(proc: &Path, pid: u32) -> Holder {
    match has_word(proc, pid, "app-server") {
        false => Holder::Agent,
        true if has_word(proc, pid, "--managed-daemon") => Holder::Daemon,
        true => Holder::Server,
    }
}

/// A process that holds a lock.
struct Lock {
    pid: u32,
    /// Major and minor number.
    device: (u64, u64),
}

/// The holders of `flock` locks by inode. A line reads `3: FLOCK  ADVISORY  WRITE 19458 fe:00:10022679 0 EOF`; one that
/// waits for a lock has an arrow after its number.
fn holders(locks: &str) -> HashMap<u64, Vec<Lock>> {
    let mut holders: HashMap<u64, Vec<Lock>> = HashMap::new();
    for line in locks.lines() {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            continue;
        }
        let (Some(pid), Some(file)) = (words.nth(2), words.next()) else {
            continue;
        };
        let mut parts = file.split(':');
        let mut hex = || u64::from_str_radix(parts.next()?, 16).ok();
        let device = hex().zip(hex());
        let inode = parts.next().and_then(|inode| inode.parse::<u64>().ok());
        if let (Ok(pid), Some(device), Some(inode)) = (pid.parse(), device, inode) {
            holders.entry(inode).or_default().push(Lock { pid, device });
        }
    }
    holders
}

fn has_open(proc: &Path, pid: u32, path: &Path) -> bool {
    let files = fs::read_dir(proc.join(pid.to_string()).join("fd"));
    files.into_iter().flatten().flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == path))
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// The major and minor number of the device, as Linux packs them.
#[cfg(unix)]
fn device(metadata: &fs::Metadata) -> (u64, u64) {
    let device = std::os::unix::fs::MetadataExt::dev(metadata);
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    (major, minor & 0xffff_ffff)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

#[cfg(not(unix))]
fn device(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "01a1e0fe-7293-7442-aefc-f15b88018457";

    fn home() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let locks = folder.path().join("thread-writer-locks");
        fs::create_dir(&locks).unwrap();
        for name in [".coordination.lock", &format!("{THREAD}.lock"), "not-locked.lock", "other.txt"] {
            fs::write(locks.join(name), "").unwrap();
        }
        (folder, locks)
    }

    fn open_threads(live: &Live) -> Vec<(&str, Option<u32>)> {
        live.sessions.iter().map(|(id, session)| (id.as_str(), session.pid)).collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_locked_thread_is_open() {
        let (folder, locks) = home();
        let lock = fs::File::open(locks.join(format!("{THREAD}.lock"))).unwrap();
        let check = |expected: &[(&str, Option<u32>)]| {
            let proc = Some(Path::new("/proc"));
            assert_eq!(open_threads(&live(folder.path(), proc)), expected);
            let one = live_session(folder.path(), proc, &SessionId::new(THREAD).unwrap());
            assert_eq!(one.map(|session| session.pid), expected.first().map(|(_, pid)| *pid));
        };
        check(&[]);
        lock.lock().unwrap();
        check(&[(THREAD, Some(std::process::id()))]);
        lock.unlock().unwrap();
        check(&[]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_held_locks_of_the_same_file_count() {
        let (folder, locks) = home();
        let path = locks.join(format!("{THREAD}.lock"));
        let metadata = fs::metadata(&path).unwrap();
        let (inode, (major, minor)) = (inode(&metadata), device(&metadata));
        let proc = folder.path().join("proc");
        fs::create_dir_all(proc.join("77/fd")).unwrap();
        std::os::unix::fs::symlink(&path, proc.join("77/fd/3")).unwrap();
        let check = |lock: &str, expected: &[(&str, Option<u32>)]| {
            fs::write(proc.join("locks"), lock).unwrap();
            assert_eq!(open_threads(&live(folder.path(), Some(&proc))), expected, "{lock}");
        };
        check(&format!("3: FLOCK  ADVISORY  WRITE 5 {major:02x}:{minor:02x}:{inode} 0 EOF\n"), &[(THREAD, Some(5))]);
        check(&format!("3: -> FLOCK  ADVISORY  WRITE 5 {major:02x}:{minor:02x}:{inode} 0 EOF\n"), &[]);
        check(&format!("3: POSIX  ADVISORY  WRITE 5 {major:02x}:{minor:02x}:{inode} 0 EOF\n"), &[]);
        check(&format!("3: FLOCK  ADVISORY  WRITE 5 {:02x}:{minor:02x}:{inode} 0 EOF\n", major + 1), &[]);
        // Another device, but the process has the file open.
        check(
            &format!("3: FLOCK  ADVISORY  WRITE 77 {:02x}:{minor:02x}:{inode} 0 EOF\n", major + 1),
            &[(THREAD, Some(77))],
        );
        check("garbage\n\n1: FLOCK\n2: FLOCK ADVISORY WRITE x y\n3: FLOCK ADVISORY WRITE 1 a:b 0 EOF", &[]);
    }

    #[test]
    fn without_proc_nothing_is_claimed() {
        let (folder, _) = home();
        assert!(live(folder.path(), None).weak.is_some());
        assert!(live(folder.path(), Some(&folder.path().join("nowhere"))).weak.is_some());
        assert!(live(&folder.path().join("nowhere"), Some(folder.path())).weak.is_none());
    }
}
