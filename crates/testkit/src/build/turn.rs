//! One turn of a synthetic conversation, the same for both agents.

use serde_json::Value;

/// A prompt and what the agent did about it, in order.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub(crate) prompt: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
}

/// One thing that an agent did.
#[derive(Debug, Clone)]
pub enum Step {
    /// It said something.
    Text(String),
    /// It thought something.
    Thinking(String),
    /// It called tools in one message; all of them were answered.
    Tools {
        /// The calls, in order.
        calls: Vec<Tool>,
        /// Whether the results came in the opposite order.
        reversed: bool,
    },
    /// It sent a subagent with a task of its own.
    Subagent {
        /// A few words about the task.
        description: String,
        /// What the subagent was told and did.
        turn: Box<Turn>,
    },
}

/// A call of a tool and its result.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// What it answered.
    pub output: String,
    /// Whether the answer was an error.
    pub failed: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// The agent had its say.
    #[default]
    Complete,
    /// The person interrupted it.
    Interrupted,
    /// The process ended in the middle: the last calls have no results.
    Killed,
}

impl Turn {
    /// What the person typed.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = text.into();
        self
    }

    /// Adds a text of the agent.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Text(text.into()));
        self
    }

    /// Adds a thought of the agent.
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.steps.push(Step::Thinking(text.into()));
        self
    }

    /// Adds a call of a tool with its result. Codex's shell is `exec_command`, Claude Code's is `Bash`.
    pub fn tool(self, name: impl Into<String>, input: Value, output: impl Into<String>) -> Self {
        self.tools([Tool { name: name.into(), input, output: output.into(), failed: false }], false)
    }

    /// Adds a call of a tool that failed.
    pub fn failing_tool(self, name: impl Into<String>, input: Value, output: impl Into<String>) -> Self {
        self.tools([Tool { name: name.into(), input, output: output.into(), failed: true }], false)
    }

    /// Adds several calls in one message, given as name, arguments and result.
    pub fn parallel<const COUNT: usize>(self, calls: [(&str, Value, &str); COUNT]) -> Self {
        self.tools(calls.map(Tool::from), false)
    }

    /// As [`Turn::parallel`], but the results came in the opposite order, as Claude Code 2.1.325 writes them when the
    /// last call ends first: the parent chain then passes by some calls and results.
    pub fn parallel_reversed<const COUNT: usize>(self, calls: [(&str, Value, &str); COUNT]) -> Self {
        self.tools(calls.map(Tool::from), true)
    }

    /// Adds a subagent.
    pub fn subagent(mut self, description: impl Into<String>, describe: impl FnOnce(Turn) -> Turn) -> Self {
        let turn = Box::new(describe(Turn::default()));
        self.steps.push(Step::Subagent { description: description.into(), turn });
        self
    }

    /// Ends the turn by an interruption of the person.
    pub fn interrupted(mut self) -> Self {
        self.end = End::Interrupted;
        self
    }

    /// Ends the turn in the middle: the results of its last calls are missing, as after a kill.
    pub fn killed(mut self) -> Self {
        self.end = End::Killed;
        self
    }

    fn tools(mut self, calls: impl Into<Vec<Tool>>, reversed: bool) -> Self {
        self.steps.push(Step::Tools { calls: calls.into(), reversed });
        self
    }

    /// The last words of the agent, empty when the turn does not end in words.
    pub(crate) fn last_words(&self) -> &str {
        match self.steps.last() {
            Some(Step::Text(text)) => text,
            _ => "",
        }
    }
}

impl From<(&str, Value, &str)> for Tool {
    fn from((name, input, output): (&str, Value, &str)) -> Self {
        Self { name: name.to_owned(), input, output: output.to_owned(), failed: false }
    }
}
