//! What happens when the workbench itself fails: the terminal is given back, and a report is written that can be shared.

use std::backtrace::Backtrace;
use std::fs;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::Once;

use diagnostics::OrLog;
use transcript::{secrets, text};

use crate::environment;

/// A panic on any thread first calls `restore`, then writes a report, and then is reported as in other commands.
pub(super) fn restore_on_panic(restore: fn()) {
    static SET: Once = Once::new();
    SET.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // The search index recovers from panics of its library.
            if engine::is_panic_caught() {
                return;
            }
            restore();
            if let Some(path) = write(panic).or_log("write a crash report").flatten() {
                let note = format!("note: tine wrote a report to {}", text::one_line(&path.to_string_lossy()));
                writeln!(io::stderr(), "{note}").or_log("write to standard error");
            }
            report(panic);
        }));
    });
}

fn write(panic: &PanicHookInfo<'_>) -> io::Result<Option<PathBuf>> {
    let Some(folder) = environment::state_folder() else { return Ok(None) };
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("crash-{}.txt", std::process::id()));
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let report = compose(panic.payload_as_str().unwrap_or_default(), &place, &Backtrace::force_capture().to_string());
    fs::write(&path, report)?;
    Ok(Some(path))
}

/// The report: what failed and where, without anything from a conversation.
fn compose(message: &str, place: &str, backtrace: &str) -> String {
    let (version, (system, machine)) = (env!("CARGO_PKG_VERSION"), environment::platform());
    let message = text::one_line(&secrets::mask(&without_quotes(message)).0);
    let backtrace = text::clean(backtrace);
    format!("tine {version} on {system} {machine}, in the workbench\n{message}\nat {place}\n\n{backtrace}\n")
}

/// A message without quoted text: the standard library quotes what it failed on.
fn without_quotes(message: &str) -> String {
    let mut kept = String::new();
    for (place, part) in message.split(['`', '"']).enumerate() {
        kept.push_str(if place % 2 == 0 { part } else { "…" });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::compose;

    #[test]
    fn a_report_quotes_nothing_from_a_conversation() {
        let message = "byte index 3 is not a char boundary; it is inside 'é' of `my password is \"x\"`: \
                       sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-aaaaaaAA";
        let report = compose(message, "src/main.rs:1:2", "0: main");
        assert!(report.contains("byte index 3") && report.contains("at src/main.rs:1:2") && report.contains("0: main"));
        assert!(!report.contains("password") && !report.contains("sk-ant"), "{report}");
    }
}
