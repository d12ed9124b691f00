//! Where everything is on the screen. Drawing and the mouse share it.

use ratatui::layout::{Constraint, Layout, Rect};
use transcript::text::{clip, one_line, width};

use super::chat::{Activity, ChatTab, Driver};
use super::state::{Screen, State};

/// From how many columns on a preview fits next to a list.
const WIDE: u16 = 110;

/// From how many rows on a preview fits below the hits of a search.
const TALL: u16 = 14;

/// The parts of the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Areas {
    /// The tabs; empty without any.
    pub tabs: Rect,
    pub header: Rect,
    pub body: Rect,
    /// The line of keys.
    pub keys: Rect,
    pub message: Rect,
}

impl Areas {
    /// The parts of a screen of this size.
    pub(crate) fn of(screen: Rect, tab_bar: u16) -> Self {
        let rows = [
            Constraint::Length(tab_bar),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
            Constraint::Length(1),
        ];
        let [tabs, header, body, keys, message] = Layout::vertical(rows).areas(screen);
        Areas { tabs, header, body, keys, message }
    }
}

/// The list and its preview, if that fits: next to it or, for a search, below it.
pub(crate) fn split(body: Rect, is_search: bool) -> (Rect, Option<Rect>) {
    let halves = |parts: [Rect; 2]| (parts[0], Some(parts[1]));
    if body.width >= WIDE {
        return halves(Layout::horizontal([Constraint::Length(body.width / 2), Constraint::Min(0)]).areas(body));
    }
    if is_search && body.height >= TALL {
        return halves(Layout::vertical([Constraint::Length(body.height / 2), Constraint::Min(0)]).areas(body));
    }
    (body, None)
}

/// A tab in the bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TabLabel {
    /// Its number; `None` for the list of sessions.
    pub number: Option<u64>,
    /// The text.
    pub text: String,
    /// Its first column.
    pub column: u16,
}

/// The tabs that fit, the list of sessions first. The one on the screen is always among them.
pub(crate) fn tab_labels(state: &State, columns: u16) -> Vec<TabLabel> {
    let mut labels = vec![TabLabel { number: None, text: " Sessions ".to_owned(), column: 0 }];
    let tabs = state.tabs.iter().enumerate().map(|(place, tab)| {
        let label = clip(&one_line(&tab.label), 24);
        TabLabel { number: Some(tab.number), text: format!(" {} {label}{} ", place + 1, mark(tab)), column: 0 }
    });
    labels.extend(tabs);
    let is_shown = |label: &TabLabel| label.number.is_some_and(|number| state.screen.is_chat(number));
    let length = |label: &TabLabel| width(&label.text) + 1;
    // Tabs before the one on the screen make room for it.
    while let Some(shown) = labels.iter().position(is_shown).filter(|shown| *shown > 1) {
        if labels[..=shown].iter().map(length).sum::<usize>() <= usize::from(columns) {
            break;
        }
        labels.remove(1);
    }
    let mut column = 0;
    for label in &mut labels {
        label.column = u16::try_from(column).unwrap_or(u16::MAX);
        column += width(&label.text) + 1;
    }
    labels.retain(|label| label.column < columns);
    labels
}

/// The state of a chat as one character.
fn mark(tab: &ChatTab) -> &'static str {
    match (&tab.driver, tab.activity) {
        _ if tab.request().is_some() => " ◐",
        (Driver::Failed(_), _) => " ✗",
        (Driver::Ended(end), _) if end.code != Some(0) => " ✗",
        (_, Activity::Busy | Activity::Compacting) => " ●",
        _ if tab.has_news => " •",
        _ => "",
    }
}

impl State {
    /// The parts of the screen.
    pub(crate) fn areas(&self) -> Areas {
        let (width, height) = self.size;
        Areas::of(Rect { x: 0, y: 0, width, height }, self.tab_bar_height())
    }

    /// The list and its preview, if that fits.
    pub(crate) fn split(&self) -> (Rect, Option<Rect>) {
        split(self.areas().body, matches!(self.screen, Screen::Search(_)))
    }
}
