//! Finding and reading Claude Code's sessions.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use transcript::{SessionId, Summary};

use super::home;
use super::{Claude, notes, read, record, scan, subagents, summaries, windows};
use crate::files::{head_of, is_commit, open_regular, tail_of};
use crate::{Blocks, Branch, Discovery, Notes, Part, PlainScan, PromptCache, Raw, Transcripts, Writer};

/// In the usage of a request: how many tokens it put into the cache for an hour.
const HOUR_TOKENS: &[u8] = br#""ephemeral_1h_input_tokens":"#;

impl Transcripts for Claude {
    fn home(&self) -> &Path {
        &self.config
    }

    fn discover(&self) -> Discovery {
        home::discover(&self.config.join("projects"))
    }

    fn find_transcript(&self, id: &SessionId, directory: &Path) -> Option<PathBuf> {
        Some(self.path_for(id, directory, Timestamp::UNIX_EPOCH)).filter(|path| path.is_file())
    }

    fn recognizes_line(&self, line: Raw<'_>) -> bool {
        // Gemini CLI's first line also names its session.
        let is_own = line.get(b"sessionId").is_some() && line.get(b"projectHash").is_none();
        is_own || line.get(b"parentUuid").is_some()
    }

    fn scan(&self, path: &Path) -> Summary {
        let scan::Scan { mut summary, latest, .. } = Self::scan_file(path, None);
        if summary.titles_of_others != 0 {
            self.summaries.add_titles_of(path);
        }
        if summary.agent_title.is_none() && !latest.is_empty() {
            summary.agent_title = self.summaries.title(path, &latest);
        }
        summary
    }

    fn is_titled_elsewhere(&self, summary: &Summary) -> bool {
        summary.version.as_deref().is_some_and(summaries::are_written_by)
    }

    fn read_part(&self, path: &Path, part: &Part, known: Option<&PlainScan>) -> io::Result<Box<dyn Blocks>> {
        // A missing or unreadable file is an error here, because this session was requested.
        open_regular(path)?;
        Ok(Box::new(match known {
            Some(known) if part.tip.is_none() => read::ClaudeBlocks::plain(path, known, part)?,
            _ => read::ClaudeBlocks::session(path, Self::scan_file(path, part.tip), part)?,
        }))
    }

    fn records_acts(&self) -> bool {
        true
    }

    fn branches(&self, path: &Path) -> io::Result<Vec<Branch>> {
        let ids = scan::ids_of(path, &Self::scan_file(path, None).branches)?;
        let branch = |id: String| {
            let tip = record::key_of(id.as_bytes());
            Branch { id, tip, summary: Box::new(Self::scan_file(path, Some(tip)).summary) }
        };
        Ok(ids.into_iter().map(branch).collect())
    }

    fn prompt_cache(&self, path: &Path, version: Option<&str>) -> Option<PromptCache> {
        const HOUR: Duration = Duration::from_secs(3600);
        const SHORT: Duration = Duration::from_secs(300);
        // The last request says which kind of cache it wrote.
        let tail = tail_of(path).unwrap_or_default();
        let last = memchr::memmem::rfind(&tail, HOUR_TOKENS).map(|at| &tail[at + HOUR_TOKENS.len()..]);
        let writes_hour = last.and_then(|rest| rest.first()).is_some_and(|digit| (b'1'..=b'9').contains(digit));
        let kept_for = if writes_hour { HOUR } else { SHORT };
        Some(PromptCache { kept_for, across_directories: windows::has_one_prompt(version) })
    }

    fn subagents(&self, path: &Path) -> Vec<(String, PathBuf)> {
        subagents::transcripts(path)
    }

    fn fork_parent(&self, id: &SessionId, path: &Path) -> Option<SessionId> {
        let pointer = head_of(path).and_then(|head| {
            let lines = head.split(|byte| *byte == b'\n');
            let mut pointers = lines.filter_map(|line| Raw(line).get(b"forkedFrom")?.get(b"sessionId")?.string());
            pointers.next().and_then(|id| SessionId::new(id).ok())
        });
        pointer.or_else(|| notes::read(&self.config).parents.get(id).map(|parent| parent.id.clone()))
    }

    fn starting_commits(&self, path: &Path) -> Vec<String> {
        // The heading of the commits that it describes to the model, inside JSON: one line per commit.
        const HEADING: &[u8] = br"Recent commits:\n";
        let head = head_of(path).unwrap_or_default();
        let Some(start) = memchr::memmem::find(&head, HEADING) else {
            return Vec::new();
        };
        let text = &head[start + HEADING.len()..];
        let text = &text[..memchr::memchr(b'"', text).unwrap_or(text.len())];
        let text = String::from_utf8_lossy(text);
        let hashes = text.split(r"\n").map_while(|line| line.split(' ').next().filter(|hash| is_commit(hash)));
        hashes.map(str::to_owned).collect()
    }

    fn notes(&self) -> Notes {
        notes::read(&self.config)
    }
}

impl Claude {
    fn scan_file(path: &Path, tip: Option<u64>) -> scan::Scan {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let id = home::session_id_of_name(&name)
            .or_else(|| SessionId::new(path.file_stem().unwrap_or_default().to_string_lossy()).ok())
            .unwrap_or_else(|| SessionId::new("unknown").expect("a legal id"));
        scan::scan(path, id, tip)
    }
}
