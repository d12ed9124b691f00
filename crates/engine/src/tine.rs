//! The façade: one value that every front end works with. It decides nothing itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use agents::Blocks;
use transcript::{Agent, SessionId, SessionName, SessionView};

use crate::ctx::Ctx;
use crate::sessions::survey;
use crate::*;

/// One run of tine over one person's sessions.
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
    /// The sessions that are asked for, newest first. Subagents' threads and empty files are left out.
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

    /// Finds the session that `spec` means, among all.
    pub fn resolve(&self, spec: &str, progress: &dyn Progress) -> Result<Selection> {
        Ok(survey::resolve(&self.ctx, spec, progress)?)
    }

    /// Finds the session that `spec` means, among `sessions`.
    pub fn resolve_among(&self, sessions: &[Session], spec: &str) -> Result<Selection> {
        Ok(survey::resolve_among(&self.ctx, sessions, spec)?)
    }

    /// The conversation up to and including turn `until`; a seed that it may begin with is one line.
    pub fn read(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        Ok(survey::read(&self.ctx, session, until)?)
    }

    /// The conversation as the agent keeps it, with the seed that it may begin with.
    pub fn read_all(&self, session: &Session, until: Option<u32>) -> Result<Box<dyn Blocks>> {
        Ok(survey::read_all(&self.ctx, session, until)?)
    }

    /// Remembers that a session was used, so that `-` means it.
    pub fn remember_use(&self, session: &Session) {
        survey::remember_use(&self.ctx, session);
    }
    /// Creates the planned fork. If anything fails, nothing is left behind.
    pub fn apply_fork(&self, plan: &Plan, progress: &dyn CopyProgress) -> Result<Forked> {
        Ok(fork::apply::apply_fork(&self.ctx, plan, progress)?)
    }
    /// Makes a worktree of the repository around us, on a new branch, for a session that is to begin in it.
    pub fn new_worktree(&self, branch: &str, base: Option<&str>) -> Result<(PathBuf, i64)> {
        Ok(fork::empty::new_worktree(&self.ctx, branch, base)?)
    }

    /// Decides how the session that was started as `source` is cloned. Nothing where there is no such session.
    pub fn plan_empty_clone(
        &self,
        source: &str,
        name: Option<SessionName>,
        target: &Path,
    ) -> Result<Option<EmptyClone>> {
        Ok(fork::empty::plan_empty_clone(&self.ctx, source, name, target)?)
    }

    /// Makes such a clone. A name that nobody chose gives way where somebody was quicker to take it.
    pub fn apply_empty_clone(
        &self,
        plan: EmptyClone,
        target: &Path,
        progress: &dyn CopyProgress,
    ) -> Result<(EmptyClone, i64)> {
        Ok(fork::empty::apply_empty_clone(&self.ctx, plan, target, progress)?)
    }

    /// An agent's program, as the configuration names it or as a shell would find it.
    pub fn program(&self, agent: Agent) -> Result<agents::Program> {
        Ok(program::program(&self.ctx, agent)?)
    }

    /// The command that opens a fork in this terminal.
    pub fn open_command(&self, plan: &Plan, fork: &SessionView) -> Result<Command> {
        Ok(fork::launch::open_command(&self.ctx, plan, fork)?)
    }

    /// Runs the agent of a fork, and leads the person there where `focus` says so. That it fails does not undo the fork.
    pub fn open_fork(&self, forked: &Forked, focus: bool, ready_within: Duration) -> Result<Opened> {
        Ok(fork::open::open_fork(&self.ctx, forked, focus, ready_within)?)
    }
    /// Decides everything about a fork. Nothing is touched.
    pub fn plan_fork(&self, request: &Request) -> Result<Plan> {
        Ok(fork::plan::plan_fork(&self.ctx, request)?)
    }
    /// Decides several forks of the session in `request`. Nothing is touched.
    pub fn plan_forks(&self, request: &Request, parts: &[Part]) -> Result<Vec<Plan>> {
        Ok(fork::several::plan_forks(&self.ctx, request, parts)?)
    }

    /// Makes several forks as one operation, and calls `progress` with the number of those that are complete. On any
    /// failure none of them is left.
    pub fn apply_forks(&self, plans: &[Plan], progress: &dyn Fn(usize)) -> Result<Vec<Forked>> {
        Ok(fork::several::apply_forks(&self.ctx, plans, progress)?)
    }

    /// Starts a fork that has not started: its agent is handed the transcript that was kept. A session that has started
    /// comes back as it is. If this fails, the fork has still not started. It works in `directory`, or where it was made to.
    pub fn start_fork(&self, session: Session, directory: Option<&Path>) -> Result<Session> {
        Ok(fork::unstarted::start_fork(&self.ctx, session, directory)?)
    }
    /// Searches sessions. Updates the index first, for a few seconds at most, and rebuilds it if it is damaged. If a
    /// phrase is not found, searches for its words and adds a notice.
    pub fn search(&self, asking: Asking<'_>) -> Result<Answer> {
        Ok(crate::search::search(&self.ctx, asking)?)
    }
    /// Looks for sessions in a collection of qmd; where it does not answer, the most recent sessions stand in.
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
    /// Ranks past sessions by how well they suit an intent. Nothing is touched but the index.
    pub fn suggest(
        &self,
        intent: &Intent,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<Suggestions> {
        Ok(crate::search::smart::suggest(&self.ctx, intent, progress, indexing)?)
    }
    /// Brings the index up to date, to its end or until time is up.
    pub fn update_index(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::update_index(&self.ctx, time, rebuild, progress, indexing)?)
    }

    /// Makes the vectors that are missing, to the last or until time is up. Words come first: see [`Tine::update_index`].
    pub fn update_vectors(
        &self,
        time: Option<Duration>,
        rebuild: bool,
        progress: &dyn Progress,
        indexing: &dyn IndexProgress,
    ) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::update_vectors(&self.ctx, time, rebuild, progress, indexing)?)
    }

    /// What there is of the index, without changing it.
    pub fn index_status(&self, progress: &dyn Progress) -> Result<IndexStatus> {
        Ok(crate::search::upkeep::index_status(&self.ctx, progress)?)
    }
    /// Where a fork of a session that was found would work, or why it can't be forked as asked.
    pub fn check_found(&self, found: &Found, request: &Request) -> std::result::Result<Workspace, Refusal> {
        crate::search::smart::choice::check_found(&self.ctx, found, request)
    }

    /// The same for a fork of the whole session in its own directory. A busy session can be forked once it is idle.
    pub fn check_result(&self, found: Found) -> Choice {
        crate::search::smart::choice::check_result(&self.ctx, found)
    }

    /// The best session that can be forked as asked. Each is planned before it is chosen; one whose plan fails is refused
    /// from then on, and the next one is tried.
    pub fn choose(&self, choices: &mut [Choice], request: impl Fn(&Found) -> Request) -> Option<usize> {
        crate::search::smart::choice::choose(&self.ctx, choices, request)
    }
    /// The branches of a session that are not its history, the latest first.
    pub fn branches(&self, session: &Session) -> Result<Vec<BranchView>> {
        Ok(crate::sessions::branches::branches(&self.ctx, session)?)
    }
    /// Everything known about a session; its forks are looked for among `sessions`.
    pub fn info(&self, session: &Session, sessions: &[Session]) -> Result<Info> {
        Ok(crate::run::info::info(&self.ctx, session, sessions)?)
    }

    /// What a session is doing now.
    pub fn status(&self, target: &Target) -> Result<Status> {
        Ok(crate::run::status::status(&self.ctx, target)?)
    }

    /// What every open session is doing now.
    pub fn open_sessions(&self, progress: &dyn Progress) -> Result<Vec<Status>> {
        Ok(crate::run::status::open_sessions(&self.ctx, progress)?)
    }

    /// Which of `sessions` was forked from which, as trees.
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

    /// A place of this size in the terminal around tine; nothing where that has no panes.
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

    /// The name under which a session would be adopted, or why it would not. `taken` are names that others of the same
    /// run will have.
    pub fn plan_adoption(
        &self,
        session: &Session,
        name: Option<SessionName>,
        parent: Option<&Session>,
        taken: &HashSet<SessionName>,
    ) -> Result<SessionName> {
        Ok(crate::naming::adopt::plan_adoption(&self.ctx, session, name, parent, taken)?)
    }

    /// Gives a session another name, in tine and in the agent's own list.
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

    /// Decides how a new session is started and takes its name. Where none was chosen, one that somebody else takes at
    /// the same time gives way to the next.
    pub fn begin(
        &self,
        agent: Agent,
        name: Option<&SessionName>,
        launch: &Launch,
        becomes_agent: bool,
    ) -> Result<Start> {
        Ok(crate::naming::start::begin(&self.ctx, agent, name, launch, becomes_agent)?)
    }

    /// Where a session works that was started and in which nothing was said.
    pub fn directory_of_unbegun(&self, name: &SessionName) -> Result<Option<PathBuf>> {
        Ok(crate::naming::start::directory_of_unbegun(&self.ctx, name)?)
    }

    /// The command that starts it in this terminal.
    pub fn start_command(&self, start: &Start) -> Result<Command> {
        Ok(crate::naming::start::start_command(&self.ctx, start)?)
    }

    /// Starts it without a terminal: says something, and returns the answer.
    pub fn start_headless(&self, start: &Start, text: &str) -> Result<String> {
        Ok(crate::naming::start::start_headless(&self.ctx, start, text)?)
    }

    /// The words that resume a session, and the command for this terminal.
    pub fn resume(&self, session: &Session, directory: &Path, launch: &Launch) -> Result<(Vec<String>, Command)> {
        Ok(crate::naming::start::resume(&self.ctx, session, directory, launch)?)
    }

    /// Says something in a session without a terminal.
    pub fn resume_headless(&self, session: &Session, directory: &Path, launch: &Launch, text: &str) -> Result<String> {
        Ok(crate::run::headless::resume_headless(&self.ctx, session, directory, launch, text)?)
    }
    /// Moves a session into the trash, with the worktree in which it works if one is given, and returns the operation that
    /// `undo` reverses.
    pub fn delete(&self, session: &Session, worktree: Option<&OwnWorktree>) -> Result<i64> {
        Ok(crate::operations::delete::delete(&self.ctx, session, worktree)?)
    }

    /// What was said before a `/clear` is the same session to people, and is deleted with it; unless somebody went on
    /// with it since, or has it open.
    pub fn goes_along(&self, session: &Session) -> Result<Vec<(SessionId, PathBuf)>> {
        Ok(crate::operations::delete::goes_along(&self.ctx, session)?)
    }
    /// The worktree in which a session works, if tine made it and it is still there.
    pub fn worktree_of(&self, session: &Session) -> Result<Option<OwnWorktree>> {
        Ok(crate::operations::leftovers::worktree_of(&self.ctx, session)?)
    }
    /// Undoes an operation: the given one, or the last one that can be undone.
    pub fn undo(&self, id: Option<i64>, force: bool) -> Result<Operation> {
        Ok(crate::operations::undo::undo(&self.ctx, id, force)?)
    }
    /// Looks at agents, files, registry and cache.
    pub fn doctor(&self, progress: &dyn Progress) -> Result<Report> {
        Ok(crate::setup::doctor::doctor(&self.ctx, progress)?)
    }
    /// The agents to set up where none is named.
    pub fn agents_for_setup(&self, scope: Option<agents::Scope>) -> Vec<Agent> {
        crate::setup::agents_for_setup(&self.ctx, scope)
    }

    /// Decides what has to be changed.
    pub fn plan_setup(&self, request: &SetupRequest) -> Result<SetupPlan> {
        Ok(crate::setup::plan_setup(&self.ctx, request)?)
    }

    /// Does what was planned; another tine that does the same at the same time is waited for.
    pub fn apply_setup(&self, plan: &SetupPlan) -> Result<()> {
        Ok(crate::setup::apply_setup(&self.ctx, plan)?)
    }

    /// How things stand in an agent.
    pub fn setup_status(&self, agent: Agent) -> Result<SetupStatus> {
        Ok(crate::setup::setup_status(&self.ctx, agent)?)
    }

    /// Rebuilds a damaged or lost registry from a backup, and puts what lies in the trash back into the log. Returns what
    /// was done, one sentence each.
    pub fn repair(&self) -> Result<Vec<String>> {
        Ok(crate::setup::repair::repair(&self.ctx)?)
    }
    /// Puts a launch together: the configuration's profile, then what was asked for.
    pub fn launch_for(&self, agent: Agent, request: &LaunchRequest) -> Result<Launch> {
        Ok(crate::run::profile::launch_for(&self.ctx, agent, request)?)
    }

    /// A launch of a session that is there: its profile with more arguments, which are not kept.
    pub fn launch_of(&self, session: &SessionView, more: &[String], prompt: Option<String>) -> Result<Launch> {
        Ok(crate::run::profile::launch_of(&self.ctx, session, more, prompt)?)
    }

    /// Waits until a session is idle or stopped, and returns it as it is then. `tell` hears of every look.
    pub fn wait_until_idle(
        &self,
        session: Session,
        timeout: Option<Duration>,
        tell: &dyn Fn(&Session, Duration),
    ) -> Result<Session> {
        Ok(crate::run::wait::wait_until_idle(&self.ctx, session, timeout, tell)?)
    }

    /// Waits until all of `watched` are done with what they were told, or one of them where `any` says so, and returns
    /// those that are. One that asks for a permission ends the waiting: nobody but a person can answer.
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

    /// What the pane of a session shows in which nothing was said yet.
    pub fn screen_unbegun(&self, name: &SessionName) -> Result<String> {
        Ok(crate::run::drive::control::screen_unbegun(&self.ctx, name)?)
    }

    /// Brings the pane of a session to front in which nothing was said yet.
    pub fn focus_unbegun(&self, name: &SessionName) -> Result<()> {
        Ok(crate::run::drive::control::focus_unbegun(&self.ctx, name)?)
    }

    /// Ends a session in which nothing was said yet; nothing of it is left.
    pub fn stop_unbegun(&self, name: &SessionName) -> Result<()> {
        Ok(crate::run::drive::control::stop_unbegun(&self.ctx, name)?)
    }

    /// Interrupts what a session is doing, and waits until it has stopped doing it.
    pub fn interrupt(&self, session: &Session) -> Result<Session> {
        Ok(crate::run::drive::control::interrupt(&self.ctx, session)?)
    }

    /// Ends the agent of a session, if it runs: it is asked to, and made to where it does not.
    pub fn stop(&self, session: &Session) -> Result<()> {
        Ok(crate::run::drive::control::stop(&self.ctx, session)?)
    }

    /// Whether a session is done with what it was told: what it says of itself and what is written down agree.
    pub fn is_done(&self, session: &Session) -> bool {
        crate::run::drive::is_done(&self.ctx, session)
    }

    /// A session as it is now.
    pub fn refresh(&self, session: &Session) -> Result<Session> {
        Ok(crate::sessions::refresh::refresh(&self.ctx, session)?)
    }

    /// The last thing that the agent answered: what it said since its last call of a tool.
    pub fn last_answer(&self, session: &Session) -> Result<Option<String>> {
        Ok(crate::run::drive::last_answer(&self.ctx, session)?)
    }

    /// Whether a session was seeded and nothing was asked in it since.
    pub fn is_freshly_seeded(&self, session: &Session) -> Result<bool> {
        Ok(crate::run::drive::is_freshly_seeded(&self.ctx, session)?)
    }
    /// Whether a place is there. What needs it is not begun otherwise.
    pub fn check_place(&self, spot: Spot) -> Result<()> {
        Ok(crate::run::drive::open::check_place(&self.ctx, spot)?)
    }

    /// Opens a pane with an agent in it, and waits until the agent can take input.
    pub fn open_in(&self, spot: Spot, opening: &Opening<'_>) -> Result<Pane> {
        Ok(crate::run::drive::open::open_in(&self.ctx, spot, opening)?)
    }
    /// Sends a message to a session, and waits until its agent works on it; with `wait`, until it has answered. A session
    /// that doesn't run, or not in a terminal, gets it without one.
    pub fn send(&self, target: &Target, text: &str, wait: bool, timeout: Option<Duration>) -> Result<Sent> {
        Ok(crate::fork::unstarted::send(&self.ctx, target, text, wait, timeout)?)
    }

    /// Sends a message to a session without a terminal, by a background process. Returns when the agent works on it, or at
    /// once if the message has to wait for its turn.
    pub fn send_in_background(&self, session: &Session, text: &str) -> Result<Sent> {
        Ok(crate::run::drive::background::send_in_background(&self.ctx, session, text)?)
    }

    /// Starts a session without a terminal, by a background process. Returns when its agent works on the first prompt.
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
    /// The registry, for tests that look at it or damage it.
    pub(crate) fn registry(&self) -> std::cell::RefMut<'_, Registry> {
        self.ctx.registry()
    }
}
