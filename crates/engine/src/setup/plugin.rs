//! Installing and removing an agent's plugin. The agent's own program does it and writes the user's settings, which become
//! what they were when the plugin is removed.

use std::fs;
use std::path::{Path, PathBuf};

use agents::{Adapter, PluginFiles};
use diagnostics::OrLog;

use super::file;
use super::plan::plugin_folder;
use crate::ctx::Ctx;
use crate::private;
use crate::program;
use crate::setup::{Error, Result};

/// Whether the folder contains these files.
pub(super) fn is_written(folder: &Path, files: &PluginFiles) -> bool {
    files.iter().all(|(name, text)| fs::read_to_string(folder.join(name)).is_ok_and(|found| found == *text))
}

/// Writes the plugin's folder, and has the agent install it unless it `is_known` already.
pub(super) fn install(ctx: &Ctx, adapter: &dyn Adapter, files: &PluginFiles, is_known: bool) -> Result<()> {
    let Some(plugin) = adapter.plugin() else {
        return Ok(());
    };
    let folder = plugin_folder(ctx, plugin);
    for (name, text) in files {
        let path = folder.join(name);
        let written = private::create_folder(path.parent().unwrap_or(&folder))
            .and_then(|()| file::write_atomically(&path, text, None, false));
        written.map_err(|source| Error::NotSetUp { path, source })?;
    }
    if is_known {
        return Ok(());
    }
    let remove = |error: Error| {
        fs::remove_dir_all(&folder).or_log(format_args!("remove {}", folder.display()));
        error
    };
    let program = program::program(ctx, adapter.agent()).map_err(Error::from).map_err(remove)?;
    let settings = adapter.hook_file();
    let kept = plugin.containers(file::split_mark(&file::read(&settings)?.unwrap_or_default()).1);
    let now = ctx.context().clock.now();
    let before = file::begin_change(&mut ctx.registry(), &settings, kept, now)?;
    if let Err(error) = plugin.install(&program, &folder) {
        restore_settings(&settings, before)?;
        file::settle(&mut ctx.registry())?;
        return Err(remove(Error::SetupProgram(error)));
    }
    file::settle(&mut ctx.registry())
}

/// Has the agent remove the plugin, and removes its folder.
pub(super) fn remove(ctx: &Ctx, adapter: &dyn Adapter) -> Result<()> {
    let Some(plugin) = adapter.plugin() else {
        return Ok(());
    };
    let (folder, settings) = (plugin_folder(ctx, plugin), adapter.hook_file());
    file::check_writable(&settings)?;
    let now = file::read(&settings)?.unwrap_or_default();
    let was = file::as_it_was(&ctx.registry(), &settings, &now);
    let receipt = ctx.registry().receipt(&settings)?.unwrap_or_default();
    match program::program(ctx, adapter.agent()) {
        Ok(program) => {
            let home = ctx.context().surroundings.home.clone();
            plugin.remove(&program, &home).map_err(Error::SetupProgram)?;
        }
        Err(_) => {
            let traces = plugin.traces();
            for (path, without) in traces.files {
                edit(&path, without)?;
            }
            let folder = &traces.folder;
            fs::remove_dir_all(folder).or_log(format_args!("remove {}", folder.display()));
        }
    }
    // The agent leaves traces of removed plugins. If the file has not been changed otherwise, it is restored.
    match was {
        Some(was) => restore_settings(&settings, was.zip(receipt.backup))?,
        None => edit(&settings, |text| plugin.without_notes(text, &receipt.kept))?,
    }
    ctx.registry().keep_receipt(&settings, None)?;
    match fs::remove_dir_all(&folder) {
        Err(source) if folder.exists() => Err(Error::NotSetUp { path: folder, source }),
        _ => Ok(()),
    }
}

/// Restores the settings from a backup, which is then no longer needed.
fn restore_settings(settings: &Path, was: Option<(String, PathBuf)>) -> Result<()> {
    let path = file::real(settings);
    let failed = |source| Error::NotSetUp { path: settings.to_owned(), source };
    match was {
        Some((text, backup)) => {
            let mode = fs::metadata(&backup).map(|metadata| metadata.permissions()).ok();
            file::write_atomically(&path, &text, mode.as_ref(), false).map_err(failed)?;
            fs::remove_file(&backup).or_log(format_args!("remove {}", backup.display()));
        }
        None if path.exists() => fs::remove_file(&path).map_err(failed)?,
        None => {}
    }
    Ok(())
}

/// Edits a file, if it exists.
fn edit(path: &Path, change: impl Fn(&str) -> String) -> Result<()> {
    let Some(text) = file::read(path)? else {
        return Ok(());
    };
    let (mark, text) = file::split_mark(&text);
    file::rewrite(path, &format!("{mark}{}", change(text)))
}
