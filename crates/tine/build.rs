//! Hooks run this binary on every prompt, so its start counts. A binary at a fixed place needs no relocations, and one that
//! has its libraries in it needs no loader: of the milliseconds that a hook takes, that saves a quarter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// What Rust's standard library asks for, and the archive that has it.
const LIBRARIES: [(&str, &str); 7] =
    [("gcc_s", "gcc_eh"), ("c", "c"), ("m", "m"), ("rt", "rt"), ("pthread", "pthread"), ("util", "util"), ("dl", "dl")];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|set| set == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    println!("cargo:rustc-link-arg-bin=tine=-no-pie");
    let archives = PathBuf::from(env::var_os("OUT_DIR").expect("a folder to write to")).join("archives");
    let is_native = env::var_os("HOST") == env::var_os("TARGET");
    // Not every system has the archives; with its shared libraries the binary is the same, and starts a little later.
    if is_native && collect(&archives).is_ok() {
        println!("cargo:rustc-link-arg-bin=tine=-L{}", archives.display());
        println!("cargo:rustc-link-arg-bin=tine=-static");
    }
}

/// Puts the archives where the linker looks first. Asking the compiler for them all is not possible: what is linked
/// statically as a whole cannot have procedural macros.
fn collect(folder: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    for (wanted, name) in LIBRARIES {
        let archive = format!("lib{name}.a");
        let output = Command::new("cc").arg(format!("-print-file-name={archive}")).output()?;
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        // A name that comes back as it was is not known.
        if !path.is_absolute() || !path.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        std::os::unix::fs::symlink(path, folder.join(format!("lib{wanted}.a")))?;
    }
    Ok(())
}
