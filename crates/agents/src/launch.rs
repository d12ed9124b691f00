//! How an agent's program is started, resumed, forked and sent messages, and what its models can take.

use std::path::Path;

use jiff::Timestamp;
use transcript::SessionId;

use crate::chat::{ChatOrder, Protocol};
use crate::ids;
use crate::program::{ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, SessionRef};

/// An agent's program.
pub trait Launch {
    /// The command that starts a new session in a terminal. The id is used where the agent accepts one.
    fn start_command(
        &self,
        id: &SessionId,
        title: &str,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String>;
    /// The command that resumes a session in a terminal, in this directory, with options and a first prompt.
    fn resume_command(
        &self,
        session: SessionRef<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String>;
    /// An id for a new session, in the shape that the agent itself uses.
    fn new_id(&self, _now: Timestamp) -> SessionId {
        ids::random_id()
    }
    /// Whether the caller can choose the id of a new session; otherwise the agent makes one up.
    fn accepts_ids(&self) -> bool;
    /// The session that a command line of the agent forks, if it forks one. Nothing inside where the argument is not an
    /// id.
    fn forked_session(&self, _words: &[String]) -> Option<Option<SessionId>> {
        None
    }
    /// Has the agent fork a session itself, without a request to its model.
    fn fork(&self, program: &Program, request: &ForkRequest<'_>) -> Result<NewSession, ProgramError>;
    /// Sends a message without a terminal and waits for the answer.
    fn send(&self, program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError>;
    /// Queues a message for a session that the agent's daemon has open.
    fn queue(&self, program: &Program, _id: &SessionId, _text: &str) -> Result<(), ProgramError> {
        Err(program.unable("take messages for a session that is open"))
    }
    /// The agent's side of a chat over its structured stream. Fails if the stream can't honour an option.
    fn chat(&self, program: &Program, order: ChatOrder) -> Result<Box<dyn Protocol>, ProgramError>;
    /// The context window of a model, or of the default one, in a version of the agent, or in the newest one that tine knows,
    /// for transcripts that don't record it.
    fn context_window(&self, model: Option<&str>, version: Option<&str>) -> u64;
    /// The sizes of the context windows of the agent's models, smallest first.
    fn context_windows(&self) -> &'static [u64];
    /// The most characters that the agent takes in one message, if there is a limit.
    fn input_limit(&self) -> Option<usize> {
        None
    }
}
