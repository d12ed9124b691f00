//! What is known of a session without reading it aloud: the facts that listings, lineage and resolution need.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::seed::is_seed;
use crate::{Agent, Defects, SessionId};

/// The facts of one session, from its agent's own files.
///
/// Names that people gave in tine, and lineage that tine recorded, are not here: they are in the registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The agent whose session it is.
    pub agent: Agent,
    /// The agent's id for it.
    pub id: SessionId,
    /// The transcript.
    pub path: PathBuf,
    /// The title that the user gave it inside the agent.
    pub custom_title: Option<String>,
    /// The title that the agent generated.
    pub agent_title: Option<String>,
    /// The first thing that was asked, shortened to what a title needs.
    pub first_prompt: Option<String>,
    /// A fingerprint of the titles that its file holds for other sessions of its folder; 0 where there are none.
    pub titles_of_others: u64,
    /// The directory it works in.
    pub cwd: Option<PathBuf>,
    /// The git branch it was last seen on.
    pub branch: Option<String>,
    /// Other branches that it worked on before, if the agent records them.
    pub earlier_branches: Vec<String>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The version of the agent that wrote last.
    pub version: Option<String>,
    /// When it began.
    #[serde(with = "jiff::fmt::serde::timestamp::nanosecond::optional")]
    pub created: Option<Timestamp>,
    /// When it was last written to.
    #[serde(with = "jiff::fmt::serde::timestamp::nanosecond::optional")]
    pub updated: Option<Timestamp>,
    /// Turns on the active history.
    pub turns: u32,
    /// One fingerprint per turn, equal in a session and in its forks; lineage is inferred from them.
    pub turn_keys: Vec<u64>,
    /// The token use that the agent last reported.
    pub tokens: Option<TokenUse>,
    /// The longest context that the agent reported at any time, in tokens; 0 where it reported none.
    pub largest_context: u64,
    /// What the agent itself recorded of the session's origin.
    pub parent: Option<ParentPointer>,
    /// Whether this is a helper's thread, which listings leave out.
    pub is_subagent: bool,
    /// Whether it has no messages; agents leave such files behind, and listings hide them.
    pub is_empty: bool,
    /// Other files with part of the history. If one of them is missing, the facts are no longer true.
    pub bases: Vec<PathBuf>,
    /// The id of the first such file that was not there.
    pub missing_base: Option<String>,
    /// The size up to which the file is in history order, as most are; a reader then needs no first pass over the whole
    /// file.
    pub plain: Option<u64>,
    /// Whether records precede others that they follow. Some versions of Claude Code write such files and do not read
    /// all of them back.
    pub disordered: bool,
    /// Whether the agent itself would continue from another record than the history's last, and not find the messages.
    pub tip_differs: bool,
    /// The turn of each record on the history that names a missing parent and follows another record instead.
    pub gaps: Vec<u32>,
    /// Whether the last record leaves a turn unfinished; this determines the state of a live session if its agent does
    /// not report one.
    pub mid_turn: bool,
    /// Whether part of the history was replaced by a summary.
    pub compacted: bool,
    /// How many other branches of the transcript say something, such as those given up by a rewind.
    pub branches: u32,
    /// Defects found in the files.
    pub defects: Defects,
    /// The layout of the lines, if the scan recorded it. Only useful for a copy right after the scan.
    #[serde(skip)]
    pub layout: Option<Arc<Vec<u8>>>,
}

impl Summary {
    /// A session of which nothing is known yet.
    pub fn new(agent: Agent, id: SessionId, path: PathBuf) -> Self {
        Summary {
            agent,
            id,
            path,
            custom_title: None,
            agent_title: None,
            first_prompt: None,
            titles_of_others: 0,
            cwd: None,
            branch: None,
            earlier_branches: Vec::new(),
            model: None,
            version: None,
            created: None,
            updated: None,
            turns: 0,
            turn_keys: Vec::new(),
            tokens: None,
            largest_context: 0,
            parent: None,
            is_subagent: false,
            is_empty: false,
            bases: Vec::new(),
            missing_base: None,
            plain: None,
            disordered: false,
            tip_differs: false,
            gaps: Vec::new(),
            mid_turn: false,
            compacted: false,
            branches: 0,
            defects: Defects::default(),
            layout: None,
        }
    }

    /// Whether it was ever seen on a branch.
    pub fn was_on(&self, branch: &str) -> bool {
        self.branch.iter().chain(&self.earlier_branches).any(|known| known == branch)
    }

    /// The title to show: a person's before the agent's before the first prompt, unless that is a seed.
    pub fn title(&self) -> Option<&str> {
        self.titles().next()
    }

    /// The title to show next to a name, if it is different.
    pub fn title_beside(&self, name: Option<&str>) -> Option<&str> {
        self.titles().find(|title| Some(*title) != name).or(self.title())
    }

    fn titles(&self) -> impl Iterator<Item = &str> {
        let titles = [&self.custom_title, &self.agent_title, &self.first_prompt].into_iter().flatten();
        titles.map(String::as_str).filter(|title| !title.trim().is_empty() && !is_seed(title))
    }
}

/// Tokens that the agent reported for its last request and answer, which together are the context so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TokenUse {
    /// Everything sent, cached or not.
    pub input: u64,
    /// The answer.
    pub output: u64,
    /// The context window, if the agent reports it.
    pub window: Option<u64>,
}

impl TokenUse {
    /// How long the context is.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

/// A session's origin, according to the agents' files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentPointer {
    /// The session that this one was forked from.
    pub id: SessionId,
    /// How it is known.
    pub source: ParentSource,
}

/// How a parent is known, the most trustworthy first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ParentSource {
    /// tine created the fork, or the user set the parent.
    Tine,
    /// The agent's files name the parent.
    Agent,
    /// Both sessions hold the same messages, and the order of the files decides who is the parent.
    Inferred,
}

impl ParentSource {
    /// The word for it in JSON and in the registry.
    pub fn as_str(self) -> &'static str {
        match self {
            ParentSource::Tine => "tine",
            ParentSource::Agent => "agent",
            ParentSource::Inferred => "inferred",
        }
    }
}
