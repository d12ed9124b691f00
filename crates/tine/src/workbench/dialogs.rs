//! What the dialogs over the screen know.

use engine::Session;

use super::fork_dialog::ForkDialog;

/// The popup over the screen.
pub(crate) enum Popup {
    /// The keys of the screen.
    Help,
    /// A fork that is being prepared.
    Fork(Box<ForkDialog>),
    /// A new name.
    Rename {
        /// The session.
        session: Box<Session>,
        /// The name so far.
        name: String,
    },
    /// A change that the user confirms.
    Confirm {
        /// What is asked.
        question: String,
        /// The effects of a yes.
        words: Vec<String>,
    },
    /// Choosing one of several values for a chat.
    Choose(Box<Choose>),
    /// All actions, or the command line.
    Palette(Palette),
    /// The output of a command.
    Output {
        /// The command.
        title: String,
        /// The lines.
        lines: Vec<String>,
        /// The first line on the screen.
        top: usize,
    },
}

/// Finding an action by its name, or writing a command after `:`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Palette {
    /// The typed text.
    pub text: String,
    /// The selected action or completion.
    pub selected: usize,
    /// Completions for the command.
    pub completions: Vec<(String, String)>,
}

/// Choosing one of several values for a chat.
pub(crate) struct Choose {
    /// The tab.
    pub tab: u64,
    /// The kind of choice.
    pub what: ChatChoice,
    /// The values, with their labels.
    pub values: Vec<(String, String)>,
    /// The selected one.
    pub selected: usize,
}

/// A choice for a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatChoice {
    Model,
    Mode,
    /// The agent of a new chat.
    Agent,
}
