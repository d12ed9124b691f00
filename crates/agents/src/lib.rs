//! Everything specific to one agent, in one folder each: where its sessions are, how they are read and written, how its
//! program is started, and how to find out from outside whether it is idle or busy.
//!
//! An agent implements six traits, which together make it an [`Adapter`]:
//!
//! | trait | what it covers |
//! |---|---|
//! | [`Transcripts`] | finding and reading sessions |
//! | [`Writer`] | copies of sessions, titles, the agent's own lists |
//! | [`Translation`] | another agent's conversation in the agent's format |
//! | [`Launch`] | commands, options, ids, context windows |
//! | [`LiveState`] | open sessions, screens, input |
//! | [`Setup`] | hooks, the MCP server, plugins |
//!
//! The list of agents is in `about.rs`, with what is known about each of them without looking at its files. The modules that follow are shared by all of them.

mod about;
mod acts;
mod adapter;
pub mod chat;
pub mod claude;
pub mod codex;
pub mod gemini;
pub mod opencode;

mod launch;
mod live;
mod setup;
mod transcripts;
mod translate;
mod writer;

mod blocks;
mod copy;
mod fields;
mod files;
mod follow;
mod huge;
mod ids;
mod lines;
mod options;
mod process;
mod program;
mod rewrite;
mod seal;
mod share;
mod storage;
mod title;

pub use about::{About, Feature, McpMeta, NativeFork, Variables, about, is_set_by_running_agent, location_variables};
pub use acts::{Act, FileAct, FileEdit, Hunk, Ran, ReplacedText, Sight, Touch};
pub use adapter::{Adapter, AgentEnvironment, agent_of_file, all, open};
pub use copy::{Copied, CopyRequest, ReadBack, SideFile};
pub use fields::{Elements, Fields, Raw};
pub use files::{stamp, sync_folder};
pub use follow::{FileGrowth, write_copy};
pub use ids::time_in_id;
pub use launch::Launch;
pub use lines::{Line, LineReader};
pub use live::{ExitKey, Holder, Live, LiveSession, LiveState, Screen};
pub use options::{Choice, Chosen, Given, GivenOption, LaunchOptions, OptionValue, Role};
pub use process::{
    Runner, Terminal, arguments_of, directory_of, has_word, is_below, is_still, process_start, processes_in,
    processes_marked, processes_with, runner, tty_of, variable_of, written_files,
};
pub use program::{Cancel, ForkRequest, HeadlessMessage, NewSession, Program, ProgramError, Reply, SessionRef};
pub use seal::Seal;
pub use setup::{
    BY_NAME, EditedHooks, HookEntry, HookEvent, HookMoves, HookSwitch, HookTrust, Plugin, PluginFiles, PluginTraces,
    Problem, Scope, SeenHook, SeenHooks, ServerEntry, Setup, TextEdit,
};
pub use storage::{
    RowStorage, beside, check_readable, digest_of_rows, folder_of, is_session, is_there, remove_rows, rename,
    rows_hold_all_of, session_stamp, sync_session,
};
pub use title::{TitleChange, TitleMark};
pub use transcripts::{
    Blocks, Branch, Client, Discovery, Notes, Part, PlainScan, PromptCache, SessionFile, Stamp, Transcripts, TurnStart,
};
pub use translate::{
    Messages, Translation, TranslationOptions, TranslationRequest, TranslationSurvey, Written, compare_translation,
    survey_translation, write_translation,
};
pub use writer::Writer;
