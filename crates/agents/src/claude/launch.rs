//! Claude Code's own program: its fork, and messages without a terminal.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Deserialize;
use transcript::SessionId;

use super::record::{Kind, Record, UserPart};
use super::scan::scan;
use crate::lines::LineReader;
use crate::program::{ANSWER_PATIENCE, Made, Message, NativeOrder, Program, ProgramError, START_PATIENCE, Said};

/// A command for a terminal, with something to say first.
pub(super) fn command(session: &[&str], options: &[String], prompt: Option<&str>) -> Vec<String> {
    let mut command = vec!["claude".to_owned()];
    command.extend(session.iter().map(|word| (*word).to_owned()));
    command.extend(options.iter().cloned());
    // Behind `--` a prompt may begin with a dash.
    command.extend(prompt.into_iter().flat_map(|prompt| ["--".to_owned(), prompt.to_owned()]));
    command
}

/// The session that a command line forks: `--resume` with an id or the path of a transcript, and `--fork-session`.
pub(super) fn forked_by(words: &[String]) -> Option<Option<SessionId>> {
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

/// Adds a title to the end of a transcript, as the client itself does; the last one counts.
pub(super) fn set_title(id: &SessionId, path: &Path, title: &str) -> io::Result<()> {
    let record = serde_json::json!({ "type": "custom-title", "customTitle": title, "sessionId": id });
    let mut file = fs::OpenOptions::new().append(true).read(true).open(path)?;
    // A last line that was cut off must not swallow the title. One write, because the client may be writing as well.
    let begins = if ends_with_line_break(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{begins}{record}\n").as_bytes())
}

fn ends_with_line_break(file: &mut fs::File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The id in a transcript's first records.
pub(super) fn id_inside(path: &Path) -> Option<String> {
    let head = crate::head_of(path)?;
    let mut ids = head.split(|byte| *byte == b'\n').filter_map(|line| crate::Raw(line).get(b"sessionId")?.string());
    ids.next().map(Into::into)
}

/// Says something in print mode; the words go through standard input, which has no limit. `session` is what it is
/// resumed by.
pub(super) fn say(
    program: &Program,
    message: &Message<'_>,
    session: Option<&str>,
    config: &Path,
) -> Result<Said, ProgramError> {
    let mut command = program.command(message.directory);
    // Of an option that is given twice, the last one counts.
    command.args(message.options).args(["-p", "--input-format", "text", "--output-format", "json"]);
    if let Some(session) = session {
        command.args(["--resume", session]);
    } else if let Some(id) = message.id {
        command.args(["--session-id", id.as_str()]);
    }
    if let Some(title) = message.title {
        command.args(["--name", title]);
    }
    let reason = |told: &str| result_of(told).map(|told| told.result);
    // Without a terminal, too, commands are done and not said.
    let text = match super::commands::is_command(message.text, config) {
        true => format!("\u{2800}{}", message.text),
        false => message.text.to_owned(),
    };
    let told = program.run_telling(command, &text, ANSWER_PATIENCE, reason)?;
    let told = result_of(&told).ok_or_else(|| program.failed("it did not answer in JSON"))?;
    if told.is_error {
        return Err(program.failed(told.result));
    }
    let id = SessionId::new(told.session_id).map_err(|_| program.failed("it named no session"))?;
    Ok(Said { id, answer: told.result })
}

/// How a conversation in print mode ended.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Told {
    #[serde(default)]
    result: String,
    #[serde(default)]
    is_error: bool,
    session_id: String,
}

/// The result in what was printed: it is all there is, or, where everything was to be told, the last of several events,
/// in an array or on lines of their own.
fn result_of(told: &str) -> Option<Told> {
    let values = serde_json::Deserializer::from_str(told).into_iter::<serde_json::Value>().map_while(Result::ok);
    let events = values.flat_map(|value| match value {
        serde_json::Value::Array(events) => events,
        event => vec![event],
    });
    let result = events.filter(|event| event["type"] == "result" || event["result"].is_string()).last();
    result.and_then(|result| serde_json::from_value(result).ok())
}

/// Lets the client fork. It does so when it is told something; a command that it answers itself costs no request.
/// What that command left in the fork is taken out afterwards.
pub(super) fn fork(program: &Program, order: &NativeOrder<'_>, target: &Path) -> Result<Made, ProgramError> {
    let id = order.id.ok_or_else(|| program.unable("fork without an id"))?;
    let mut command = program.command(order.directory);
    // A path, and not the id: 2.1.197 finds sessions of the current directory's project alone.
    // Nobody talks yet: neither hooks nor servers are needed.
    command.args(["--settings", r#"{"disableAllHooks":true}"#]);
    command.args(["-p", "/cost", "--fork-session", "--strict-mcp-config"]).arg("--resume").arg(order.source);
    command.args(["--session-id", id.as_str(), "--name", order.title]);
    let last = order.turns.map(|turns| {
        last_record(order.source, order.source_id, turns)
            .ok_or_else(|| program.failed(format!("turn {turns} has no end")))
    });
    if let Some(last) = last.transpose()? {
        command.args(["--resume-session-at", &last]);
    }
    program.run(command, "", START_PATIENCE)?;
    take_out_command(target, order.source).map_err(|error| program.failed(format!("{}: {error}", target.display())))?;
    Ok(Made { id: id.clone(), path: target.to_owned() })
}

/// The id of the last record before the turn after `turns`, in the order of the history.
fn last_record(source: &Path, id: &SessionId, turns: u32) -> Option<String> {
    let scan = scan(source, id.clone());
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

/// Rewrites the client's fork without the command that made it write: its caveat and what hangs below that, what the
/// client said of itself before, and the notes of what was queued.
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
    // A session whose model the client does not know gets a remark about that (2.1.197 and 2.1.325). Ids of records are
    // those of the source, so that its own remarks are told from it.
    let said = without_those_of(source, said)?;
    // The name that unfinished forks have, so that it is removed with the rest if this is cut off.
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{id}.tine-new"));
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = io::BufWriter::new(options.open(&new)?);
    // Large outputs are brought along, so their paths lead into the fork's own folder.
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
    fs::rename(&new, path)
}

/// Where the records stand that the source does not have; each is given by where it stands and its key.
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

/// A line in which paths into the source's folder lead into the fork's.
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

    #[test]
    fn a_result_is_found_in_every_shape() {
        let result = r#"{"type":"result","is_error":false,"result":"done","session_id":"x"}"#;
        let event = r#"{"type":"system","subtype":"init","session_id":"x"}"#;
        let expected = Told { result: "done".into(), is_error: false, session_id: "x".into() };
        for told in [result.to_owned(), format!("[{event},{result}]\n"), format!("{event}\n{result}\n")] {
            assert_eq!(result_of(&told).as_ref(), Some(&expected), "{told}");
        }
        assert_eq!(result_of("done"), None);
        assert_eq!(result_of(event), None);
    }
}
