//! The façade that all front ends use. It makes no decisions itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents::Blocks;
use transcript::{Agent, SessionName, SessionView};

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
        if ctx.registry().is_kept()
            && let Err(error) = setup::clean_up(&ctx)
        {
            ctx.warn(error.to_string());
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

    /// The selected sessions, newest first, without subagents' threads and empty files. Lazy, so that long listings need
    /// little memory.
    pub fn listing(&self, filter: &Filter, progress: &dyn Progress) -> Result<Listing> {
        Ok(survey::listing(&self.ctx, filter, progress)?)
    }

    /// Every session, newest first.
    pub fn all_sessions(&self, progress: &dyn Progress) -> Result<Vec<Session>> {
        Ok(survey::all_sessions(&self.ctx, progress)?)
    }

    /// Finds the session that `spec` refers to, among `sessions`.
    pub fn resolve_among(&self, sessions: &[Session], spec: &str) -> Result<Selection> {
        Ok(survey::resolve_among(&self.ctx, sessions, spec)?)
    }

    /// The conversation up to and including turn `until`.
    pub fn read(&self, session: &Session, until: Option<u32>, seed: SeedText) -> Result<Box<dyn Blocks>> {
        Ok(survey::read(&self.ctx, session, until, seed)?)
    }

    /// The conversation in pages, for a reader that begins at its end.
    pub fn pages(&self, session: &Session) -> Pages<'_> {
        Pages::of(&self.ctx, session)
    }

    /// Records that a session was used, so that `-` refers to it.
    pub fn remember_use(&self, session: &Session) {
        survey::remember_use(&self.ctx, session);
    }

    /// Creates the planned fork. If anything fails, nothing is left behind.
    pub fn apply_fork(&self, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
        Ok(fork::apply::apply_fork(&self.ctx, plan, progress)?)
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
    pub fn search(&self, asking: SearchRequest<'_>) -> Result<Answer> {
        Ok(crate::search::request::search(&self.ctx, asking)?)
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

    /// Updates a part of the index, completely or until time is up.
    pub fn update_index(
        &self,
        request: IndexRequest,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        Ok(crate::search::index::upkeep::update_index(&self.ctx, request, progress, indexing)?)
    }

    /// The state of the index, without changing it.
    pub fn index_status(&self, progress: &dyn Progress) -> Result<IndexStatus> {
        Ok(crate::search::index::upkeep::index_status(&self.ctx, progress)?)
    }

    /// Where a fork of a found session would work, or why it cannot be forked as requested; without a request, as a whole
    /// and in its own directory, once it is idle.
    pub fn check_found(&self, found: &Found, request: Option<&Request>) -> std::result::Result<Workspace, Refusal> {
        crate::search::smart::choice::check_found(&self.ctx, found, request)
    }

    /// The best session that can be forked as requested. Each is planned before it is chosen; if its plan fails, it is
    /// refused and the next one is tried.
    pub fn choose(&self, choices: &mut [Choice], request: impl Fn(&Found) -> Request) -> Option<usize> {
        crate::search::smart::choice::choose(&self.ctx, choices, request)
    }

    /// Who wrote the lines of a file, or one of them, according to the sessions of its project.
    pub fn blame(&self, file: &Path, line: Option<usize>, progress: &dyn Progress) -> Result<Blame> {
        let sessions = survey::all_sessions(&self.ctx, progress)?;
        Ok(crate::code::blame::blame(&self.ctx, &sessions, file, line)?)
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
    pub fn events(&self, cursor: &mut EventCursor) -> Result<Vec<SessionEvent>> {
        Ok(crate::run::events::events(&self.ctx, cursor)?)
    }

    /// The changes that tine made, newest first.
    pub fn log(&self) -> Result<Vec<LogEntry>> {
        Ok(self.ctx.registry().log()?)
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

    /// Frees the name of a session that has no messages or whose transcript no longer exists.
    pub fn forget(&self, name: &SessionName) -> Result<()> {
        Ok(self.ctx.registry().forget_name(name)?)
    }

    /// Checks that an agent is installed and that a name is free.
    pub fn check_start(&self, agent: Agent, name: Option<&SessionName>) -> Result<()> {
        program::program(&self.ctx, agent)?;
        Ok(name.map_or(Ok(()), |name| operations::free_names::check_name(&self.ctx, name))?)
    }

    /// Decides how to start a new session in `place` and reserves its name. A generated name is replaced if another
    /// process takes it first.
    pub fn begin(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        request: &LaunchRequest,
        place: Place,
    ) -> Result<Start> {
        Ok(crate::naming::start::begin(&self.ctx, agent, name, request, place)?)
    }

    /// Starts the agent of a session that was begun. `prompt` is its first prompt if it was begun without one.
    pub fn open_start(&self, start: &Start, prompt: Option<&str>, at: OpenAt) -> Result<Opened> {
        Ok(crate::naming::start::open_start(&self.ctx, start, prompt, at)?)
    }

    /// Resumes a session in `directory`.
    pub fn open_session(&self, session: &Session, directory: &Path, launch: &Launch, at: OpenAt) -> Result<Opened> {
        Ok(crate::naming::start::open_session(&self.ctx, session, directory, launch, at)?)
    }

    /// Plans a deletion and touches nothing.
    pub fn plan_deletion(&self, session: &Session) -> Result<DeletionPlan> {
        Ok(crate::operations::delete::plan_deletion(&self.ctx, session)?)
    }

    /// Moves a session to the trash, with its worktree or copied directory if one is given, and returns the operation for
    /// `undo`.
    pub fn delete(&self, session: &Session, workspace: Option<&OwnWorkspace>) -> Result<i64> {
        Ok(crate::operations::delete::delete(&self.ctx, session, workspace)?)
    }

    /// Undoes an operation: the given one, or the last one that can be undone.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        Ok(crate::operations::undo::undo(&self.ctx, id, force)?)
    }

    /// Checks agents, files, registry and cache. With `repairs`, first restores a damaged or lost registry from a backup,
    /// and adds deletions found in the trash to the log.
    pub fn doctor(&self, repairs: bool, progress: &dyn Progress) -> Result<Report> {
        Ok(crate::setup::doctor::doctor(&self.ctx, repairs, progress)?)
    }

    /// Decides what to change.
    pub fn plan_setup(&self, request: &SetupRequest) -> Result<SetupPlan> {
        Ok(crate::setup::plan_setup(&self.ctx, request)?)
    }

    /// Makes the planned changes; waits for another tine that is doing the same.
    pub fn apply_setup(&self, plan: &SetupPlan) -> Result<()> {
        Ok(crate::setup::apply_setup(&self.ctx, plan)?)
    }

    /// The state of the setup in these agents, or if there are none, in those whose program or folder exists.
    pub fn setup_status(&self, agents: &[Agent]) -> Result<Vec<SetupStatus>> {
        Ok(crate::setup::setup_status(&self.ctx, agents)?)
    }

    /// The launch of an existing session: its profile plus more arguments, which are not stored.
    pub fn launch_of(&self, session: &SessionView, more: &[String], prompt: Option<String>) -> Result<Launch> {
        Ok(crate::run::profile::launch_of(&self.ctx, session, more, prompt)?)
    }

    /// Waits for sessions, and returns those that have reached the state that `until` asks for. A permission request ends
    /// the waiting, because only the user can answer it.
    pub fn wait_for(
        &self,
        watched: Vec<Session>,
        until: Until,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Vec<Session>> {
        Ok(crate::run::wait::wait_for(&self.ctx, watched, until, timeout, tell)?)
    }

    /// The screen of a session's pane.
    pub fn screen(&self, target: &Target) -> Result<String> {
        Ok(crate::run::drive::control::screen(&self.ctx, target)?)
    }

    /// Brings a session's pane to the front.
    pub fn focus(&self, target: &Target) -> Result<()> {
        Ok(crate::run::drive::control::focus(&self.ctx, target)?)
    }

    /// Interrupts a session and waits until it has stopped working.
    pub fn interrupt(&self, session: &Session) -> Result<Session> {
        Ok(crate::run::drive::control::interrupt(&self.ctx, session)?)
    }

    /// Ends the agent of a session, if it runs: first politely, then by force. This frees the name of a session without
    /// messages.
    pub fn stop(&self, target: &Target) -> Result<()> {
        Ok(crate::run::drive::control::stop(&self.ctx, target)?)
    }

    /// The current state of a session.
    pub fn refresh(&self, session: &Session) -> Result<Session> {
        Ok(crate::sessions::refresh::refresh(&self.ctx, session)?)
    }

    /// The outcome of a session's last prompt.
    pub fn last_answer(&self, session: &Session) -> Result<LastAnswer> {
        Ok(crate::run::drive::last_answer(&self.ctx, session)?)
    }

    /// Opens a chat. Its events are passed to `report`, on a thread of the chat.
    pub fn open_chat(
        &self,
        request: &ChatRequest,
        report: impl Fn(agents::chat::ChatEvent) + Send + 'static,
    ) -> Result<OpenChat> {
        Ok(crate::naming::chat::open_chat(&self.ctx, request, report)?)
    }

    /// Sends a message to a session and waits until its agent starts on it; with `wait`, until it has answered. A
    /// session that isn't running in a terminal gets it headless.
    pub fn send(&self, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
        Ok(crate::fork::unstarted::send(&self.ctx, target, text, wait, timeout)?)
    }

    /// Starts a new session next to others, in its own worktree if requested, in a pane or in the background. Returns when
    /// its agent has started on the first prompt.
    pub fn start_worker(&self, new: &NewWorker, at: OpenAt) -> Result<StartedWorker> {
        Ok(crate::fork::new_worker::start_worker(&self.ctx, new, at)?)
    }
}

impl OpenChat {
    /// Records the session of a new chat, once the agent has written its transcript. Returns whether it is known now.
    pub fn settle(&mut self, tine: &Tine, id: &transcript::SessionId) -> Result<bool> {
        Ok(crate::naming::chat::settle(&tine.ctx, self, id)?)
    }

    /// Ends the agent, and discards the session if it has no messages.
    pub fn close(self, tine: &Tine) {
        crate::naming::chat::close(&tine.ctx, self);
    }
}

impl TurnSummary {
    /// The turns of a session, for choosing one. Of a large session, only the last ones.
    pub fn all(tine: &Tine, session: &Session) -> Result<Vec<TurnSummary>> {
        Ok(crate::sessions::outline::turns(&tine.ctx, session)?)
    }
}

impl TabRecord {
    /// The tabs that were open when the workbench was closed.
    pub fn all(tine: &Tine) -> Result<Vec<TabRecord>> {
        Ok(crate::naming::chat::tabs(&tine.ctx)?)
    }

    /// Stores the open tabs.
    pub fn remember(tine: &Tine, tabs: &[TabRecord]) -> Result<()> {
        Ok(crate::naming::chat::remember_tabs(&tine.ctx, tabs)?)
    }
}

impl CodeAt {
    /// The code of a session at the end of a turn, by default the last one.
    pub fn of(tine: &Tine, session: &Session, turn: Option<u32>) -> Result<CodeAt> {
        Ok(code::code_at(&tine.ctx, session, turn.unwrap_or(session.view.turns))?)
    }
}

impl CodeDiff {
    /// Prepares the comparison of two turns, or of one with the working tree.
    pub fn of(tine: &Tine, from: CodeAt, to: Option<CodeAt>) -> Result<CodeDiff> {
        Ok(code::diff::diff(&tine.ctx, from, to)?)
    }
}

impl RestorePlan {
    /// Plans to set `paths`, or everything, in `directory` to what they were. `what` names the turn. Touches nothing.
    pub fn of(tine: &Tine, code: &CodeAt, what: &str, paths: &[PathBuf], directory: &Path) -> Result<RestorePlan> {
        Ok(code::restore::plan(&tine.ctx, code, what, paths, directory)?)
    }

    /// Carries out the plan. Returns the operation for `undo`.
    pub fn apply(&self, tine: &Tine) -> Result<i64> {
        Ok(code::restore::apply(&tine.ctx, self)?)
    }
}

impl SnapshotList {
    /// The snapshots of the repository around a directory, of one session or all.
    pub fn of(tine: &Tine, directory: &Path, session: Option<&Session>) -> Result<SnapshotList> {
        Ok(code::snapshots::list::list(&tine.ctx, directory, session)?)
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
    /// Finds the session that `spec` refers to, among all sessions.
    pub(crate) fn resolve(&self, spec: &str, progress: &dyn Progress) -> Result<Selection> {
        Ok(survey::resolve(&self.ctx, spec, progress)?)
    }

    /// The registry, for tests that read or damage it.
    pub(crate) fn registry(&self) -> std::cell::RefMut<'_, Registry> {
        self.ctx.registry()
    }
}
