//! The command line, in a hermetic home: one file per command, and one for what all commands share.

mod asked;
mod completions;
mod delete;
mod demo;
mod doctor;
mod events;
mod export;
mod failure;
mod foreign_files;
mod fork;
mod hook;
mod index;
mod info;
mod list;
#[cfg(feature = "semantic")]
mod meaning;
mod moved;
mod named;
mod plan;
mod profile;
mod qmd;
mod queries;
mod repository;
mod resolve;
mod search;
mod setup;
mod show;
mod smart_fork;
mod status;
mod tree;
mod trouble;
mod undo;
mod workspace;
mod world;
