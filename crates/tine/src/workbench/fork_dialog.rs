//! What the fork dialog knows: the request, field by field, and the engine's plan for it.

use std::path::PathBuf;

use engine::{CodeChoice, Method, Plan, Request, TurnSummary, Where};
use transcript::{Agent, SessionName};

use super::event::ErrorText;

/// A fork that is being prepared.
pub(crate) struct ForkDialog {
    pub request: Request,
    /// The field that the keys change.
    pub field: ForkField,
    /// The name as typed; the engine chooses one if it is empty.
    pub name: String,
    /// The model as typed; the source's if it is empty.
    pub model: String,
    /// The branch, the copy's path or the directory as typed, depending on the workspace.
    pub path: String,
    /// The plan for the request, or why it is impossible; `None` while it is being made.
    pub plan: Option<Result<Box<Plan>, ErrorText>>,
    pub ticket: u64,
    /// Whether the user has chosen the workspace.
    pub workspace_is_chosen: bool,
    /// The turns to choose from; nothing before they were read. Of a large session, only the last ones.
    pub turns: Vec<TurnSummary>,
    /// The turn whose prompt the user changes in the fork.
    pub edit: Option<u32>,
    /// Whether the fork is being created, and how far.
    pub progress: Option<String>,
    /// Why the last attempt failed.
    pub failure: Option<ErrorText>,
}

/// A field of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForkField {
    Turn,
    Agent,
    Model,
    Method,
    Name,
    Workspace,
    /// The branch, the path of the copy, or the directory.
    Path,
    /// Whether uncommitted changes are copied.
    Changes,
}

impl ForkField {
    const ALL: [ForkField; 8] = [
        ForkField::Turn,
        ForkField::Agent,
        ForkField::Model,
        ForkField::Method,
        ForkField::Name,
        ForkField::Workspace,
        ForkField::Path,
        ForkField::Changes,
    ];
}

impl ForkDialog {
    pub(crate) fn new(request: Request, edit: Option<u32>, workspace_is_chosen: bool) -> Self {
        let turns = request.turns.filter(|turns| *turns < request.source.view.turns);
        ForkDialog {
            request: Request { turns, ..request },
            field: ForkField::Turn,
            name: String::new(),
            model: String::new(),
            path: String::new(),
            plan: None,
            ticket: 0,
            workspace_is_chosen,
            turns: Vec::new(),
            edit,
            progress: None,
            failure: None,
        }
    }

    /// The fields that mean something for the request.
    pub(crate) fn fields(&self) -> Vec<ForkField> {
        let is_shown = |field: &ForkField| match field {
            ForkField::Path => self.request.workspace != Where::Same,
            ForkField::Changes => matches!(self.request.workspace, Where::Worktree { .. }),
            _ => true,
        };
        ForkField::ALL.into_iter().filter(is_shown).collect()
    }

    /// The plan, if the fork is possible.
    pub(crate) fn possible(&self) -> Option<&Plan> {
        match &self.plan {
            Some(Ok(plan)) => Some(plan),
            _ => None,
        }
    }

    /// The turn after which the fork begins.
    pub(crate) fn turn(&self) -> u32 {
        self.request.turns.unwrap_or(self.request.source.view.turns)
    }

    /// Goes to the next field, or to the one before.
    pub(crate) fn move_to(&mut self, forward: bool) {
        let fields = self.fields();
        let now = fields.iter().position(|field| *field == self.field).unwrap_or(0);
        let count = fields.len();
        self.field = fields[(now + if forward { 1 } else { count - 1 }) % count];
    }

    /// The text of the field, if it is one.
    pub(crate) fn text(&mut self) -> Option<&mut String> {
        match self.field {
            ForkField::Model => Some(&mut self.model),
            ForkField::Name => Some(&mut self.name),
            ForkField::Path => Some(&mut self.path),
            _ => None,
        }
    }

    /// Chooses a turn, or the nearest one that exists.
    pub(crate) fn choose_turn(&mut self, turn: i64) {
        let last = self.request.source.view.turns;
        let turn = u32::try_from(turn.clamp(1, i64::from(last.max(1)))).unwrap_or(last);
        self.request.turns = (turn < last).then_some(turn);
        self.edit = None;
    }

    /// Changes the field to its next value, or to the one before.
    pub(crate) fn change(&mut self, forward: bool) {
        let step = if forward { 1 } else { -1 };
        match self.field {
            ForkField::Turn => self.choose_turn(i64::from(self.turn()) + step),
            ForkField::Agent => {
                let now = self.request.agent.unwrap_or(self.request.source.view.agent);
                let agent = next(&Agent::ALL, now, forward);
                self.request.agent = Some(agent).filter(|agent| *agent != self.request.source.view.agent);
                // A model belongs to its agent.
                self.model.clear();
                self.request.model = None;
            }
            ForkField::Method => {
                let methods: Vec<Option<Method>> =
                    std::iter::once(None).chain(Method::ALL.into_iter().map(Some)).collect();
                self.request.method = next(&methods, self.request.method, forward);
            }
            ForkField::Workspace => {
                const KINDS: usize = 4;
                let now = kind(&self.request.workspace);
                self.path.clear();
                self.workspace_is_chosen = true;
                self.request.workspace = match (now + if forward { 1 } else { KINDS - 1 }) % KINDS {
                    0 => Where::Worktree { branch: None, base: None },
                    1 => Where::Same,
                    2 => Where::Copy(PathBuf::new()),
                    _ => Where::Directory(PathBuf::new()),
                };
            }
            ForkField::Changes => {
                self.request.code = match self.request.code {
                    CodeChoice::Auto | CodeChoice::Then => CodeChoice::Now,
                    CodeChoice::Now => CodeChoice::None,
                    CodeChoice::None => CodeChoice::Auto,
                };
            }
            ForkField::Model | ForkField::Name | ForkField::Path => {}
        }
    }

    /// Puts a typed text into the request. An error says what is wrong with it.
    pub(crate) fn apply_text(&mut self, home: &std::path::Path) -> Result<(), ErrorText> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        match self.field {
            ForkField::Model => self.request.model = given(&self.model),
            ForkField::Name => match given(&self.name).map(SessionName::new).transpose() {
                Ok(name) => self.request.name = name,
                Err(error) => return Err(ErrorText { message: error.to_string(), hint: None }),
            },
            ForkField::Path => {
                let text = given(&self.path);
                let directory = || match (text.as_deref().unwrap_or_default(), text.as_deref().and_then(in_home)) {
                    (_, Some(rest)) => home.join(rest),
                    (whole, None) => PathBuf::from(whole),
                };
                match &mut self.request.workspace {
                    Where::Worktree { branch, .. } => *branch = text,
                    Where::Copy(path) | Where::Directory(path) => *path = directory(),
                    Where::Same => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the source is busy, so that it can't be forked as a whole now.
    pub(crate) fn waits_for_source(&self) -> bool {
        use transcript::State::{Busy, Waiting};
        self.request.turns.is_none() && matches!(self.request.source.view.state, Busy | Waiting)
    }
}

/// The rest of a path below the home directory.
fn in_home(path: &str) -> Option<&str> {
    path.strip_prefix("~/").or((path == "~").then_some(""))
}

/// The place of a workspace in the row of kinds.
fn kind(workspace: &Where) -> usize {
    match workspace {
        Where::Worktree { .. } => 0,
        Where::Same => 1,
        Where::Copy(_) => 2,
        Where::Directory(_) => 3,
    }
}

/// The next one of some values, or the one before, in a circle.
fn next<T: PartialEq + Copy>(values: &[T], now: T, forward: bool) -> T {
    let place = values.iter().position(|value| *value == now).unwrap_or(0);
    values[(place + if forward { 1 } else { values.len() - 1 }) % values.len()]
}
