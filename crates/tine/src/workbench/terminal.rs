//! The terminal: entered, drawn on, and given back whatever happens.

use std::io::{self, Stdout, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};

use diagnostics::OrLog;
use engine::MouseLevel;
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::iterator::Signals;

use super::event::Event;
use super::state::State;
use super::view;

/// The alternate screen. The terminal is as it was once this is dropped.
pub(crate) struct AlternateScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    color: bool,
    keyboard: Arc<Keyboard>,
    mouse: MouseLevel,
}

/// Reports presses and the wheel, with positions in decimal. Movements are not reported: they would be a flood.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// The reader of the keyboard: the workbench, or a program that has taken over the screen.
#[derive(Default)]
struct Keyboard {
    is_lent: AtomicBool,
    /// Held while keys are read.
    reading: Mutex<()>,
}

/// How long to poll the keyboard before it can be lent.
const TURN: Duration = Duration::from_millis(200);

impl AlternateScreen {
    /// Enters the alternate screen and reports what is typed.
    pub(crate) fn enter(events: &Sender<Event>, color: bool) -> io::Result<Self> {
        super::crash::restore_on_panic(restore);
        enable_raw_mode()?;
        let keyboard = Arc::new(Keyboard::default());
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        let mut screen = AlternateScreen { terminal, color, keyboard: Arc::clone(&keyboard), mouse: MouseLevel::Off };
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        // `Terminal::clear` would ask for the cursor's position and fail if the terminal is slow to answer.
        screen.terminal.backend_mut().clear()?;
        let events = events.clone();
        let mut signals = Signals::new([SIGTERM, SIGHUP])?;
        let told = events.clone();
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                let _ = told.send(Event::Terminated);
            }
        });
        thread::spawn(move || keyboard.report(&events));
        Ok(screen)
    }

    /// Gives screen and keyboard to a program until it ends.
    pub(crate) fn lend<T>(&mut self, run: impl FnOnce() -> T) -> io::Result<T> {
        self.keyboard.is_lent.store(true, Ordering::SeqCst);
        let reading = self.keyboard.reading.lock();
        restore();
        let result = run();
        drop(reading);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        // A new one draws the whole screen.
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        self.terminal.backend_mut().clear()?;
        self.set_mouse(self.mouse)?;
        self.keyboard.is_lent.store(false, Ordering::SeqCst);
        Ok(result)
    }

    /// Puts a text on the clipboard with the terminal's escape sequence (OSC 52).
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let mut out = stdout();
        write!(out, "\x1b]52;c;{}\x07", super::worker::base64(text.as_bytes()))?;
        out.flush()
    }

    /// Decides whether the terminal reports the mouse. What it reports is limited by the update.
    pub(crate) fn set_mouse(&mut self, level: MouseLevel) -> io::Result<()> {
        self.mouse = level;
        let mut out = stdout();
        write!(out, "{}", if level == MouseLevel::Off { MOUSE_OFF } else { MOUSE_ON })?;
        out.flush()
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws a frame in one write.
    pub(crate) fn draw(&mut self, state: &State) -> io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view::draw(frame, state, self.color))?;
        execute!(stdout(), EndSynchronizedUpdate)
    }
}

impl Keyboard {
    /// Reports what is typed until the workbench ends.
    fn report(&self, events: &Sender<Event>) {
        loop {
            if self.is_lent.load(Ordering::SeqCst) {
                thread::sleep(TURN / 10);
                continue;
            }
            let Ok(_reading) = self.reading.lock() else { return };
            let event = match event::poll(TURN) {
                Ok(true) => event::read(),
                Ok(false) => continue,
                Err(_) => return,
            };
            let Ok(event) = event else { return };
            if events.send(Event::from(event)).is_err() {
                return;
            }
        }
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let left = execute!(stdout(), Print(MOUSE_OFF), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    left.or_log("leave the alternate screen");
    disable_raw_mode().or_log("leave raw mode");
}
