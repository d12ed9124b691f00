//! Reads sessions: lists them, shows their conversations, and reports their current state.

use std::borrow::Cow;
use std::path::PathBuf;

use engine::{
    BriefNode, EMBEDDING, EventCursor, Filter, Limits, Node, Now, OutlineView, Query, Quiet, SearchRequest, Session,
    Target, Trees, TurnsView, query_time,
};
use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use transcript::{Agent, BlockKind, NoticeKind, SessionView, text};

use super::fork;
use crate::mcp::tool::{Arguments, Call, CallError, QUOTED, ToolEffect, count, cursor, quoted};

/// An agent, as callers name it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(in crate::mcp) struct AgentWord(Agent);

impl From<AgentWord> for Agent {
    fn from(AgentWord(agent): AgentWord) -> Agent {
        agent
    }
}

impl JsonSchema for AgentWord {
    fn schema_name() -> Cow<'static, str> {
        "AgentWord".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An agent, as callers name it.",
            "type": "string",
            "enum": Agent::ALL,
        })
    }
}

/// The maximum number of characters of a transcript in one result.
const LONGEST: usize = 60_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SearchSessions {
    /// Words to search for; also "exact phrase", -excluded, agent:codex, file:src/auth.rs, tool:Bash, since:2w
    #[schemars(example = "retry uploads that time out")]
    query: String,
    /// Maximum number of sessions
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "ten")]
    limit: usize,
    /// `next_cursor` from the previous result, to get the next page
    cursor: Option<String>,
    /// Only sessions of this agent
    agent: Option<AgentWord>,
    /// Only sessions of the project that contains this directory
    #[schemars(example = ".")]
    project_path: Option<PathBuf>,
    /// Only turns since this time: 3d, 2w or 2026-11-01
    since: Option<String>,
    /// Include your own session
    #[serde(default)]
    include_self: bool,
}

fn ten() -> usize {
    10
}

impl Arguments for SearchSessions {
    const NAME: &'static str = "search_sessions";
    const TITLE: &'static str = "Search past sessions";
    const DESCRIPTION: &'static str = "Searches past conversations with coding agents by keyword and by meaning: \
        prompts, answers, commands, output and file paths. Each result has the session, the best matching turn and a \
        snippet; use read_session to read more. Example: {\"query\": \"why does the upload time out\", \"limit\": 5}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let limit = count("limit", self.limit, 50)?;
        let from = cursor(self.cursor.as_deref())?;
        let now = Now { time: call.tine.context().clock.now(), zone: TimeZone::system() };
        let since = self.since.as_deref().map(|since| query_time(since, &now)).transpose();
        let given = Limits {
            agent: self.agent.map(Into::into),
            directory: self.project_path.as_deref().map(|path| call.directory("project_path", path)).transpose()?,
            since: since.map_err(|message| CallError::argument("since", text::one_line(&message)))?,
            ..Limits::default()
        };
        let query = Query::parse(&self.query, &given, &now).map_err(|error| bad_query("query", error.into()))?;
        let asking = SearchRequest {
            query: &query,
            limits: &given,
            limit: from + limit + 2,
            embedding: EMBEDDING,
            progress: &Quiet,
            indexing: &Quiet,
        };
        let answer = call.tine.search(asking);
        let mut answer = answer.map_err(|error| bad_query("query", error))?;
        if answer.is_incomplete() {
            call.shared.complete_index();
        }
        if !self.include_self {
            call.remove_own_session(&mut answer.results);
        }
        let next = (answer.results.len() > from + limit).then(|| (from + limit).to_string());
        let page = answer.results.drain(..).skip(from).take(limit).collect();
        let choices = fork::choices(call, page);
        let mut told = json!(answer.view(&choices, from + 1));
        told["next_cursor"] = json!(next);
        told["note"] = json!(QUOTED);
        Ok(told)
    }
}

/// An invalid query is an argument error; other errors are reported unchanged.
pub(super) fn bad_query(field: &str, error: engine::Error) -> CallError {
    match error.kind() {
        "bad_query" | "empty_query" | "only_common_words" | "query_too_long" => {
            CallError::argument(field, error.to_string())
        }
        _ => error.into(),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ListSessions {
    /// List the project that contains this directory (default: the current project)
    project_path: Option<PathBuf>,
    /// List sessions of all projects
    #[serde(default)]
    all: bool,
    /// Only sessions of this agent
    agent: Option<AgentWord>,
    /// Maximum number of sessions
    #[schemars(range(min = 1, max = 100))]
    #[serde(default = "twenty")]
    limit: usize,
    /// `next_cursor` from the previous result, to get the next page
    cursor: Option<String>,
}

fn twenty() -> usize {
    20
}

impl Arguments for ListSessions {
    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Lists sessions, newest first: agent, id, name, title, directory, branch, turns, state \
        and parent. Example: {\"all\": true, \"limit\": 10}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let limit = count("limit", self.limit, 100)?;
        let from = cursor(self.cursor.as_deref())?;
        let own = || call.tine.context().cwd.clone();
        let directory = match (&self.project_path, self.all) {
            (Some(_), true) => return Err(CallError::argument("all", "cannot be combined with `project_path`")),
            (Some(path), false) => Some(call.directory("project_path", path)?),
            (None, true) => None,
            (None, false) => Some(own()),
        };
        let filter = Filter { agent: self.agent.map(Into::into), directory };
        let mut listing = call.tine.listing(&filter, &Quiet)?.skip(from);
        let sessions: Vec<SessionView> = listing.by_ref().take(limit).map(|session| session.view).collect();
        let next = listing.next().map(|_| (from + limit).to_string());
        Ok(json!({"sessions": sessions, "next_cursor": next, "note": QUOTED}))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct GetSession {
    /// A name, an id, an id prefix, a path, or `me`
    #[schemars(example = "auth-fix")]
    session: String,
}

impl Arguments for GetSession {
    const NAME: &'static str = "get_session";
    const TITLE: &'static str = "Get session details";
    const DESCRIPTION: &'static str = "Returns everything known about a session: model, tokens, state, profile, \
        previous ids, forks, and one line for the prompt of each turn. Example: {\"session\": \"auth-fix\"}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let sessions = call.sessions()?;
        let session = call.select_whole(&sessions, "session", &self.session)?;
        overview(call, &sessions, &session)
    }
}

pub(in crate::mcp) fn overview(call: &Call<'_>, sessions: &[Session], session: &Session) -> Result<Value, CallError> {
    let info = call.tine.info(session, sessions)?;
    let mut outline = OutlineView::default();
    let mut blocks = call.tine.read(session, None, engine::SeedText::Folded)?;
    while let Some(block) = blocks.next_block() {
        call.check_wanted()?;
        if let BlockKind::Prompt { text: prompt, steer: false } = &block.kind
            && block.depth == 0
        {
            outline.push(block.turn, prompt);
        }
    }
    let mut answer = json!(info.with_outline(outline));
    answer["note"] = json!(QUOTED);
    Ok(answer)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ReadSession {
    /// A name, an id, an id prefix, a path, or `me`
    #[schemars(example = "auth-fix")]
    session: String,
    /// First turn to read (default: the last few turns)
    from_turn: Option<u32>,
    /// Read the turns around this one instead
    around_turn: Option<u32>,
    /// Number of turns
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "three")]
    turns: usize,
    /// Include tool calls and their results
    #[serde(default)]
    include_tools: bool,
}

fn three() -> usize {
    3
}

impl Arguments for ReadSession {
    const NAME: &'static str = "read_session";
    const TITLE: &'static str = "Read a session";
    const DESCRIPTION: &'static str = "Returns the conversation of a session, turn by turn. To continue, pass \
        `next_turn` as `from_turn`. Example: {\"session\": \"auth-fix\", \"around_turn\": 7, \"turns\": 3}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let turns = u32::try_from(count("turns", self.turns, 50)?).unwrap_or(1);
        let session = call.select_whole(&call.sessions()?, "session", &self.session)?;
        let all = session.view.turns;
        let (field, asked) = match (self.from_turn, self.around_turn) {
            (Some(_), Some(_)) => {
                return Err(CallError::argument("around_turn", "cannot be combined with `from_turn`"));
            }
            (Some(turn), None) => ("from_turn", Some(turn)),
            (None, Some(turn)) => ("around_turn", Some(turn)),
            (None, None) => ("from_turn", None),
        };
        if let Some(asked) = asked
            && !(1..=all.max(1)).contains(&asked)
        {
            return Err(CallError::argument(field, format!("must be a turn from 1 to {all}")));
        }
        let first = match (field, asked) {
            ("around_turn", Some(turn)) => turn.saturating_sub(turns / 2).max(1),
            (_, Some(turn)) => turn,
            (_, None) => (all + 1).saturating_sub(turns).max(1),
        };
        let last = (first + turns - 1).min(all);
        let mut said = String::new();
        let mut complete = first.saturating_sub(1);
        let mut blocks = call.tine.read(&session, Some(last), engine::SeedText::Folded)?;
        while let Some(block) = blocks.next_block() {
            call.check_wanted()?;
            if block.turn < first || block.depth > 0 {
                continue;
            }
            if block.turn > complete + 1 && said.len() > LONGEST {
                break;
            }
            complete = complete.max(block.turn.saturating_sub(1));
            write_block(&mut said, block.turn, &block.kind, self.include_tools);
        }
        let told = if said.len() > LONGEST { complete.max(first) } else { last };
        let text = quoted(&session.view.id, &shortened(&said));
        let mut answer = json!(TurnsView::new(&session, first, told, text));
        answer["note"] = json!(QUOTED);
        Ok(answer)
    }
}

/// A single turn may be very long.
fn shortened(said: &str) -> String {
    match said.char_indices().nth(2 * LONGEST) {
        Some((at, _)) => format!("{}\n[… truncated]", &said[..at]),
        None => said.to_owned(),
    }
}

fn write_block(said: &mut String, turn: u32, kind: &BlockKind, tools: bool) {
    const OUTPUT: usize = 2_000;
    let mut add = |words: String| {
        said.push_str(&words);
        said.push_str("\n\n");
    };
    match kind {
        BlockKind::Prompt { text, steer: false } => add(format!("## Turn {turn}\n\n[user] {text}")),
        BlockKind::Prompt { text, steer: true } => add(format!("[user] {text}")),
        BlockKind::Answer { text, .. } => add(format!("[assistant] {text}")),
        BlockKind::Call { name, input, .. } if tools => {
            add(format!("[calls {name}] {}", text::clip(&input.to_string(), OUTPUT)));
        }
        BlockKind::Output { text, exit_code, .. } if tools => {
            let code = exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            add(format!("[output{code}] {}", text::clip(text, OUTPUT)));
        }
        BlockKind::Call { name, .. } => add(format!("[calls {name}]")),
        BlockKind::Notice { notice: NoticeKind::Files, text } => add(format!("[changed files] {text}")),
        BlockKind::Compaction { summary } => add(format!("[compacted] {summary}")),
        _ => {}
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SessionTree {
    /// Only the tree of this session: a name, an id, an id prefix, a path, or `me`
    session: Option<String>,
    /// Show the trees of all projects
    #[serde(default)]
    all: bool,
}

impl Arguments for SessionTree {
    const NAME: &'static str = "session_tree";
    const TITLE: &'static str = "Lineage of sessions";
    const DESCRIPTION: &'static str = "Shows which session was forked from which, and at which turn, as trees. \
        Example: {\"session\": \"auth-fix\"}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let sessions = call.sessions()?;
        let chosen = self.session.as_deref().map(|word| call.select_whole(&sessions, "session", word)).transpose()?;
        let asked = match &chosen {
            Some(chosen) => Trees::Of(chosen),
            None if self.all => Trees::Everywhere,
            None => Trees::Here,
        };
        let trees: Vec<BriefNode> = call.tine.trees(&sessions, asked)?.iter().take(100).map(Node::brief).collect();
        Ok(json!({"trees": trees, "note": QUOTED}))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SessionStatus {
    /// Sessions: names, ids, id prefixes, paths, or `me` (default: all open sessions)
    #[serde(default)]
    sessions: Vec<String>,
}

impl Arguments for SessionStatus {
    const NAME: &'static str = "session_status";
    const TITLE: &'static str = "State of sessions";
    const DESCRIPTION: &'static str = "Shows whether sessions are busy, idle, waiting for the user or stopped. \
        Example: {\"sessions\": [\"try-1\", \"try-2\"]}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let statuses = match self.sessions.is_empty() {
            true => call.tine.open_sessions(&Quiet)?,
            false => {
                let chosen = chosen(call, &call.sessions()?, &self.sessions)?.into_iter();
                let status = |session| call.tine.status(&Target::Session(Box::new(session)));
                chosen.map(status).collect::<Result<_, _>>()?
            }
        };
        Ok(json!({"sessions": statuses, "note": QUOTED}))
    }
}

/// The sessions that the words refer to; an error names the position of the first unknown one.
pub(super) fn chosen(call: &Call<'_>, all: &[Session], words: &[String]) -> Result<Vec<Session>, CallError> {
    if !(1..=64).contains(&words.len()) {
        return Err(CallError::argument("sessions", "must have 1 to 64 sessions"));
    }
    let numbered = words.iter().enumerate();
    numbered.map(|(at, word)| call.select_whole(all, &format!("sessions[{at}]"), word)).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SessionEvents {
    /// Only events after this number; pass `last` from the previous result
    after: Option<i64>,
    /// Only events of this session: a name, an id, an id prefix, a path, or `me`
    session: Option<String>,
    /// Maximum number of events
    #[schemars(range(min = 1, max = 200))]
    #[serde(default = "fifty")]
    limit: usize,
}

fn fifty() -> usize {
    50
}

impl Arguments for SessionEvents {
    const NAME: &'static str = "session_events";
    const TITLE: &'static str = "Session events";
    const DESCRIPTION: &'static str = "Lists events that the agents' hooks reported, oldest first: session_started, \
        forked, busy, idle, waiting, answered, stopped. Without `after`, returns the most recent ones. Example: \
        {\"after\": 120}";
    const TOUCH: ToolEffect = ToolEffect::Reads;

    fn run(self, call: &Call<'_>) -> Result<Value, CallError> {
        let limit = count("limit", self.limit, 200)?;
        let session = match &self.session {
            Some(word) => Some(call.select_whole(&call.sessions()?, "session", word)?),
            None => None,
        };
        let mut cursor = match self.after {
            Some(after) => EventCursor::after(after),
            // A session may have few events among many.
            None if session.is_some() => EventCursor::newest(5_000),
            None => EventCursor::newest(u32::try_from(limit).unwrap_or(50)),
        };
        let mut events = call.tine.events(&mut cursor)?;
        events.retain(|event| {
            session.as_ref().is_none_or(|one| event.id == one.view.id && event.agent == one.view.agent)
        });
        match self.after {
            Some(_) => events.truncate(limit),
            None => drop(events.drain(..events.len().saturating_sub(limit))),
        }
        let last = events.last().map(|event| event.number).or(self.after).unwrap_or(cursor.number());
        Ok(json!({"events": events, "last": last}))
    }
}
