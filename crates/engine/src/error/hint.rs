//! What to do about each error.

use std::io;

use transcript::{PointError, SessionView, State};

use super::Error;

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::UnknownSession { similar, .. } if similar.is_empty() => {
                Some("`tine list --all` shows every session; a name, an id, its beginning or a path will do".into())
            }
            Error::UnknownSession { similar, .. } => Some(format!("did you mean {}?", similar.join(" or "))),
            Error::Ambiguous { matches, .. } => {
                let lines: Vec<String> = matches.iter().take(10).map(describe).collect();
                let more = matches.len().saturating_sub(10);
                let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
                Some(format!("say more of the id, or give the path:\n{}{rest}", lines.join("\n")))
            }
            Error::NoSessionHere(_) => Some("`tine list --all` shows the sessions of every directory".into()),
            Error::BadQuery { .. } | Error::EmptyQuery => {
                Some("words, \"a phrase\", -without, and filters: agent:codex file:src/auth.rs since:2w".into())
            }
            Error::EmptyIntent => Some("say in plain words what you want to build".into()),
            Error::CommonIntent(_) => Some("add a word that is not: what you want to build, in plain words".into()),
            Error::NoSuchTime { .. } => Some("`since` has to be earlier than `until`".into()),
            Error::NoMeaning => Some("`--engine words` is; `hybrid` needs the cargo feature `semantic`".into()),
            Error::OnlyCommonWords(_) => Some("add a word that is not, or put it in quotes: \"to be or not\"".into()),
            Error::QueryTooLong { .. } => Some("say it in a sentence".into()),
            Error::Export { .. } => Some("is the disk full, or the folder somebody else's?".into()),
            Error::Index { trouble, .. } => Some(trouble.hint().into()),
            Error::NoLastSession => Some("name one; `tine list` shows them".into()),
            Error::NoTurn { source: PointError::OutOfRange { turns, .. }, session } => Some(match turns {
                0 => "nothing was asked in it yet".into(),
                turns => format!("it ends at turn {turns}; `tine show {session}` lists them"),
            }),
            Error::NoTurn { .. } | Error::BadPoint(_) => {
                Some("`SESSION@3` is the point after turn 3, `SESSION@-1` leaves out the last turn".into())
            }
            Error::BadName(_) => Some("for example `auth-fix`".into()),
            Error::NewerRegistry { .. } => Some("update tine, or set TINE_REGISTRY to another file".into()),
            Error::Registry { .. } => Some("is the disk full, or the folder read-only? `tine doctor` looks".into()),
            Error::NameTaken(_) | Error::NoNameLeft => {
                Some("give it another one; `tine list --all` shows those in use".into())
            }
            Error::AtWork { state: State::Waiting, .. } => Some(
                "it waits for a permission: answer it, wait with `--wait`, or say `--now` to fork at its last \
                 complete turn"
                    .into(),
            ),
            Error::AtWork { .. } => Some("wait with `--wait`, or say `--now` to fork at its last complete turn".into()),
            Error::NothingToFork(_) => Some("say something in it first".into()),
            Error::NoDirectory(_) => Some("make it first, or fork to another one with `--to DIR`".into()),
            Error::DirectoryGone { now: Some(now), session, .. } => {
                let now = now.display();
                Some(format!("its repository is at {now} now: `tine resume {session} --to {now}` goes on there"))
            }
            Error::DirectoryGone { now: None, session, .. } => {
                Some(format!("its repository was not found; `tine resume {session} --to DIR` goes on in another place"))
            }
            Error::NoGit => Some("install git, or fork without a worktree".into()),
            Error::Git { directory, .. } => Some(format!("`git -C {} status` may tell more", directory.display())),
            Error::NotAdded { .. } => Some(
                "nothing of the fork is left; is the disk full, the folder read-only, or did the hook `post-checkout` \
                 fail? `worktree.place` in the configuration file says where worktrees are"
                    .into(),
            ),
            Error::BadPlace { .. } => {
                Some("`worktree.place` in the configuration file says where worktrees are".into())
            }
            Error::NothingCommitted(_) => Some("a worktree begins at a commit: `git commit` first, or fork without one".into()),
            Error::NoWorkingTree(_) => {
                Some("fork to a directory in which files are checked out: `--to DIR`".into())
            }
            Error::NoRepository(_) => Some("`git init` makes one; `--to DIR` needs none".into()),
            Error::InTheMiddle { .. } => Some("finish or abort that first".into()),
            Error::Detached(_) => {
                Some("`git switch BRANCH` first; the worktree begins at the branch that the source works on".into())
            }
            Error::NoCommit(_) => Some("for example `main`, a tag or a hash".into()),
            Error::BadBranch(_) => Some("for example `try/cookies`".into()),
            Error::BranchExists(_) | Error::BranchRival { .. } => Some("give another name: `--worktree NAME`".into()),
            Error::CheckedOut { tree, .. } => {
                Some(format!("work there with `--to {}`, or give another name", tree.display()))
            }
            Error::NoAgent { agent, .. } => Some(format!(
                "install {}, or say in the configuration where it is: `[agents.{agent}] command = \"/path\"`",
                agent.product_name()
            )),
            Error::TooOld { agent, .. } => Some(format!(
                "nothing of the fork is left; update {} to {} or newer, or fork it for itself with `--method copy`",
                agent.product_name(),
                crate::fork::oldest_known(*agent)
            )),
            Error::Program(_) => Some(
                "nothing of the fork is left; to go on with the same agent, `--method copy` needs no start of it".into(),
            ),
            Error::OtherAgent { .. } => Some("`--method seed` tells it what was said".into()),
            Error::NativeDiffers { .. } => {
                Some("nothing of the fork is left; the agent cannot do it: `--method copy` can".into())
            }
            Error::Unanswered { session, .. } => Some(format!("it was interrupted or failed; `tine show {session}` shows how it ended")),
            Error::Cancelled => None,
            Error::Background(_) => Some("say it with `--wait`".into()),
            Error::NotOpened { fork, operation, source } => {
                // What is said of a fork that the agent failed to make is not true of one that it failed to open.
                let hint = source.hint().filter(|_| !matches!(**source, Error::Program(_)));
                let hint = hint.map(|hint| format!("{hint}; ")).unwrap_or_default();
                Some(format!(
                    "{hint}the fork {fork} was made: `tine resume {fork}` goes on, `tine undo {operation}` takes it back"
                ))
            }
            Error::StillAtWork { state: State::Waiting, .. } => {
                Some("it waits for a person: `tine focus` leads there; to fork it at its last complete turn, say `--now`".into())
            }
            Error::StillAtWork { session, .. } => {
                Some(format!("`tine wait {session}` waits for it; to fork it at its last complete turn, say `--now`"))
            }
            Error::NoProfile { known, file, .. } if known.is_empty() => {
                Some(format!("`[profiles.NAME]` in {} makes one", file.display()))
            }
            Error::NoProfile { known, file, .. } => Some(format!("{} has {}", file.display(), known.join(", "))),
            Error::NoLaunchFile { .. } => {
                Some("it was named on the command line, or by the profile in the configuration file".into())
            }
            Error::NotAnOption { .. } => {
                Some("one text may be said first: behind `--` in quotation marks, or with `--prompt`".into())
            }
            Error::NotAnswered { session: Some(session), .. } => Some(format!(
                "the session is there: `tine show {session}` tells how far it came, `tine resume {session}` goes on"
            )),
            Error::OldFormat(_) => Some("`tine fork` with `--method seed` tells it what was said".into()),
            Error::PromptTooLong { .. } => Some("write it into a file, and tell the agent to read that".into()),
            Error::HeldBack(session) => Some(format!("`tine resume {session} --in tmux` opens it")),
            Error::NotSaid { session, .. } => Some(format!("`tine send {session} --wait` says more")),
            Error::NotAnswered { session: None, .. } => Some("no session was begun, and the name is free again".into()),
            Error::ProfileOfOther { agent, .. } => Some(format!("say `--agent {agent}`")),
            Error::NoSuchOption { .. } => Some("give its own options behind `--`".into()),
            Error::Tracked { .. } => Some("`tine rename` gives it another name".into()),
            Error::NoTerminal => Some("say which, as `--in tmux`, or `--in headless` for none".into()),
            Error::NoTerminalProgram(_) => Some("install it, or say another place with `--in`".into()),
            Error::Terminal { .. } => {
                Some("is that terminal still there? `--in` names another place, `--in none` only prints the command".into())
            }
            Error::NoPane { runs: true, .. } => {
                Some("`tine resume` tells how it can be opened; stop it where it runs first".into())
            }
            Error::NoPane { session, .. } => Some(format!("`tine resume {session} --in tmux` opens it")),
            Error::NotReady { .. } => {
                Some("`tine focus` leads there; `--ready-timeout` waits longer".into())
            }
            Error::Asks { session, .. } => {
                Some(format!("`tine focus {session}` leads there; tine answers no such questions"))
            }
            Error::PaneClosed { .. } => Some("run it with `--in here` to see why".into()),
            Error::NotTakenUp(_) => Some("`tine read --screen` shows what it does; `tine focus` leads there".into()),
            Error::OwnAncestor { .. } => Some("`tine tree` shows who comes from whom".into()),
            Error::SameName(_) => None,
            Error::Unbegun(name) => Some(format!("`tine delete {name}` gives the name up")),
            Error::TranscriptGone { name, .. } => {
                Some(format!("`tine delete {name}` gives the name up; a new session may take it as well"))
            }
            Error::BadPrompt("is too long for a command line") => {
                Some("`--in headless` gives it by standard input".into())
            }
            Error::BadPrompt(_) => Some("say something that is text".into()),
            Error::IsOpen { .. } => Some("end the agent first".into()),
            Error::OpenElsewhere { session, .. } => {
                Some(format!("agents do not lock: `tine fork {session}` is safe, `--yes` goes on all the same"))
            }
            Error::StillNeeded { .. } => {
                Some("delete those first; a fork by `--method copy` needs nothing of its source".into())
            }
            Error::InTheWay(_) => Some("remove it, or give another name: `--worktree NAME`".into()),
            Error::IntoItself { .. } => Some("choose a place beside it".into()),
            Error::TargetExists(_) => Some("choose another place, or empty it first".into()),
            Error::BadTarget(_) => Some("choose a path in UTF-8".into()),
            Error::NotCopied { .. } => {
                Some("nothing of the fork is left; `--worktree` and `--to DIR` do without a copy of everything".into())
            }
            Error::SharedRepository(_) => Some("fork into a worktree instead: `--worktree`".into()),
            Error::Unmerged { .. } => {
                Some("decide and `git add` it, or fork without `--carry`, which leaves changes where they are".into())
            }
            Error::SetupFailed { .. } => {
                Some("nothing of the fork is left; `worktree.setup` in the configuration file says what runs".into())
            }
            Error::BadConfig { .. } => Some("put it right, or take it out: everything has a default".into()),
            Error::WorkedInCopy { id, .. } => {
                Some(format!("keep what you need of it elsewhere; `tine undo {id} --force` removes it all the same"))
            }
            Error::WorkedIn { id } => Some(format!(
                "keep what you need of it elsewhere; `tine undo {id} --force` removes it all the same, but for a branch \
                 with new commits"
            )),
            Error::WorksThere { id, session, .. } => {
                Some(format!("`tine delete {session}` first; `tine undo {id} --force` removes it all the same"))
            }
            Error::RunsThere { id, .. } => {
                Some(format!("end it, or let it go elsewhere; `tine undo {id} --force` removes it all the same"))
            }
            Error::Locked { id, path } => Some(format!(
                "`git worktree unlock {}` first; `tine undo {id} --force` removes it all the same",
                path.display()
            )),
            Error::BranchInUse { id, .. } => Some(format!(
                "check out another one there; `tine undo {id} --force` takes back the rest and leaves the branch"
            )),
            Error::OtherTree { id, .. } => {
                Some(format!("`tine undo {id} --force` takes back the rest and leaves it as it is"))
            }
            Error::InTrash { deleted_by, .. } => Some(format!("`tine undo {deleted_by}` brings it back")),
            Error::TrashGone(_) => Some("it cannot be brought back; `tine log` lists operations".into()),
            Error::ThereAgain { id, .. } => {
                Some(format!("move it away; `tine undo {id}` then brings back what was deleted"))
            }
            Error::CannotWrite { .. } => {
                Some("nothing of the fork is left; is the disk full, or the folder read-only?".into())
            }
            Error::CopyDiffers { .. } => Some(
                "nothing of the fork is left; `--method seed` tells the agent what was said instead; please report this"
                    .into(),
            ),
            Error::NothingToUndo(_) | Error::NotUndoable { .. } => Some("`tine log` lists operations".into()),
            Error::BeingUndone(_) => {
                Some("another tine is at it; try again when that is done, or name an operation of `tine log`".into())
            }
            Error::HasMoved { .. } => Some("`tine delete` moves it into the trash".into()),
            Error::NotRemoved(_) => Some("is the folder read-only? Nothing was forgotten; try again".into()),
            Error::HasGrown { id } => Some(format!("`tine undo {id} --force` removes it all the same")),
            Error::BadSettings { .. } => {
                Some("nothing was changed; put it right first, the agent cannot read it either".into())
            }
            Error::NotSetUp { .. } => {
                Some("the file is as it was; is it or its folder read-only, or the disk full?".into())
            }
            Error::SetupProgram(_) => Some("`tine setup --status` tells how things stand".into()),
            Error::NoHooks { .. } => Some(
                "none were installed; older versions have none, and without them tine notices forks when it next looks"
                    .into(),
            ),
            Error::ChangedMeanwhile(_) => Some("run it again to see what is to be done now".into()),
            Error::NoSuchScope { .. } => Some("leave that out: its hooks are for all projects".into()),
            Error::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("a name or an id has no `/`; a path leads to a transcript".into())
            }
            Error::Unreadable { .. } => None,
            Error::NotASession(_) => {
                Some("transcripts are the .jsonl files below ~/.claude/projects and ~/.codex".into())
            }
        }
    }
}

fn describe(session: &SessionView) -> String {
    let title = transcript::text::one_line(session.title.as_deref().unwrap_or("untitled"));
    let path = transcript::text::one_line(&session.path.to_string_lossy());
    format!("  {:<6} {}  {}  {path}", session.agent, session.id, transcript::text::clip(&title, 40))
}
