//! The terminal: entered, drawn on, and given back whatever happens.

use std::io::{self, Stdout, stdout};
use std::sync::Once;
use std::sync::mpsc::Sender;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};

use diagnostics::OrLog;

use super::event::Event;
use super::state::State;
use super::view;

/// The alternate screen. The terminal is as it was once this is dropped.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    color: bool,
}

impl Screen {
    /// Enters the alternate screen and reports what is typed.
    pub(crate) fn enter(events: &Sender<Event>, color: bool) -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        let mut screen = Screen { terminal: Terminal::new(CrosstermBackend::new(stdout()))?, color };
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        screen.terminal.clear()?;
        let events = events.clone();
        thread::spawn(move || {
            while let Ok(event) = event::read() {
                if events.send(Event::from(event)).is_err() {
                    return;
                }
            }
        });
        Ok(screen)
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

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let left = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    left.or_log("leave the alternate screen");
    disable_raw_mode().or_log("leave raw mode");
}

/// A panic on any thread gives the terminal back before it is reported.
fn restore_on_panic() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            report(panic);
        }));
    });
}
