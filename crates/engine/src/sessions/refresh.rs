//! Looking at one session again: one `stat` of its transcript, one lookup of its process, and a few indexed queries.
//!
//! Everything that waits for a session calls this several times a second, so its cost must not grow with the number of
//! sessions. A transcript is read again only if it has changed.

use std::io::ErrorKind;

use crate::advice::FileError;
use crate::ctx::Ctx;
use crate::sessions::catalog::{Entry, Quiet};
use crate::sessions::session::{Knowledge, Session};
use crate::sessions::survey;
use crate::sessions::{Error, Result};

/// The current state of a session.
pub(crate) fn refresh(ctx: &Ctx, session: &Session) -> Result<Session> {
    let path = &session.view.path;
    let stamp = match agents::session_stamp(path) {
        Ok(stamp) => stamp,
        // `/cd` moves a transcript while it is open, and a fork that has not started gets one when it starts.
        Err(error) if error.kind() == ErrorKind::NotFound => return find_moved(ctx, session),
        Err(source) => return Err(FileError::Read { path: path.clone(), source }.into()),
    };
    let knowledge = Knowledge::of_one(ctx, session)?;
    if stamp == session.stamp || session.view.unstarted {
        return Ok(knowledge.with_state_now(session));
    }
    let mut summary = ctx.adapter(session.view.agent).scan(path);
    if summary.custom_title.is_none() {
        // Some agents keep titles outside the transcript.
        summary.custom_title.clone_from(&session.details.custom_title);
    }
    let mut refreshed = knowledge.session(Entry::fresh(summary, stamp));
    refreshed.view.parent.clone_from(&session.view.parent);
    refreshed.view.handle.clone_from(&session.view.handle);
    Ok(refreshed)
}

/// The session with the same id, wherever its transcript is now.
fn find_moved(ctx: &Ctx, session: &Session) -> Result<Session> {
    let (agent, id) = (session.view.agent, &session.view.id);
    let mut sessions = survey::all_sessions(ctx, &Quiet)?.into_iter();
    let found = sessions.find(|other| other.view.agent == agent && other.view.id == *id);
    found.ok_or_else(|| Error::Unknown { spec: id.to_string(), similar: Vec::new() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::mem::MaybeUninit;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use testkit::build::ClaudeSession;
    use transcript::State;

    use super::*;
    use crate::test_world::World;

    const ID: &str = "11111111-1111-4111-8111-111111111111";

    fn write_session(world: &World, id: &str, directory: &str) {
        let session = ClaudeSession::new(id).cwd(world.repository.join(directory));
        session.turn(|turn| turn.prompt("hello").text("hi")).write(&world.claude_home());
    }

    /// The names of what is opened below a folder while `act` runs.
    fn opened_by(folder: &Path, act: impl FnOnce()) -> Vec<String> {
        let watcher = inotify::init(CreateFlags::NONBLOCK).expect("a watcher");
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            inotify::add_watch(&watcher, &folder, WatchFlags::OPEN).expect("a watch");
            let entries = fs::read_dir(&folder).expect("a folder").flatten();
            folders.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
        }
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut names = |keep: bool| {
            let mut names = Vec::new();
            let mut events = Reader::new(&watcher, &mut buffer);
            while let Ok(event) = events.next() {
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                names.extend(name.filter(|_| keep));
            }
            names
        };
        // Listing the folders above was noticed, too.
        names(false);
        act();
        names(true)
    }

    #[test]
    fn refreshing_a_session_opens_no_other_session() {
        for others in [0, 40] {
            let world = World::new();
            write_session(&world, ID, "");
            for number in 0..others {
                write_session(&world, &format!("22222222-2222-4222-8222-{number:012}"), &format!("{}", number % 4));
            }
            let tine = world.tine();
            let session = tine.resolve(ID, &Quiet).expect("a session").session;
            let opened = opened_by(&world.claude_home(), || {
                let refreshed = tine.refresh(&session).expect("the session");
                assert_eq!((refreshed.view.turns, refreshed.view.state), (1, State::Stopped));
            });
            assert!(opened.is_empty(), "an unchanged transcript is not read: {opened:?}");
            let transcript = &session.view.path;
            let mut file = OpenOptions::new().append(true).open(transcript).expect("the transcript");
            let record =
                r#"{"type":"user","uuid":"33333333-3333-4333-8333-333333333333","message":{"content":"more"}}"#;
            writeln!(file, "{record}").expect("written");
            let opened = opened_by(&world.claude_home(), || {
                assert!(tine.refresh(&session).expect("the session").size > session.size);
            });
            let name = transcript.file_name().expect("a name").to_string_lossy().into_owned();
            assert_eq!(opened, [name], "only the transcript is read");
        }
    }

    #[test]
    fn a_session_whose_transcript_moved_is_found_and_keeps_its_name() {
        let world = World::new();
        write_session(&world, ID, "");
        let tine = world.tine();
        let session = tine.resolve(ID, &Quiet).expect("a session").session;
        tine.adopt(&session, Some("one".parse().expect("a name")), None).expect("adopted");
        let moved = session.view.path.parent().expect("a folder").with_file_name("-elsewhere");
        fs::create_dir(&moved).expect("a folder");
        let moved = moved.join(format!("{ID}.jsonl"));
        fs::rename(&session.view.path, &moved).expect("moved");
        let refreshed = tine.refresh(&session).expect("the session");
        assert_eq!((refreshed.view.path.as_path(), refreshed.view.label()), (moved.as_path(), "one"));
        fs::remove_file(&moved).expect("removed");
        assert!(matches!(tine.refresh(&refreshed), Err(crate::Error::Sessions(Error::Unknown { .. }))));
    }

    #[test]
    fn a_fork_looks_the_same_after_a_refresh() {
        let world = World::new();
        write_session(&world, ID, "");
        let tine = world.tine();
        let request = crate::Request::of(tine.resolve(ID, &Quiet).expect("a session").session);
        let plan = tine.plan_fork(&request).expect("a plan");
        tine.apply_fork(&plan, &Quiet).expect("a fork");
        let fork = tine.resolve(plan.name.as_str(), &Quiet).expect("the fork").session;
        let mut stale = fork.clone();
        stale.stamp.modified -= 1;
        for session in [&fork, &stale] {
            assert_eq!(tine.refresh(session).expect("the fork").view, fork.view);
        }
    }
}
