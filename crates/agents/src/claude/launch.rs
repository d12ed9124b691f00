//! Claude Code's own program: its fork, and messages without a terminal.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use transcript::SessionId;

use super::Claude;
use super::chat::ClaudeChat;
use super::record::{Kind, Record, UserPart};
use super::scan::scan;
use crate::chat::unattended::converse;
use crate::chat::{ChatOrder, ChatSession, Protocol};
use crate::files::sync_folder;
use crate::ids;
use crate::launch::Launch;
use crate::lines::LineReader;
use crate::program::{
    ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, START_PATIENCE, SessionRef,
};
use crate::writer::Writer;

impl Launch for Claude {
    fn start_command(
        &self,
        id: &SessionId,
        title: &str,
        _directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&["--session-id", id.as_str(), "--name", title], options, prompt)
    }

    fn resume_command(
        &self,
        session: SessionRef<'_>,
        directory: &Path,
        options: &[String],
        prompt: Option<&str>,
    ) -> Vec<String> {
        command(&["--resume", &self.handle(session, directory)], options, prompt)
    }

    fn accepts_ids(&self) -> bool {
        true
    }

    fn forked_session(&self, words: &[String]) -> Option<Option<SessionId>> {
        forked_by(words)
    }

    fn fork(&self, program: &Program, request: &ForkRequest<'_>) -> Result<NewSession, ProgramError> {
        let id = request.id.unwrap_or(request.source_id);
        fork(program, request, &self.path_for(id, request.directory, Timestamp::UNIX_EPOCH))
    }

    fn send(&self, program: &Program, message: &HeadlessMessage<'_>) -> Result<Reply, ProgramError> {
        // Commands are sent rather than executed, as without a terminal.
        let text = match super::commands::is_command(message.text, &self.config) {
            true => format!("\u{2800}{}", message.text),
            false => message.text.to_owned(),
        };
        let protocol = self.chat(program, message.order(ids::random_id))?;
        converse(program, message.directory, protocol, &text)
    }

    fn chat(&self, _program: &Program, order: ChatOrder) -> Result<Box<dyn Protocol>, ProgramError> {
        let resumed = match &order.session {
            ChatSession::New(id) => id.to_string(),
            ChatSession::Existing { id, path } => self.handle(SessionRef { id, path }, &order.directory),
        };
        Ok(Box::new(ClaudeChat::new(order, resumed)))
    }

    fn context_window(&self, model: Option<&str>, version: Option<&str>) -> u64 {
        super::windows::window_of(model, version)
    }

    fn context_windows(&self) -> &'static [u64] {
        super::windows::SIZES
    }
}

impl Claude {
    /// The argument that resumes a session. By id, 2.1.197 only finds sessions of the current directory's project. A path
    /// works for any session, but the client then continues in the file named by the id inside.
    fn handle(&self, session: SessionRef<'_>, directory: &Path) -> String {
        let SessionRef { id, path } = session;
        let is_here = self.path_for(id, directory, Timestamp::UNIX_EPOCH) == path;
        if is_here || id_inside(path).as_deref() != Some(id.as_str()) {
            id.to_string()
        } else {
            path.to_string_lossy().into_owned()
        }
    }
}

/// A command for a terminal, with something to say first.
fn command(session: &[&str], options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["claude".to_owned()];
    command.extend(session.iter().map(|word| (*word).to_owned()));
    command.extend(options.iter().cloned());
    // Behind `--` a prompt may begin with a dash.
    command.extend(prompt.into_iter().flat_map(|prompt| ["--".to_owned(), prompt.to_owned()]));
    command
}

/// The session that a command line forks: `--resume` with an id or the path of a transcript, and `--fork-session`.
fn forked_by(words: &[String]) -> Option<Option<SessionId>> {
    let options = words.iter().take_while(|word| *word != "--");
    if !options.clone().any(|word| word == "--fork-session") {
        return None;
    }
    let mut source = None;
    let mut options = options;
    while let Some(word) = options.next() {
        let glued = word.strip_prefix("--resume=").or_else(|| word.strip_prefix("-r="));
        match glued {
            Some(value) => source = Some(value.to_owned()),
            None if word == "--resume" || word == "-r" => source = options.next().cloned(),
            None => {}
        }
    }
    let is_id = |text: &str| text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let id = source.and_then(|source| {
        let stem = Path::new(&source).file_stem()?.to_str()?.to_owned();
        SessionId::new(stem).ok().filter(|id| is_id(id.as_str()))
    });
    Some(id)
}

/// The id in a transcript's first records.
fn id_inside(path: &Path) -> Option<String> {
    let head = crate::files::head_of(path)?;
    let mut ids = head.split(|byte| *byte == b'\n').filter_map(|line| crate::Raw(line).get(b"sessionId")?.string());
    ids.next().map(Into::into)
}

/// Makes the client fork. It forks when it gets a prompt; a command that it answers itself costs no request. What that
/// command left in the fork is removed afterwards.
fn fork(program: &Program, request: &ForkRequest<'_>, target: &Path) -> Result<NewSession, ProgramError> {
    let id = request.id.ok_or_else(|| program.unable("fork without an id"))?;
    let mut command = program.command(request.directory);
    // A path rather than the id: 2.1.197 finds only sessions of the current directory's project. The conversation does
    // not start yet, so hooks and servers are not needed.
    command.args(["--settings", r#"{"disableAllHooks":true}"#]);
    command.args(["-p", "/cost", "--fork-session", "--strict-mcp-config"]).arg("--resume").arg(request.source);
    command.args(["--session-id", id.as_str(), "--name", request.title]);
    let last = request.turns.map(|turns| {
        last_record(request.source, request.source_id, turns)
            .ok_or_else(|| program.failed(format!("turn {turns} is incomplete")))
    });
    if let Some(last) = last.transpose()? {
        command.args(["--resume-session-at", &last]);
    }
    program.run(command, "", START_PATIENCE)?;
    take_out_command(target, request.source)
        .map_err(|error| program.failed(format!("{}: {error}", target.display())))?;
    Ok(NewSession { id: id.clone(), path: target.to_owned() })
}

/// The id of the last record before the turn after `turns`, in the order of the history.
fn last_record(source: &Path, id: &SessionId, turns: u32) -> Option<String> {
    let scan = scan(source, id.clone(), None);
    let cut = scan.prompts.get(turns as usize).map(|next| scan.history.rank(*next));
    let mut lines = LineReader::open(source, 0, Some(scan.size)).ok()?;
    let (mut index, mut last) = (0, None);
    while let Some(line) = lines.next_line().ok()? {
        let Some(bytes) = line.bytes else {
            continue;
        };
        let record = Record::of(bytes);
        if !record.complete || !record.is_chain() {
            continue;
        }
        let rank = scan.history.rank(index);
        let kept = scan.history.is_active(index) && cut.is_none_or(|cut| rank < cut);
        if kept && last.as_ref().is_none_or(|(known, _)| rank > *known) {
            let uuid = crate::fields::Raw(bytes).get(b"uuid")?.string()?.into_owned();
            last = Some((rank, uuid));
        }
        index += 1;
    }
    last.map(|(_, uuid)| uuid)
}

/// Rewrites the client's fork without the command that created it: its caveat and everything below that, the client's
/// own messages before it, and queue records.
fn take_out_command(path: &Path, source: &Path) -> io::Result<()> {
    let (mut caveat, mut said) = (None, Vec::new());
    let mut remarks = Vec::new();
    let mut lines = LineReader::open(path, 0, None)?;
    while let Some(line) = lines.next_line()? {
        let Some(record) = line.bytes.map(Record::of).filter(Record::is_chain) else {
            continue;
        };
        match (record.kind, record.uuid) {
            (Kind::System, Some(key)) => remarks.push((line.offset, key)),
            _ if record.user_part() == UserPart::Caveat => {
                caveat = Some(line.offset);
                said = std::mem::take(&mut remarks);
            }
            _ => remarks.clear(),
        }
    }
    let Some(caveat) = caveat else {
        return Ok(());
    };
    // A session whose model the client does not know gets a remark about that (2.1.197 and 2.1.325). Record ids are
    // those of the source, so the source's own remarks are distinguishable.
    let said = without_those_of(source, said)?;
    // The name of unfinished forks, so that clean-up finds it after an interruption.
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{id}.tine-new"));
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = io::BufWriter::new(options.open(&new)?);
    // Large outputs are copied, so their paths are changed to the fork's own folder.
    let marks = super::copy::marks(source, path);
    let mut lines = LineReader::open(path, 0, None)?;
    while let Some(line) = lines.next_line()? {
        let dropped = line.bytes.is_some_and(|bytes| {
            let kind = crate::fields::Raw(bytes).get(b"type").and_then(crate::fields::Raw::plain).unwrap_or_default();
            matches!(kind, b"queue-operation" | b"last-prompt")
                || line.offset >= caveat && Record::of(bytes).is_chain()
                || said.contains(&line.offset)
        });
        if !dropped {
            match line.bytes {
                Some(bytes) => out.write_all(&repointed(bytes, marks.as_ref()))?,
                None => drop(crate::copy::copy_range(path, line.offset, line.len, &mut out)?),
            }
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    out.get_ref().sync_all()?;
    fs::set_permissions(&new, fs::metadata(path)?.permissions())?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// The positions of the records that the source does not have; each is given by its position and key.
fn without_those_of(source: &Path, mut records: Vec<(u64, u64)>) -> io::Result<Vec<u64>> {
    let mut lines = LineReader::open(source, 0, None)?;
    while !records.is_empty()
        && let Some(line) = lines.next_line()?
    {
        let Some(key) = line.bytes.and_then(|bytes| Record::of(bytes).uuid) else {
            continue;
        };
        records.retain(|(_, own)| *own != key);
    }
    Ok(records.into_iter().map(|(offset, _)| offset).collect())
}

/// A line in which paths into the source's folder are changed to the fork's.
fn repointed<'a>(line: &'a [u8], marks: Option<&(Vec<u8>, Vec<u8>)>) -> std::borrow::Cow<'a, [u8]> {
    let Some((old, new)) = marks.filter(|(old, _)| memchr::memmem::find(line, old).is_some()) else {
        return line.into();
    };
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(found) = memchr::memmem::find(rest, old) {
        out.extend_from_slice(&rest[..found]);
        out.extend_from_slice(new);
        rest = &rest[found + old.len()..];
    }
    out.extend_from_slice(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Claude Code 2.1.325 appends to a fork of a session whose model it does not know.
    #[test]
    fn what_the_client_says_of_an_unknown_model_is_no_part_of_the_fork() {
        let folder = tempfile::tempdir().unwrap();
        let (source, fork) = (folder.path().join("source.jsonl"), folder.path().join("fork.jsonl"));
        let record = |id: &str, parent: &str, rest: &str| {
            format!(r#"{{"parentUuid":{parent},"isSidechain":false,"uuid":"{id}",{rest}}}"#)
        };
        let user = |text: &str| format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#);
        let remark = |text: &str| format!(r#""type":"system","subtype":"informational","content":"{text}""#);
        let own = [record("a", "null", &user("hi")), record("b", "\"a\"", &remark("of the source"))].join("\n");
        fs::write(&source, format!("{own}\n")).unwrap();
        let added = [
            record("c", "\"b\"", &remark("Session model x could not be restored")),
            record("d", "\"c\"", &user("<local-command-caveat>The command below")),
            record("e", "\"d\"", &user("<command-name>/usage</command-name>")),
            r#"{"type":"last-prompt","leafUuid":"e"}"#.to_owned(),
        ];
        fs::write(&fork, format!("{own}\n{}\n", added.join("\n"))).unwrap();
        take_out_command(&fork, &source).unwrap();
        assert_eq!(fs::read_to_string(&fork).unwrap(), format!("{own}\n"));
    }
}
