//! The pictures in README.md: the workbench on the demo's sample sessions in a real tmux, captured and drawn as SVG. The
//! agent is the stand-in of the tests.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::svg;
use crate::{Outcome, cargo, run};

const COLUMNS: usize = 110;
const ROWS: usize = 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// A picture: its name, its title, the keys that lead to it from the one before, and the text that shows it is there.
struct Scene {
    name: &'static str,
    title: &'static str,
    steps: &'static [Step],
}

enum Step {
    Press(&'static str),
    Type(&'static str),
    Wait(&'static str),
}

use Step::{Press, Type, Wait};

const SCENES: [Scene; 4] = [
    Scene {
        name: "sessions",
        title: "All sessions as a graph of forks, with a preview",
        steps: &[Wait("tab scope"), Press("Tab"), Wait("blog")],
    },
    Scene {
        name: "search",
        title: "Search by keyword and by meaning",
        steps: &[Press("/"), Wait("search:"), Type("spreadsheet download"), Wait("turn 1 of")],
    },
    Scene {
        name: "fork",
        title: "Everything that a fork will do, before it does it",
        steps: &[Press("Escape"), Wait("tab scope"), Press("f"), Wait("enter fork"), Wait("Method")],
    },
    Scene {
        name: "chat",
        title: "A chat in a tab: the agent asks before it runs a command",
        steps: &[
            Press("Escape"),
            Wait("tab scope"),
            Press("Down"),
            Press("Down"),
            Press("Down"),
            Wait("login-fix"),
            Press("c"),
            Wait("idle"),
            Type("touch src/auth/cookie.test.ts"),
            Press("Enter"),
            Wait("Wants to run"),
        ],
    },
];

pub(crate) fn draw() -> Outcome {
    run(&mut cargo(["build", "--package", "tine", "--package", "tine-testkit", "--bins"]))?;
    let root = env::current_dir().map_err(|error| error.to_string())?;
    let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into())).join("debug");
    let demo = Command::new(target.join("tine")).args(["demo", "--keep"]).stdin(Stdio::null()).output();
    let demo = demo.map_err(|error| format!("tine demo: {error}"))?;
    let printed = String::from_utf8_lossy(&demo.stdout).into_owned();
    let kept = printed.split_whitespace().find_map(|word| word.strip_prefix("HOME="));
    let home = PathBuf::from(kept.ok_or_else(|| format!("tine demo --keep printed no home:\n{printed}"))?);
    let drawn = draw_in(&home, &target, &root.join("docs/pictures"));
    fs::remove_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    drawn
}

fn draw_in(home: &Path, target: &Path, folder: &Path) -> Outcome {
    let wrong = |error: std::io::Error| error.to_string();
    let bin = home.join("stand-ins");
    fs::create_dir_all(&bin).map_err(wrong)?;
    fs::create_dir_all(folder).map_err(wrong)?;
    symlink(target.join("tine-stand-in"), bin.join("claude")).map_err(wrong)?;
    let tmux = Tmux { socket: home.join("tmux.sock") };
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let variables = [format!("HOME={}", home.display()), format!("PATH={path}"), "LANG=C.UTF-8".to_owned()];
    let mut words = vec!["new-session".to_owned(), "-d".to_owned()];
    words.extend(["-x".to_owned(), COLUMNS.to_string(), "-y".to_owned(), ROWS.to_string()]);
    words.extend(["-c".to_owned(), home.join("shop").display().to_string(), "env".to_owned(), "-i".to_owned()]);
    words.extend(variables);
    words.extend(["TERM=tmux-256color".to_owned(), target.join("tine").display().to_string()]);
    tmux.call(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    let captured = SCENES.iter().try_for_each(|scene| {
        scene.steps.iter().try_for_each(|step| tmux.perform(step))?;
        thread::sleep(Duration::from_millis(500));
        let screen = tmux.call(&["capture-pane", "-e", "-p"])?;
        let file = folder.join(format!("{}.svg", scene.name));
        fs::write(&file, svg::draw(&screen, COLUMNS, scene.title)).map_err(wrong)?;
        println!("{}", file.display());
        Ok(())
    });
    tmux.call(&["kill-server"])?;
    captured
}

struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn call(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null", "-u"]).args(words).env_remove("TMUX");
        let output = command.output().map_err(|error| format!("tmux: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn perform(&self, step: &Step) -> Outcome {
        match step {
            Press(key) => self.call(&["send-keys", key]).map(drop),
            Type(text) => self.call(&["send-keys", "-l", text]).map(drop),
            Wait(text) => {
                let begun = Instant::now();
                loop {
                    let screen = self.call(&["capture-pane", "-p"])?;
                    if screen.contains(text) {
                        return Ok(());
                    }
                    if begun.elapsed() > PATIENCE {
                        return Err(format!("waited in vain for `{text}`:\n{screen}"));
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}
