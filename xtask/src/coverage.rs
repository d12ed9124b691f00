//! How many lines the tests cover: built with the compiler's own instrumentation, in a folder of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::{Outcome, cargo, program, root, run, target};

pub(crate) fn measure(crates: &[String]) -> Outcome {
    let (profdata, cov) = (find_tool("llvm-profdata")?, find_tool("llvm-cov")?);
    let folder = target().join("coverage");
    let profiles = folder.join("profiles");
    fs::remove_dir_all(&profiles).ok();
    let chosen: Vec<String> = match crates {
        [] => vec!["--workspace".to_owned()],
        some => some.iter().flat_map(|name| ["--package".to_owned(), name.clone()]).collect(),
    };
    let instrumented = |command: &mut Command| {
        command.args(&chosen).env("CARGO_TARGET_DIR", &folder).env("RUSTFLAGS", "-C instrument-coverage");
        // A file per process, because tests start tine and end it at any moment.
        command.env("LLVM_PROFILE_FILE", profiles.join("%p-%m.profraw"));
    };
    let mut build = cargo(["test", "--no-run", "--message-format", "json"]);
    instrumented(&mut build);
    let built = build.stderr(std::process::Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !built.status.success() {
        return Err("the tests could not be built".into());
    }
    let mut test = cargo(["test", "--no-fail-fast", "--quiet"]);
    instrumented(&mut test);
    let tested = run(&mut test);
    let merged = folder.join("all.profdata");
    run(program(profdata).args(["merge", "--sparse", "--failure-mode=all", "-o"]).arg(&merged).arg(&profiles))?;
    let mut report = program(cov);
    report.arg("report").arg("--instr-profile").arg(&merged);
    report.arg("--ignore-filename-regex").arg("/(\\.cargo|rustc|tests|testkit|xtask|bench)/|_tests\\.rs$");
    for object in objects(&String::from_utf8_lossy(&built.stdout)) {
        report.arg("--object").arg(object);
    }
    run(&mut report)?;
    tested
}

/// The programs that cargo built, from its messages.
fn objects(messages: &str) -> BTreeSet<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}

/// One of LLVM's tools, as new as the compiler: from the component `llvm-tools`, or installed with its version in its name.
fn find_tool(name: &str) -> Result<PathBuf, String> {
    let printed = |arguments: &[&str]| {
        let output = Command::new("rustc").current_dir(root()).args(arguments).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).map_err(|error| error.to_string())
    };
    let version = printed(&["-vV"])?;
    let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    let major = field("LLVM version: ").split('.').next().unwrap_or_default().to_owned();
    let library = Path::new(printed(&["--print", "sysroot"])?.trim()).join("lib/rustlib");
    let component = library.join(field("host: ")).join("bin").join(name);
    let folders = env::var_os("PATH").unwrap_or_default();
    let installed = env::split_paths(&folders).map(|folder| folder.join(format!("{name}-{major}")));
    std::iter::once(component)
        .chain(installed)
        .find(|path| path.is_file())
        .ok_or_else(|| format!("{name} is missing; run `rustup component add llvm-tools`, or install LLVM {major}"))
}
