//! The façade that all front ends use. It makes no decisions itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agents::Blocks;
use transcript::{Agent, SessionId, SessionName, SessionView};

use crate::ctx::Ctx;
use crate::sessions::survey;
use crate::*;

/// One run of tine over the sessions of one user.
pub struct Tine {
    pub(crate) ctx: Ctx,
}

impl Tine {
    /// Opens the registry. Without a usable registry, tine works without names and warns.
    pub fn open(context: Context) -> Result<Self> {
        let ctx = Ctx::open(context)?;
        let is_kept = ctx.registry().is_kept();
        if is_kept && let Err(error) = operations::clean_up::clean_up(&ctx) {
            match error {
                operations::Error::Registry(error) => ctx.do_without_registry(&error)?,
                error => ctx.warn(error.to_string()),
            }
        }
        Ok(Tine { ctx })
    }

    /// The paths, the clock and the environment.
    pub fn context(&self) -> &Context {
        self.ctx.context()
    }

    /// Takes the warnings collected so far.
    pub fn take_warnings(&self) -> Vec<String> {
        self.ctx.take_warnings()
    }

    /// The configuration.
    pub fn config(&self) -> Result<&Config> {
        Ok(self.ctx.config()?)
    }
}

impl Tine {
    /// The selected sessions, newest first, without subagents' threads and empty files.
    pub fn sessions(&self, filter: &Filter, progress: &dyn Progress) -> Result<Vec<Session>> {
        Ok(survey::sessions(&self.ctx, filter, progress)?)
    }

    /// Like `sessions`, but lazily, so that long listings need little memory.
    pub fn listing(&self, filter: &Filter, progress: &dyn Progress) -> Result<Listing> {
        Ok(survey::listing(&self.ctx, filter, progress)?)
    }

    /// Every session, newest first.
    pub fn all_sessions(&self, progress: &dyn Progress) -> Result<Vec<Session>> {
        Ok(survey::all_sessions(&self.ctx, progress)?)
    }

    /// Finds the session that `spec` refers to, among all sessions.
    pub fn resolve(&self, spec: &str, progress: &dyn Progress) -> Result<Selection> {
        Ok(survey::resolve(&self.ctx, spec, progress)?)
    }

    /// Finds the session that `spec` refers to, among `sessions`.
    pub fn resolve_among(&self, sessions: &[Session], spec: &str) -> Result<Selection> {
        Ok(survey::resolve_among(&self.ctx, sessions, spec)?)
    }

    /// The conversation up to and including turn `until`; a seed at its beginning is one line.
    pub fn read(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        Ok(survey::read(&self.ctx, session, until)?)
    }

    /// The conversation as the agent keeps it, including a seed at its beginning.
    pub fn read_all(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        Ok(survey::read_all(&self.ctx, session, until)?)
    }

    /// Records that a session was used, so that `-` refers to it.
    pub fn remember_use(&self, session: &Session) {
        survey::remember_use(&self.ctx, session);
    }
    /// Creates the planned fork. If anything fails, nothing is left behind.
    pub fn apply_fork(&self, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
        Ok(fork::apply::apply_fork(&self.ctx, plan, progress)?)
    }
    /// Creates a worktree of the current repository on a new branch, for a new session.
    pub fn new_worktree(&self, branch: &str, base: Option<&str>) -> Result<(PathBuf, i64)> {
        Ok(fork::empty::new_worktree(&self.ctx, branch, base)?)
    }

    /// Plans a clone of the session that was started as `source` and has no messages yet. `None` if there is none.
    pub fn plan_empty_clone(
        &self,
        source: &str,
        name: Option<SessionName>,
        target: &Path,
    ) -> Result<Option<EmptyClone>> {
        Ok(fork::empty::plan_empty_clone(&self.ctx, source, name, target)?)
    }

    /// Creates such a clone. A generated name is replaced if another process takes it first.
    pub fn apply_empty_clone(
        &self,
        plan: EmptyClone,
        target: &Path,
        progress: &dyn CopyProgress,
    ) -> Result<(EmptyClone, i64)> {
        Ok(fork::empty::apply_empty_clone(&self.ctx, plan, target, progress)?)
    }

    /// An agent's program, from the configuration or found as a shell would.
    pub fn program(&self, agent: Agent) -> Result<agents::Program> {
        Ok(program::program(&self.ctx, agent)?)
    }

    /// The command that opens a fork in this terminal.
    pub fn open_command(&self, plan: &Plan, fork: &SessionView) -> Result<Command> {
        Ok(fork::launch::open_command(&self.ctx, plan, fork)?)
    }

    /// Starts the agent of a fork, and shows it if `focus` is set. A failure does not undo the fork.
    pub fn open_fork(&self, forked: &Forked, focus: bool, ready_within: Duration) -> Result<Opened> {
        Ok(fork::open::open_fork(&self.ctx, forked, focus, ready_within)?)
    }
    /// Decides everything about a fork and touches nothing.
    pub fn plan_fork(&self, request: &Request) -> Result<Plan> {
        Ok(fork::plan::plan_fork(&self.ctx, request)?)
    }
    /// Plans several forks of the session in `request` and touches nothing.
    pub fn plan_forks(&self, request: &Request, parts: &[Part]) -> Result<Vec<Plan>> {
        Ok(fork::several::plan_forks(&self.ctx, request, parts)?)
    }

    /// Creates several forks as one operation, and calls `progress` with the number of complete ones. If one fails,
    /// none is kept.
    pub fn apply_forks(&self, plans: &[Plan], progress: &dyn Fn(usize)) -> Result<Vec<Forked>> {
        Ok(fork::several::apply_forks(&self.ctx, plans, progress)?)
    }

    /// Starts a fork that has not started: its agent receives the kept transcript. A session that has started is
    /// returned unchanged. If this fails, the fork still counts as not started. It works in `directory`, by default its
    /// own.
    pub fn start_fork(&self, session: Session, directory: Option<&Path>) -> Result<Session> {
        Ok(fork::unstarted::start_fork(&self.ctx, session, directory)?)
    }
    /// Searches sessions. Updates the index first, for a few seconds at most, and rebuilds it if it is damaged. If a
    /// phrase is not found, searches for its words and adds a notice.
    pub fn search(&self, asking: Asking<'_>) -> Result<Answer> {
        Ok(crate::search::search(&self.ctx, asking)?)
    }
    /// Searches a qmd collection. If qmd does not answer, returns the most recent sessions instead.
    pub fn search_qmd(
        &self,
        query: &Query,
        given: &Limits,
        collection: &str,
        limit: usize,
        progress: &dyn Progress,
    ) -> Result<Answer> {
        Ok(crate::search::qmd::search_qmd(&self.ctx, query, given, collection, limit, progress)?)
    }
    /// Ranks past sessions by how well they fit an intent. Changes nothing but the index.
    pub fn suggest(
        &self,
        intent: &Intent,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<Suggestions> {
        Ok(crate::search::smart::suggest(&self.ctx, intent, progress, indexing)?)
    }
    /// Updates the index, completely or until time is up.
    pub fn update_index(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::update_index(&self.ctx, time, rebuild, progress, indexing)?)
    }

    /// Creates the missing vectors, all of them or until time is up. Words come first: see [`Tine::update_index`].
    pub fn update_vectors(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::update_vectors(&self.ctx, time, rebuild, progress, indexing)?)
    }

    /// The state of the index, without changing it.
    pub fn index_status(&self, progress: &dyn Progress) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::index_status(&self.ctx, progress)?)
    }
    /// Where a fork of a found session would work, or why it cannot be forked as requested.
    pub fn check_found(&self, found: &Found, request: &Request) -> std::result::Result<Workspace, Refusal> {
        crate::search::smart::choice::check_found(&self.ctx, found, request)
    }

    /// The same for a fork of the whole session in its own directory. A busy session can be forked once it is idle.
    pub fn check_result(&self, found: Found) -> Choice {
        crate::search::smart::choice::check_result(&self.ctx, found)
    }

    /// The best session that can be forked as requested. Each is planned before it is chosen; if its plan fails, it is
    /// refused and the next one is tried.
    pub fn choose(&self, choices: &mut [Choice], request: impl Fn(&Found) -> Request) -> Option<usize> {
        crate::search::smart::choice::choose(&self.ctx, choices, request)
    }
    /// The branches of a session outside its main history, newest first.
    pub fn branches(&self, session: &Session) -> Result<Vec<BranchView>> {
        Ok(crate::sessions::branches::branches(&self.ctx, session)?)
    }
    /// Everything known about a session; `sessions` are searched for its forks.
    pub fn info(&self, session: &Session, sessions: &[Session]) -> Result<Info> {
        Ok(crate::run::info::info(&self.ctx, session, sessions)?)
    }

    /// The current state of a session.
    pub fn status(&self, target: &Target) -> Result<Status> {
        Ok(crate::run::status::status(&self.ctx, target)?)
    }

    /// The current state of every open session.
    pub fn open_sessions(&self, progress: &dyn Progress) -> Result<Vec<Status>> {
        Ok(crate::run::status::open_sessions(&self.ctx, progress)?)
    }

    /// The lineage of `sessions`, as trees.
    pub fn trees(&self, sessions: &[Session], asked: Trees<'_>) -> Result<Vec<Node>> {
        Ok(crate::sessions::tree::trees(&self.ctx, sessions, asked)?)
    }

    /// The events after a position, oldest first; the next call continues after them.
    pub fn events(&self, cursor: &mut EventCursor) -> Result<Vec<HeardEvent>> {
        Ok(crate::run::events::events(&self.ctx, cursor)?)
    }

    /// The changes that tine made, newest first.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        Ok(self.ctx.registry().log()?)
    }

    /// A place of this unit in the current terminal; `None` if it has no panes.
    pub fn place_beside(&self, unit: Unit) -> Option<Place> {
        crate::run::place::beside(&self.ctx, unit)
    }

    /// Writes sessions as Markdown files.
    pub fn export(&self, request: &ExportRequest, progress: &dyn Progress) -> Result<Exported> {
        Ok(crate::sessions::export::export(&self.ctx, request, progress)?)
    }
    /// Registers a session under a name.
    pub fn adopt(&self, session: &Session, name: Option<SessionName>, parent: Option<&Session>) -> Result<SessionName> {
        Ok(crate::naming::adopt::adopt(&self.ctx, session, name, parent)?)
    }

    /// The name that adopting a session would give it, or why it can't be adopted. `taken` are names that others in the
    /// same run will have.
    pub fn plan_adoption(
        &self,
        session: &Session,
        name: Option<SessionName>,
        parent: Option<&Session>,
        taken: &HashSet<SessionName>,
    ) -> Result<SessionName> {
        Ok(crate::naming::adopt::plan_adoption(&self.ctx, session, name, parent, taken)?)
    }

    /// Renames a session, in tine and in the agent's own list.
    pub fn rename(&self, session: &Session, name: &SessionName) -> Result<i64> {
        Ok(crate::naming::adopt::rename(&self.ctx, session, name)?)
    }

    /// Refuses a name that another session has.
    pub fn check_name(&self, name: &SessionName) -> Result<()> {
        Ok(crate::operations::free_names::check_name(&self.ctx, name)?)
    }

    /// Frees the name of a session that has no messages or whose transcript no longer exists.
    pub fn forget(&self, name: &SessionName) -> Result<()> {
        Ok(self.ctx.registry().forget_name(name)?)
    }

    /// Decides how to start a new session and reserves its name. A generated name is replaced if another process takes
    /// it first.
    pub fn begin(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        launch: &Launch,
        becomes_agent: bool,
    ) -> Result<Start> {
        Ok(crate::naming::start::begin(&self.ctx, agent, name, launch, becomes_agent)?)
    }

    /// The directory of a session that was started and has no messages yet.
    pub fn directory_of_unbegun(&self, name: &SessionName) -> Result<Option<PathBuf>> {
        Ok(crate::naming::start::directory_of_unbegun(&self.ctx, name)?)
    }

    /// The command that starts it in this terminal.
    pub fn start_command(&self, start: &Start) -> Result<Command> {
        Ok(crate::naming::start::start_command(&self.ctx, start)?)
    }

    /// Starts it without a terminal: sends a message and returns the answer.
    pub fn start_headless(&self, start: &Start, text: &str) -> Result<String> {
        Ok(crate::naming::start::start_headless(&self.ctx, start, text)?)
    }

    /// The arguments that resume a session, and the command for this terminal.
    pub fn resume(&self, session: &Session, directory: &Path, launch: &Launch) -> Result<(Vec<String>, Command)> {
        Ok(crate::naming::start::resume(&self.ctx, session, directory, launch)?)
    }

    /// Sends a message to a session without a terminal.
    pub fn resume_headless(&self, session: &Session, directory: &Path, launch: &Launch, text: &str) -> Result<String> {
        Ok(crate::run::headless::resume_headless(&self.ctx, session, directory, launch, text)?)
    }
    /// Moves a session to the trash, with its worktree if one is given, and returns the operation for `undo`.
    pub fn delete(&self, session: &Session, worktree: Option<&OwnWorktree>) -> Result<i64> {
        Ok(crate::operations::delete::delete(&self.ctx, session, worktree)?)
    }

    /// The transcripts before `/clear` that are deleted together with a session, unless they have been continued since
    /// or are open.
    pub fn goes_along(&self, session: &Session) -> Result<Vec<(SessionId, PathBuf)>> {
        Ok(crate::operations::delete::goes_along(&self.ctx, session)?)
    }
    /// The worktree of a session, if tine created it and it still exists.
    pub fn worktree_of(&self, session: &Session) -> Result<Option<OwnWorktree>> {
        Ok(crate::operations::leftovers::worktree_of(&self.ctx, session)?)
    }
    /// Undoes an operation: the given one, or the last one that can be undone.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        Ok(crate::operations::undo::undo(&self.ctx, id, force)?)
    }
    /// Checks agents, files, registry and cache.
    pub fn doctor(&self, progress: &dyn Progress) -> Result<Report> {
        Ok(crate::setup::doctor::doctor(&self.ctx, progress)?)
    }
    /// The agents to set up if none is named.
    pub fn agents_for_setup(&self, scope: Option<agents::Scope>) -> Vec<Agent> {
        crate::setup::agents_for_setup(&self.ctx, scope)
    }

    /// Decides what to change.
    pub fn plan_setup(&self, request: &SetupRequest) -> Result<SetupPlan> {
        Ok(crate::setup::plan_setup(&self.ctx, request)?)
    }

    /// Makes the planned changes; waits for another tine that is doing the same.
    pub fn apply_setup(&self, plan: &SetupPlan) -> Result<()> {
        Ok(crate::setup::apply_setup(&self.ctx, plan)?)
    }

    /// The state of the setup for an agent.
    pub fn setup_status(&self, agent: Agent) -> Result<SetupStatus> {
        Ok(crate::setup::setup_status(&self.ctx, agent)?)
    }

    /// Restores a damaged or lost registry from a backup, and adds deletions found in the trash to the log. Returns
    /// what was done, one sentence each.
    pub fn repair(&self) -> Result<Vec<String>> {
        Ok(crate::setup::repair::repair(&self.ctx)?)
    }
    /// Builds a launch from the configuration's profile and the request.
    pub fn launch_for(&self, agent: Agent, request: &LaunchRequest) -> Result<Launch> {
        Ok(crate::run::profile::launch_for(&self.ctx, agent, request)?)
    }

    /// The launch of an existing session: its profile plus more arguments, which are not stored.
    pub fn launch_of(&self, session: &SessionView, more: &[String], prompt: Option<String>) -> Result<Launch> {
        Ok(crate::run::profile::launch_of(&self.ctx, session, more, prompt)?)
    }

    /// Waits until a session is idle or stopped, and returns its state then. `tell` is called at every check.
    pub fn wait_until_idle(
        &self,
        session: Session,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Session> {
        Ok(crate::run::wait::wait_until_idle(&self.ctx, session, timeout, tell)?)
    }

    /// Waits until all of `watched` have finished their current work, or one of them if `any` is set, and returns
    /// those. A permission request ends the waiting, because only the user can answer it.
    pub fn wait_for(
        &self,
        watched: Vec<Session>,
        any: bool,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Vec<Session>> {
        Ok(crate::run::wait::wait_for(&self.ctx, watched, any, timeout, tell)?)
    }
    /// What a session's pane shows.
    pub fn screen(&self, session: &Session) -> Result<String> {
        Ok(crate::run::drive::control::screen(&self.ctx, session)?)
    }

    /// Brings a session's pane to front.
    pub fn focus(&self, session: &Session) -> Result<()> {
        Ok(crate::run::drive::control::focus(&self.ctx, session)?)
    }

    /// The screen of a pane whose session has no messages yet.
    pub fn screen_unbegun(&self, name: &SessionName) -> Result<String> {
        Ok(crate::run::drive::control::screen_unbegun(&self.ctx, name)?)
    }

    /// Brings the pane of a session without messages to the front.
    pub fn focus_unbegun(&self, name: &SessionName) -> Result<()> {
        Ok(crate::run::drive::control::focus_unbegun(&self.ctx, name)?)
    }

    /// Stops a session without messages; nothing of it is kept.
    pub fn stop_unbegun(&self, name: &SessionName) -> Result<()> {
        Ok(crate::run::drive::control::stop_unbegun(&self.ctx, name)?)
    }

    /// Interrupts a session and waits until it has stopped working.
    pub fn interrupt(&self, session: &Session) -> Result<Session> {
        Ok(crate::run::drive::control::interrupt(&self.ctx, session)?)
    }

    /// Ends the agent of a session, if it runs: first politely, then by force.
    pub fn stop(&self, session: &Session) -> Result<()> {
        Ok(crate::run::drive::control::stop(&self.ctx, session)?)
    }

    /// Whether a session has finished its current work: its agent's state and its transcript agree.
    pub fn is_done(&self, session: &Session) -> bool {
        crate::run::drive::is_done(&self.ctx, session)
    }

    /// The current state of a session.
    pub fn refresh(&self, session: &Session) -> Result<Session> {
        Ok(crate::sessions::refresh::refresh(&self.ctx, session)?)
    }

    /// The agent's last answer: its text since the last tool call.
    pub fn last_answer(&self, session: &Session) -> Result<Option<String>> {
        Ok(crate::run::drive::last_answer(&self.ctx, session)?)
    }

    /// Whether a session was seeded and has had no prompt since.
    pub fn is_freshly_seeded(&self, session: &Session) -> Result<bool> {
        Ok(crate::run::drive::is_freshly_seeded(&self.ctx, session)?)
    }
    /// Checks that a place exists, before work that needs it is started.
    pub fn check_place(&self, spot: Spot) -> Result<()> {
        Ok(crate::run::drive::open::check_place(&self.ctx, spot)?)
    }

    /// Opens a pane with an agent in it, and waits until the agent can take input.
    pub fn open_in(&self, spot: Spot, opening: &Opening<'_>) -> Result<Pane> {
        Ok(crate::run::drive::open::open_in(&self.ctx, spot, opening)?)
    }
    /// Sends a message to a session and waits until its agent starts on it; with `wait`, until it has answered. A
    /// session that isn't running in a terminal gets it headless.
    pub fn send(&self, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
        Ok(crate::fork::unstarted::send(&self.ctx, target, text, wait, timeout)?)
    }

    /// Sends a message to a session headless, from a background process. Returns when the agent starts on it, or
    /// immediately if the message is queued.
    pub fn send_in_background(&self, session: &Session, text: &str) -> Result<Sent> {
        Ok(crate::run::drive::background::send_in_background(&self.ctx, session, text)?)
    }

    /// Starts a session headless, from a background process. Returns when its agent starts on the first prompt.
    pub fn start_in_background(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        request: &LaunchRequest,
    ) -> Result<BackgroundStart> {
        Ok(crate::jobs::start_in_background(&self.ctx, agent, name, request)?)
    }

    /// Ends background processes and the agents that they started.
    pub fn cancel_workers(&self, workers: &[WorkerProcess]) {
        crate::run::worker::cancel(workers);
    }

    /// Why the last message in the background wasn't answered, if it wasn't.
    pub fn last_failure(&self, session: &Session) -> Option<ReportedError> {
        crate::run::drive::background::last_failure(&self.ctx, session)
    }
}

/// Does the job that another process of tine wrote to `input`, and reports on `output`. Returns whether it succeeded.
pub fn run_worker(context: Context, input: impl std::io::Read, output: impl std::io::Write) -> bool {
    match Tine::open(context) {
        Ok(tine) => jobs::run_worker(Ok(&tine.ctx), input, output),
        Err(error) => jobs::run_worker(Err(ReportedError::new(&error, error.advice())), input, output),
    }
}

#[cfg(test)]
impl Tine {
    /// The registry, for tests that read or damage it.
    pub(crate) fn registry(&self) -> std::cell::RefMut<'_, Registry> {
        self.ctx.registry()
    }
}
