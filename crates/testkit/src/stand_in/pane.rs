//! Panes of a terminal that is stood in for: a folder each, and a process that holds the pseudo-terminal.
//!
//! The folder has the pipe `input`, the file `output`, the process and the device of what runs there, and in the end the
//! file `closed`; numbers are never given again.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::{Terminal, write_at_once};
use crate::poll::poll;

/// The word that makes the program hold a pane.
pub(super) const HOST: &str = "hold-pane";

/// What begins a new screen.
pub(super) const CLEARED: &str = "\u{1b}[2J\u{1b}[H";

const ROWS: u16 = 50;
const COLUMNS: u16 = 160;
/// How long a program gets to begin, or to end.
const SOON: Duration = Duration::from_secs(10);

/// A running terminal.
pub(super) struct Server {
    folder: PathBuf,
    terminal: Terminal,
    name: String,
}

impl Server {
    /// The terminal that goes by a name.
    pub(super) fn of(runtime: &Path, terminal: Terminal, name: &str) -> Self {
        let safe = name.replace(['/', ':'], "_");
        let folder = runtime.join("stand-in").join(terminal.as_str()).join(safe);
        Server { folder, terminal, name: name.to_owned() }
    }

    /// The names of all of one kind that run, as they are safe in a path.
    pub(super) fn names(runtime: &Path, terminal: Terminal) -> Vec<String> {
        let all = fs::read_dir(runtime.join("stand-in").join(terminal.as_str())).into_iter().flatten().flatten();
        all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    pub(super) fn create(&self) {
        fs::create_dir_all(&self.folder).unwrap_or_else(|error| panic!("{}: {error}", self.folder.display()));
    }

    pub(super) fn runs(&self) -> bool {
        self.folder.is_dir()
    }

    /// Takes the next number.
    pub(super) fn reserve(&self) -> u32 {
        (1..).find(|pane| fs::create_dir(self.pane(*pane)).is_ok()).expect("a number")
    }

    fn pane(&self, pane: u32) -> PathBuf {
        self.folder.join(pane.to_string())
    }

    /// A file of the terminal's own, for what only one kind of terminal keeps.
    pub(super) fn note(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn is_open(&self, pane: u32) -> bool {
        let folder = self.pane(pane);
        folder.join("pid").is_file() && !folder.join("closed").exists()
    }

    /// The panes that are open, by number.
    pub(super) fn panes(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut panes: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        panes.retain(|pane| self.is_open(*pane));
        panes.sort_unstable();
        panes
    }

    pub(super) fn process(&self, pane: u32) -> Option<u32> {
        fs::read_to_string(self.pane(pane).join("pid")).ok()?.parse().ok()
    }

    pub(super) fn device(&self, pane: u32) -> String {
        fs::read_to_string(self.pane(pane).join("tty")).unwrap_or_default()
    }

    pub(super) fn focused(&self) -> Option<u32> {
        fs::read_to_string(self.note("focused")).ok()?.parse().ok()
    }

    pub(super) fn focus(&self, pane: u32) {
        write_at_once(&self.note("focused"), &pane.to_string());
    }

    /// Opens a pane that runs a command, with the caller's environment.
    pub(super) fn open(&self, directory: &Path, words: &[String]) -> Result<u32, String> {
        let pane = self.reserve();
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut host = Command::new(program);
        host.args(host_words(self, pane, directory, words)).envs(self.terminal.variables(&self.name, pane));
        host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        host.spawn().map_err(|error| error.to_string())?;
        // What ends at once was open for a moment, and its pane is gone like that of a real terminal.
        let begun = poll(SOON, || self.pane(pane).join("pid").is_file().then_some(()));
        begun.map(|()| pane).ok_or_else(|| "the program did not start".to_owned())
    }

    /// Hands bytes over as if they were typed.
    pub(super) fn write(&self, pane: u32, text: &str) {
        let input = OpenOptions::new().write(true).open(self.pane(pane).join("input"));
        let _ = input.and_then(|mut input| input.write_all(text.as_bytes()));
    }

    /// What can be seen: what was printed since the screen was cleared last.
    pub(super) fn screen(&self, pane: u32) -> String {
        let output = fs::read(self.pane(pane).join("output")).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).replace('\r', "");
        let shown = output.rsplit(CLEARED).next().unwrap_or_default();
        let lines: Vec<&str> = shown.lines().collect();
        let first = lines.len().saturating_sub(usize::from(ROWS));
        lines[first..].join("\n") + "\n"
    }

    /// Closes a pane: what runs there is told so, and ended where it does not listen.
    pub(super) fn close(&self, pane: u32) {
        let process = self.process(pane).and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let gone = |patience| poll(patience, || self.pane(pane).join("closed").exists().then_some(())).is_some();
        if let Some(process) = process {
            let _ = kill_process(process, Signal::HUP);
            if !gone(Duration::from_secs(1)) {
                let _ = kill_process(process, Signal::KILL);
                gone(SOON);
            }
        }
    }
}

/// The words that make the program hold a pane.
pub(super) fn host_words(server: &Server, pane: u32, directory: &Path, words: &[String]) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut all = vec![HOST.to_owned(), text(&server.pane(pane)), text(directory)];
    all.extend_from_slice(words);
    all
}

/// Holds a pane until its program ends.
pub(super) fn host(words: &[String]) -> ExitCode {
    match held(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn held(words: &[String]) -> std::io::Result<()> {
    let [folder, directory, program, arguments @ ..] = words else {
        return Ok(());
    };
    let folder = Path::new(folder);
    // The first terminal that the leader of a session opens is that of the whole session.
    setsid()?;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let device = ptsname(&master, Vec::new())?.to_string_lossy().into_owned();
    let slave = OpenOptions::new().read(true).write(true).open(&device)?;
    tcsetwinsize(&slave, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
    mknodat(CWD, folder.join("input"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Open for both, so that it has no end when a writer goes.
    let mut input = OpenOptions::new().read(true).write(true).open(folder.join("input"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave.try_clone()?);
    let child = command.spawn();
    write_at_once(&folder.join("tty"), &device);
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            write_at_once(&folder.join("pid"), "0");
            File::create(folder.join("closed"))?;
            return Err(error);
        }
    };
    write_at_once(&folder.join("pid"), &child.id().to_string());
    drop((command, slave));
    let (mut from, mut to) = (File::from(master.try_clone()?), File::from(master));
    let mut output = OpenOptions::new().create(true).append(true).open(folder.join("output"))?;
    std::thread::spawn(move || std::io::copy(&mut input, &mut to));
    let reader = std::thread::spawn(move || {
        let mut chunk = [0_u8; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            if output.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
    });
    let _ = child.wait();
    poll(Duration::from_millis(200), || reader.is_finished().then_some(()));
    File::create(folder.join("closed"))?;
    Ok(())
}
