//! The command line, in a hermetic home. The tests of a command are in `test_<command>.rs`, and in `test_<command>_<topic>.rs`
//! where there are many; a file without `test_` has a topic that several commands share.

mod edits;
mod json;
mod test_adopt;
mod test_blame;
mod test_clone;
mod test_completions;
mod test_config;
mod test_delete;
mod test_demo;
mod test_diff;
mod test_doctor;
mod test_events;
mod test_export;
mod test_focus;
mod test_fork;
mod test_fork_carry;
mod test_fork_code;
mod test_fork_confirm;
mod test_fork_metadata;
mod test_fork_methods;
mod test_fork_no_start;
mod test_fork_plan;
mod test_fork_profile;
mod test_fork_times;
mod test_fork_translate;
mod test_fork_workspace;
mod test_fork_worktree;
mod test_hook;
mod test_hook_in_agent;
mod test_index;
mod test_info;
mod test_interrupt;
mod test_list;
mod test_log;
mod test_mcp;
mod test_mcp_smart_fork;
mod test_read;
mod test_rename;
mod test_restore;
mod test_resume;
mod test_resume_moved;
mod test_search;
mod test_search_index;
mod test_search_matching;
mod test_search_qmd;
mod test_search_queries;
#[cfg(feature = "semantic")]
mod test_search_semantic;
mod test_send;
mod test_send_background;
mod test_setup;
mod test_setup_scopes;
mod test_show;
mod test_smart_fork;
mod test_snapshots;
mod test_start;
mod test_start_profile;
mod test_status;
mod test_stop;
mod test_tree;
mod test_undo;
mod test_wait;

mod crashes_and_races;
mod damaged_transcripts;
mod diagnostic_log;
mod errors;
mod old_agent_versions;
mod panes;
mod recorded;
mod rewound_branches;
mod session_argument;
mod test_workbench;
mod test_workbench_chats;
mod world;

use std::path::Path;

use world::World;

#[test]
fn every_command_has_a_test_file() {
    let help = World::empty().run(["help"]).out;
    let (_, commands) = help.split_once("\nCommands:\n").expect("a list of commands");
    let (commands, _) = commands.split_once("\n\n").expect("an end of the list");
    // A description that takes several lines is indented further.
    let commands = commands.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<&str> =
        commands.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect();
    assert!(commands.contains(&"smart-fork"), "{help}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let has_file = |command: &&str| folder.join(format!("test_{}.rs", command.replace('-', "_"))).is_file();
    let missing: Vec<&str> = commands.into_iter().filter(|command| !has_file(command)).collect();
    assert!(missing.is_empty(), "no test_<command>.rs for {missing:?}");
}
