//! `cargo xtask`: the common tasks of tine's developers, without any tool to install.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's tool prints what it does")]

mod coverage;
mod pictures;
mod snapshots;
mod svg;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask TASK [ARGUMENT...]

  test                 run all tests, as ./test does
  fast                 run all tests except those that drive the real agents
  snapshots [TEST...]  accept the output of tests as their new snapshots, in files and in the source
  docs                 regenerate the generated pages in docs/, messages included
  pictures             draw the pictures in docs/pictures (needs tmux)
  bench [NAME...]      measure tine against floors (see bench/README.md)
  coverage [CRATE...]  run the tests of these crates (default: all) and print how many lines they cover
  deny                 check licences, sources and advisories of dependencies (needs cargo-deny and a network)";

/// The outcome of a task; the error is a message for the person.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    let task = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    let outcome = match task.as_str() {
        "test" => run(program("./test").args(&arguments)),
        "fast" => run(program("./test").arg("--fast").args(&arguments)),
        "snapshots" => snapshots::accept(&arguments),
        "docs" => docs(),
        "pictures" => pictures::draw(),
        "bench" => bench(&arguments),
        "coverage" => coverage::measure(&arguments),
        "deny" => run(&mut cargo(["deny", "check"])),
        "" | "help" | "-h" | "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        other => {
            eprintln!("error: unknown task `{other}`\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Regenerates the reference and the lists of messages, which are written by tests of three crates.
fn docs() -> Outcome {
    // The features of the whole workspace: with those of one package, its dependencies would be compiled again.
    let engine = ["test", "--workspace", "--lib", "--", "messages"];
    let tine = ["test", "--workspace", "--bin", "tine", "--", "reference", "messages"];
    let notices = ["test", "--workspace", "--test", "language", "--", "notices"];
    run(cargo(engine).env("TINE_UPDATE", "1"))?;
    run(cargo(tine).env("TINE_UPDATE", "1"))?;
    run(cargo(notices).env("TINE_UPDATE", "1"))
}

/// Measures what is published.
fn bench(names: &[String]) -> Outcome {
    run(&mut cargo(["build", "--profile", "dist", "--package", "tine"]))?;
    run(cargo(["run", "--profile", "dist", "--package", "tine-bench", "--"]).args(names))
}

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of the workspace")
}

/// The folder for what cargo builds.
fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs a command to its end.
fn run(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{name}` failed: {status}")),
        Err(error) => Err(format!("cannot run `{name}`: {error}")),
    }
}
