//! Errors of finding and reading sessions.

use std::io;
use std::path::PathBuf;

use transcript::text::{clip, one_line};
use transcript::{Agent, NameError, PointError, SessionName, SessionView};

use crate::advice::{Advice, FileError, wraps};
use crate::{config, registry, workspace};

/// The result of anything about sessions.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about a session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No session has that name, id, start of an id or path.
    #[error("session `{}` not found", one_line(.spec))]
    Unknown {
        /// The argument.
        spec: String,
        /// Names that are close to it.
        similar: Vec<String>,
    },
    /// It may be a name, but the names cannot be read.
    #[error("cannot look up the name `{}`: the registry cannot be read", one_line(.spec))]
    UnreadNames {
        /// The argument.
        spec: String,
    },
    /// Several sessions match.
    #[error("`{}` matches {} sessions", one_line(.spec), .matches.len())]
    Ambiguous {
        /// The argument.
        spec: String,
        /// All that match, newest first.
        matches: Vec<SessionView>,
    },
    /// `.` in a directory without sessions.
    #[error("no session in {}", .0.display())]
    NoSessionHere(PathBuf),
    /// `-` before any session was used.
    #[error("no session has been used yet")]
    NoLastSession,
    /// The session has no such turn.
    #[error("session `{session}` has no turn {}", point_text(.source))]
    NoTurn {
        /// The session.
        session: String,
        /// The argument.
        source: PointError,
    },
    /// The session has no such branch.
    #[error("session `{session}` has no branch `{branch}`")]
    NoBranch {
        /// The session.
        session: String,
        /// The requested branch.
        branch: String,
    },
    /// Several branches of the session begin that way.
    #[error("several branches of session `{session}` begin with `{branch}`")]
    AmbiguousBranch {
        /// The session.
        session: String,
        /// What was asked for.
        branch: String,
        /// How each of them is named.
        handles: Vec<String>,
    },
    /// The text after `@` is not a turn.
    #[error(transparent)]
    BadPoint(PointError),
    /// The name breaks the rules.
    #[error(transparent)]
    BadName(#[from] NameError),
    /// The path that was given as a session cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a transcript.
    #[error("{} is not a session of a supported agent", .0.display())]
    NotASession(PathBuf),
    /// The session was started, but it has no messages.
    #[error("session `{0}` has no messages yet")]
    EmptySession(SessionName),
    /// The transcript was deleted.
    #[error("the transcript of `{name}` no longer exists: {}", path.display())]
    TranscriptGone {
        /// The session.
        name: SessionName,
        /// Its old path.
        path: PathBuf,
    },
    /// The directory of the session was deleted or moved.
    #[error("the directory of `{session}` no longer exists: {}", .path.display())]
    DirectoryGone {
        /// The session.
        session: String,
        /// Its old path.
        path: PathBuf,
        /// Where its repository is now.
        now: Option<PathBuf>,
    },
    /// A file of an export cannot be written.
    #[error("cannot export to {}: {source}", .folder.display())]
    Export {
        /// The folder or file.
        folder: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(FileError),
    /// The configuration.
    #[error(transparent)]
    Config(config::Error),
    /// A directory or a repository.
    #[error(transparent)]
    Workspace(workspace::Error),
    /// The registry.
    #[error(transparent)]
    Registry(registry::Error),
}

wraps!(File, Config, Workspace, Registry);

impl Error {
    /// The kind and the hint.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Unknown { similar, .. } => Advice::new(
                "unknown_session",
                match similar.is_empty() {
                    true => "use a name, an id, an id prefix or a path; `tine list --all` lists every session".into(),
                    false => format!("did you mean {}?", similar.join(" or ")),
                },
            ),
            Error::UnreadNames { .. } => {
                Advice::new("registry", "`tine doctor` shows why; ids still work, and `tine list --all` shows them")
            }
            Error::Ambiguous { matches, .. } => {
                let lines: Vec<String> = matches.iter().take(10).map(describe).collect();
                let more = matches.len().saturating_sub(10);
                let rest = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
                Advice::new(
                    "ambiguous_session",
                    format!("use more of the id, or the path:\n{}{rest}", lines.join("\n")),
                )
            }
            Error::NoSessionHere(_) => {
                Advice::new("no_session_here", "`tine list --all` lists the sessions of every directory")
            }
            Error::NoLastSession => Advice::new("no_last_session", "name one; `tine list` shows them"),
            Error::NoTurn { source: PointError::OutOfRange { turns, .. }, session } => Advice::new(
                "no_such_turn",
                match turns {
                    0 => "it has no turns yet".into(),
                    turns => format!("it ends at turn {turns}; `tine show {session}` lists them"),
                },
            ),
            Error::NoTurn { .. } => Advice::new("no_such_turn", POINTS),
            Error::BadPoint(_) => Advice::new("bad_turn", POINTS),
            Error::NoBranch { session, .. } => {
                Advice::new("no_such_branch", format!("`tine show {session} --branches` lists its branches"))
            }
            Error::AmbiguousBranch { session, handles, .. } => {
                let specs: Vec<String> = handles.iter().map(|handle| format!("`{session}@{handle}`")).collect();
                Advice::new("ambiguous_branch", format!("use one of {}", specs.join(", ")))
            }
            Error::BadName(_) => Advice::new("bad_name", "for example `auth-fix`"),
            Error::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Advice::new("unreadable", "text with a `/` is the path of a transcript; names and ids have none")
            }
            Error::Unreadable { .. } => Advice::without_hint("unreadable"),
            Error::NotASession(_) => {
                let folders: Vec<&str> = Agent::ALL.into_iter().map(|agent| agents::about(agent).transcripts).collect();
                Advice::new("not_a_session", format!("sessions are kept in {}", folders.join(", ")))
            }
            Error::EmptySession(name) => Advice::new("unbegun", format!("`tine delete {name}` frees the name")),
            Error::TranscriptGone { name, .. } => Advice::new(
                "transcript_gone",
                format!("`tine delete {name}` frees the name; `tine start {name}` starts a new session with it"),
            ),
            Error::DirectoryGone { now: Some(now), session, .. } => {
                let now = now.display();
                Advice::new(
                    "directory_gone",
                    format!("its repository is now at {now}: run `tine resume {session} --to {now}`"),
                )
            }
            Error::DirectoryGone { now: None, session, .. } => Advice::new(
                "directory_gone",
                format!("its repository was not found; `tine resume {session} --to DIR` continues it elsewhere"),
            ),
            Error::Export { source, .. } => Advice::new("export", export_hint(source.kind())),
            passed_on!() => self.passed_on(),
        }
    }
}

const POINTS: &str = "`SESSION@3` is the point after turn 3, and `SESSION@-1` leaves out the last turn";

fn point_text(error: &PointError) -> String {
    match error {
        PointError::NotATurn(text) => one_line(text),
        PointError::OutOfRange { asked, .. } => asked.clone(),
    }
}

/// One line for a session that matches.
fn describe(session: &SessionView) -> String {
    let title = one_line(session.title.as_deref().unwrap_or("untitled"));
    let path = one_line(&session.path.to_string_lossy());
    format!("  {:<6} {}  {}  {path}", session.agent, session.id, clip(&title, 40))
}

fn export_hint(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind::{
        AlreadyExists, NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    match kind {
        AlreadyExists | NotADirectory => "that is a file; choose a folder",
        PermissionDenied | ReadOnlyFilesystem => "it is not writable; choose another folder",
        StorageFull | QuotaExceeded => "the disk is full; free some space or choose another folder",
        _ => "choose another folder",
    }
}

#[cfg(test)]
pub(crate) fn samples() -> Vec<Error> {
    let name = || SessionName::new("auth-fix".to_owned()).expect("a name");
    let session = || "auth-fix".to_owned();
    let path = || PathBuf::from("/home/kim/.claude/projects/-work-app/1f3a.jsonl");
    let beyond = |turns| PointError::OutOfRange { asked: "40".into(), turns };
    let failed = io::Error::from_raw_os_error;
    let view = |id: &str| SessionView {
        agent: Agent::Claude,
        id: transcript::SessionId::new(id.to_owned()).expect("an id"),
        handle: "1f3a".into(),
        name: None,
        title: Some("fix the login redirect".into()),
        cwd: None,
        branch: None,
        path: path(),
        created: None,
        updated: None,
        turns: 3,
        state: transcript::State::Stopped,
        parent: None,
        unstarted: false,
    };
    crate::advice::samples![
        Unknown { spec: "auth".into(), similar: Vec::new() },
        Unknown { spec: "auht-fix".into(), similar: vec!["auth-fix".into(), "auth-fix-2".into()] },
        UnreadNames { spec: session() },
        Ambiguous { spec: "1f3a".into(), matches: vec![view("1f3a-1"), view("1f3a-2")] },
        NoSessionHere("/work/app".into()),
        NoLastSession,
        NoTurn { session: session(), source: beyond(31) },
        NoTurn { session: session(), source: beyond(0) },
        NoBranch { session: session(), branch: "9c1".into() },
        AmbiguousBranch {
            session: session(),
            branch: "9c1d".into(),
            handles: vec!["9c1d44e0-7".into(), "9c1d44e0-8".into()],
        },
        BadPoint(PointError::NotATurn("x".into())),
        BadName(SessionName::new("Auth fix".to_owned()).expect_err("a bad name")),
        Unreadable { path: "./auth-fix".into(), source: failed(2) },
        Unreadable { path: path(), source: failed(13) },
        NotASession("/work/app/notes.jsonl".into()),
        EmptySession(name()),
        TranscriptGone { name: name(), path: path() },
        DirectoryGone { session: session(), path: "/work/app".into(), now: Some("/work/web".into()) },
        DirectoryGone { session: session(), path: "/work/app".into(), now: None },
        Export { folder: "/work/notes".into(), source: failed(20) },
        Export { folder: "/work/notes".into(), source: failed(13) },
        Export { folder: "/work/notes".into(), source: failed(28) };
        wraps File, Config, Workspace, Registry
    ]
}
