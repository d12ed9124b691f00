//! A program on a pseudo-terminal: what it draws, and what it costs.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long to wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program on a terminal of 120 columns and 40 rows.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<(Instant, Vec<u8>)>,
    /// When it was started.
    pub begun: Instant,
    /// The end of what it has drawn.
    drawn: Vec<u8>,
    /// The number of bytes it has drawn.
    pub bytes: usize,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("access");
        unlockpt(&terminal).expect("access");
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).expect("a size");
        let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("a name");
        let own = OpenOptions::new().read(true).write(true).open(name).expect("the terminal");
        let handle = || own.try_clone().expect("the terminal");
        let begun = Instant::now();
        let child = command.stdin(handle()).stdout(handle()).stderr(handle()).spawn().expect("the program");
        drop((own, command));
        let keys = File::from(terminal);
        let mut reader = keys.try_clone().expect("the terminal");
        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, output, begun, drawn: Vec::new(), bytes: 0 }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a key");
    }

    /// Waits until it draws something, and returns when it did. What it drew before doesn't count.
    pub(crate) fn wait_for(&mut self, wanted: &str) -> Instant {
        let begun = Instant::now();
        self.drawn.clear();
        loop {
            match self.output.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
                Ok((at, bytes)) => {
                    self.note(&bytes);
                    if self.drawn.windows(wanted.len()).any(|part| part == wanted.as_bytes()) {
                        return at;
                    }
                    let kept = self.drawn.len().saturating_sub(wanted.len());
                    self.drawn.drain(..kept);
                }
                Err(_) => panic!("waited in vain for {wanted:?}; drew {} bytes", self.bytes),
            }
        }
    }

    /// Lets it work until it has drawn nothing for a while.
    pub(crate) fn settle(&mut self, quiet: Duration) {
        while let Ok((_, bytes)) = self.output.recv_timeout(quiet) {
            self.note(&bytes);
        }
    }

    /// The bytes that it draws in a time.
    pub(crate) fn draws_within(&mut self, time: Duration) -> usize {
        let (begun, before) = (Instant::now(), self.bytes);
        loop {
            match self.output.recv_timeout(time.saturating_sub(begun.elapsed())) {
                Ok((_, bytes)) => self.note(&bytes),
                Err(RecvTimeoutError::Timeout) => return self.bytes - before,
                Err(RecvTimeoutError::Disconnected) => panic!("it has ended"),
            }
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.drawn.extend(bytes);
    }

    /// The processor's time that it has used itself.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("its state");
        let fields = stat.rsplit_once(')').expect("fields").1;
        let ticks: u64 = fields.split_ascii_whitespace().skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Its memory now, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its state");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// Presses Ctrl+C and waits for its end.
    pub(crate) fn quit(mut self) {
        self.press("\u{3}");
        let begun = Instant::now();
        while self.child.try_wait().expect("its state").is_none() {
            if begun.elapsed() > PATIENCE {
                self.child.kill().expect("the end");
            }
            while self.output.try_recv().is_ok() {}
            thread::sleep(Duration::from_millis(5));
        }
    }
}
