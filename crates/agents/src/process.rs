//! Information about processes, from `/proc` if it exists.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Whether `pid` runs and, where `started` is given, is still the process that began then.
///
/// `started` is field 22 of `/proc/<pid>/stat`: a number that is given again to another process has another start.
pub(crate) fn is_running(proc: &Path, pid: u32, started: Option<&str>) -> bool {
    running_since(proc, pid).is_some_and(|begun| started.is_none_or(|started| begun == started))
}

/// When a process started, in the system's own unit; `None` if it does not run or the system does not report it.
pub fn process_start(pid: u32) -> Option<String> {
    running_since(Path::new("/proc"), pid)
}

/// When a running process started. If its main thread has ended, it still runs as long as others do: its files and
/// locks are released with the last one.
fn running_since(proc: &Path, pid: u32) -> Option<String> {
    let (state, start) = state_and_start(proc, pid)?;
    let has_ended = matches!(state.as_str(), "Z" | "X");
    let others = || fs::read_dir(proc.join(pid.to_string()).join("task")).is_ok_and(|tasks| tasks.count() > 1);
    (!has_ended || others()).then_some(start)
}

/// The state and start time of a process. The program's name is in parentheses and may contain anything, so fields are
/// counted after the last one.
fn state_and_start(proc: &Path, pid: u32) -> Option<(String, String)> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.to_owned(), fields.nth(18)?.to_owned()))
}

/// When a process began, in nanoseconds since 1970, to a few hundredths of a second.
pub(crate) fn began_at(proc: &Path, pid: u32) -> Option<i64> {
    /// How many ticks the system counts a second; the same on every Linux.
    const TICKS: f64 = 100.0;
    let ticks: f64 = state_and_start(proc, pid)?.1.parse().ok()?;
    let uptime: f64 = fs::read_to_string(proc.join("uptime")).ok()?.split_ascii_whitespace().next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(((now.as_secs_f64() - uptime + ticks / TICKS) * 1e9) as i64)
}

/// The process that runs a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Runner {
    /// An agent, directly or through a shell.
    Agent {
        /// Its process.
        pid: u32,
        /// When that began.
        start: String,
        /// Its command line.
        words: Vec<String>,
    },
    /// A daemon runs many sessions. Its environment is that of the process that started it.
    Daemon,
    /// The system does not report it.
    #[default]
    Unknown,
}

/// The process that runs this one.
#[cfg(unix)]
pub fn runner() -> Runner {
    found_runner().unwrap_or_default()
}

#[cfg(unix)]
fn found_runner() -> Option<Runner> {
    const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "env", "busybox"];
    let proc = Path::new("/proc");
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..6 {
        let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        let (head, fields) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1;
        let mut fields = fields.split_ascii_whitespace();
        let parent: u32 = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(17)?.to_owned();
        if !SHELLS.contains(&name) {
            let words = fs::read(proc.join(pid.to_string()).join("cmdline")).unwrap_or_default();
            let words = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
            let words: Vec<String> = words.collect();
            return match words.iter().any(|word| word == "app-server") {
                true => Some(Runner::Daemon),
                false => (pid > 1).then_some(Runner::Agent { pid, start, words }),
            };
        }
        pid = parent;
    }
    None
}

/// Unknown without `/proc`.
#[cfg(not(unix))]
pub fn runner() -> Runner {
    Runner::Unknown
}

/// Other processes that work in `directory`, or that have `word` on their command line. Children of an ended process
/// continue without it.
pub fn processes_with(proc: &Path, directory: Option<&Path>, word: &OsStr) -> Vec<u32> {
    others(proc, |path| {
        holds(&path.join("cmdline"), word.as_encoded_bytes())
            || directory
                .is_some_and(|directory| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
    })
}

/// Other processes that work in `directory`.
pub fn processes_in(proc: &Path, directory: &Path) -> Vec<u32> {
    others(proc, |path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
}

/// Other processes that have a variable in their environment, with that value.
pub fn processes_marked(proc: &Path, variable: &str, value: &str) -> Vec<u32> {
    let mark = format!("{variable}={value}");
    others(proc, |path| holds(&path.join("environ"), mark.as_bytes()))
}

/// A program that runs on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    /// Where it works.
    pub directory: PathBuf,
    /// The value of the requested environment variable.
    pub mark: Option<String>,
}

/// The name of a process, of which the system keeps no more than 15 bytes. Every listing reads it for all processes, so
/// it is read in one call.
pub(crate) fn name_of(process: &Path) -> Vec<u8> {
    let mut name = [0; 64];
    let read = fs::File::open(process.join("comm")).and_then(|mut file| file.read(&mut name));
    name[..read.unwrap_or(0)].to_vec()
}

/// The programs of this name that run on a terminal.
pub(crate) fn terminals_of(proc: &Path, program: &str, variable: &str) -> Vec<Terminal> {
    let found = others(proc, |path| name_of(path).trim_ascii_end() == program.as_bytes());
    let found = found.into_iter().filter(|pid| tty_of(proc, *pid).is_some());
    let terminal = |pid: u32| {
        let path = proc.join(pid.to_string());
        Some(Terminal { directory: fs::read_link(path.join("cwd")).ok()?, mark: variable_of(proc, pid, variable) })
    };
    found.filter_map(terminal).collect()
}

/// A variable in the environment of a process; `None` if it is empty.
pub fn variable_of(proc: &Path, pid: u32, variable: &str) -> Option<String> {
    let environment = fs::read(proc.join(pid.to_string()).join("environ")).ok()?;
    let mark = format!("{variable}=");
    let value = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(mark.as_bytes()))?;
    String::from_utf8(value.to_vec()).ok().filter(|value| !value.is_empty())
}

/// Whether a process is another one, or was started by it or by one that it started.
pub fn is_below(proc: &Path, pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    for _ in 0..64 {
        if at == ancestor {
            return true;
        }
        match stat_field(proc, at, 1).and_then(|parent| parent.parse().ok()) {
            Some(parent) if parent > 1 => at = parent,
            _ => return false,
        }
    }
    false
}

/// The terminal that a process runs on.
pub fn tty_of(proc: &Path, pid: u32) -> Option<PathBuf> {
    let number: u32 = stat_field(proc, pid, 4)?.parse().ok()?;
    let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
    // Pseudo-terminals have eight majors of 256 minors each, or one with many.
    (136..144).contains(&major).then(|| PathBuf::from(format!("/dev/pts/{}", (major - 136) * 256 + minor)))
}

/// A field of a process's state; 0 is the one after its name.
fn stat_field(proc: &Path, pid: u32, field: usize) -> Option<String> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(field).map(str::to_owned)
}

/// The files that a process has open to write to them.
pub fn written_files(proc: &Path, pid: u32) -> Vec<PathBuf> {
    let process = proc.join(pid.to_string());
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let is_written = |number: &OsStr| {
        let info = fs::read_to_string(process.join("fdinfo").join(number)).unwrap_or_default();
        let mut flags = info.lines().filter_map(|line| line.strip_prefix("flags:"));
        let flags = flags.next().and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & 0o3 != 0)
    };
    open.filter(|entry| is_written(&entry.file_name())).filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

/// The processes that a process started, and those that they started, each with when it began.
pub(crate) fn descendants(proc: &Path, ancestor: u32) -> Vec<(u32, String)> {
    let pids = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let below = pids.filter(|pid| *pid != ancestor && is_below(proc, *pid, ancestor));
    below.filter_map(|pid| Some((pid, running_since(proc, pid)?))).collect()
}

/// Whether a process does nothing more for now: all of its threads are stopped, or it has ended.
pub fn is_still(proc: &Path, pid: u32) -> bool {
    let threads = fs::read_dir(proc.join(pid.to_string()).join("task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).all(|stat| {
        let state = stat.rsplit_once(')').map_or("", |(_, fields)| fields.trim_start());
        state.starts_with(['T', 't', 'Z', 'X'])
    })
}

/// The arguments that a process was given, without its program and a script that the program runs. Nothing where they can't
/// be read.
pub fn arguments_of(proc: &Path, pid: u32) -> Option<Vec<String>> {
    let line = fs::read(proc.join(pid.to_string()).join("cmdline")).ok()?;
    let line = String::from_utf8(line.strip_suffix(b"\0")?.to_vec()).ok()?;
    let mut words = line.split('\0');
    let program = Path::new(words.next()?).file_name()?;
    if ["node", "bun"].iter().any(|name| program == *name) {
        words.next();
    }
    Some(words.map(str::to_owned).collect())
}

/// Where a process works.
pub fn directory_of(proc: &Path, pid: u32) -> Option<PathBuf> {
    fs::read_link(proc.join(pid.to_string()).join("cwd")).ok()
}

/// Whether a process was given a word on its command line.
pub fn has_word(proc: &Path, pid: u32, word: &str) -> bool {
    holds(&proc.join(pid.to_string()).join("cmdline"), word.as_bytes())
}

/// Whether a list in which every entry ends with a NUL has this one.
fn holds(list: &Path, wanted: &[u8]) -> bool {
    fs::read(list).unwrap_or_default().split(|byte| *byte == 0).any(|entry| entry == wanted)
}

fn others(proc: &Path, is_meant: impl Fn(&Path) -> bool) -> Vec<u32> {
    let numbers = fs::read_dir(proc).into_iter().flatten().flatten().filter_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        Some((number, process.path())).filter(|(number, _)| *number != std::process::id())
    });
    numbers.filter(|(_, path)| is_meant(path)).map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_found_with_its_start() {
        let Runner::Agent { pid, start, words } = runner() else {
            panic!("somebody runs the tests");
        };
        assert_eq!(process_start(pid), Some(start));
        assert!(!words.is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_writes_to_is_told_once_it_is_still() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let [read, written] = ["read", "written"].map(|name| real.join(name));
        fs::write(&read, "").unwrap();
        let mut command = std::process::Command::new("sh");
        let script = format!("exec 8<{} 9>{}; while :; do :; done", read.display(), written.display());
        let mut child = command.args(["-c", &script]).stdout(std::process::Stdio::null()).spawn().unwrap();
        let proc = Path::new("/proc");
        let wait = |what: &dyn Fn() -> bool| {
            let mut tries = 0..10_000;
            while !what() && tries.next().is_some() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        wait(&|| written_files(proc, child.id()).contains(&written));
        assert!(!written_files(proc, child.id()).contains(&read));
        assert!(!is_still(proc, child.id()));
        let told = std::process::Command::new("sh").args(["-c", &format!("kill -STOP {}", child.id())]).status();
        assert!(told.unwrap().success());
        wait(&|| is_still(proc, child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_still(proc, child.id()));
    }

    #[test]
    fn a_number_given_again_is_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let check = |stat: &str, started: Option<&str>, expected: bool| {
            fs::create_dir_all(folder.path().join("7")).unwrap();
            fs::write(folder.path().join("7/stat"), stat).unwrap();
            assert_eq!(is_running(folder.path(), 7, started), expected, "{stat}");
        };
        let stat = "7 (a) b) (x) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        check(stat, None, true);
        check(stat, Some("4242"), true);
        check(stat, Some("4243"), false);
        check(&stat.replace(") S", ") Z"), None, false);
        // What its other threads have locked is locked still.
        for thread in ["7", "8"] {
            fs::create_dir_all(folder.path().join("7/task").join(thread)).unwrap();
        }
        check(&stat.replace(") S", ") Z"), None, true);
        check("nonsense", None, false);
        assert!(!is_running(folder.path(), 8, None));
    }
}
