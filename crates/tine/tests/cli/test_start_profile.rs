//! How sessions are launched: what is kept of a command line, what is said once, and what is printed of it.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::{COOKIE, EXPORT, LOGIN, World};

/// A Claude Code that notes how it is called and keeps a session, as the real one does without a terminal.
const CLAUDE: &str = r#"#!/bin/bash
printf '%s\n' "$@" > "$HOME/asked"
echo "$HTTPS_PROXY" > "$HOME/proxy"
while read -r line; do case $line in *'"type":"user"'*) break ;; esac; done
said=$(sed -e 's/.*"content":"//' -e 's/"},"uuid".*//' <<<"$line")
id=
while [ $# -gt 0 ]; do
    case $1 in
    --session-id) id=$2 ;;
    --resume) id=$(basename "$2" .jsonl) ;;
    esac
    shift
done
folder=$HOME/.claude/projects/$(pwd -P | sed 's/[^A-Za-z0-9]/-/g')
mkdir -p "$folder"
line() { printf '{"type":"%s","uuid":"%s-0000-4000-8000-000000000000","parentUuid":%s,"sessionId":"%s","cwd":"%s","gitBranch":"%s","timestamp":"2026-11-15T11:00:00.000Z","message":%s}\n' "$1" "$2" "$3" "$id" "$(pwd -P)" "$(git branch --show-current)" "$4"; }
line user 00000001 null '{"role":"user","content":"hello"}' > "$folder/$id.jsonl"
line assistant 00000002 '"00000001-0000-4000-8000-000000000000"' '{"role":"assistant","id":"m","model":"c","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}' >> "$folder/$id.jsonl"
answer='{"type":"assistant","session_id":"'$id'","message":{"content":[{"type":"text","text":"'"$said, $FOO, $TINE_SESSION"'"}]}}'
if [ -e "$HOME/fails" ]; then echo "out of credit" >&2; exit 1; fi
echo "$answer"
echo '{"type":"result","subtype":"success","is_error":false,"session_id":"'$id'"}'
"#;

pub(crate) fn world() -> World {
    let world = World::new();
    world.sandbox.script("claude", CLAUDE);
    world.sandbox.script("codex", "#!/bin/sh\nexit 0\n");
    world
}

fn start(world: &World, arguments: &[&str]) -> Value {
    world.json(["start", "--in", "none", "--json"].iter().chain(arguments))
}

fn asked(world: &World) -> Vec<String> {
    let asked = fs::read_to_string(world.sandbox.home().join("asked")).unwrap();
    asked.lines().map(str::to_owned).collect()
}

/// The words of a command that a program is told.
fn command(output: &Value) -> Vec<&str> {
    output["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
fn what_is_no_option_is_said_once() {
    let world = world();
    let made = start(&world, &["uno", "--", "--model", "opus", "extra words"]);
    assert_eq!(made["profile"]["args"], json!(["--model", "opus"]));
    assert!(command(&made).ends_with(&["--model", "opus", "--", "extra words"]), "{made:#}");
    let output = world.run(["start", "dos", "--in", "headless", "--", "--model", "opus", "--", "-extra words"]);
    assert_eq!(output.out, "-extra words, , dos\n", "{}", output.err);
    assert!(!asked(&world).contains(&"-extra words".to_owned()), "{:?}", asked(&world));
    let resumed = world.json(["resume", "dos", "--json"]);
    assert!(command(&resumed).ends_with(&["--model", "opus"]), "{resumed:#}");
    let resumed = world.json(["resume", "dos", "--json", "--", "more words"]);
    assert!(command(&resumed).ends_with(&["--model", "opus", "--", "more words"]), "{resumed:#}");
    insta::assert_snapshot!("said twice", world.run(["start", "tres", "--prompt", "a", "--", "b"]).whole());
    let output = world.run(["start", "tres", "--agent", "codex", "--", "exec", "hello"]);
    assert!(output.err.contains("`hello` is not an option of Codex"), "{}", output.err);
}

#[test]
fn options_keep_their_values_and_their_order() {
    let world = world();
    for name in ["a.json", "b.json", "c.json"] {
        world.sandbox.write(world.shop.join(name), &format!("{{\"{name}\":1}}"));
    }
    let words = ["--mcp-config", "a.json", "b.json", "--verbose", "--settings=c.json", "-p"];
    let made = start(&world, &[&["three", "--settings", "c.json", "--"][..], &words, &["--", "said"]].concat());
    let files = made["profile"]["files"].as_array().unwrap();
    let copy = |index: usize| files[index]["copy"].as_str().unwrap();
    let expected = ["--mcp-config", copy(0), copy(1), "--verbose", "--settings", copy(2), "--settings", copy(3)];
    assert_eq!(made["profile"]["args"], json!(expected));
    assert!(command(&made).ends_with(&[&expected[..], &["-p", "--", "said"]].concat()), "{made:#}");
    assert_eq!(fs::read_to_string(copy(1)).unwrap(), "{\"b.json\":1}");
    // What Codex reads from a file is kept as well.
    let prompt = world.sandbox.write(world.shop.join("p.md"), "be brief");
    let option = format!("model_instructions_file=\"{}\"", prompt.display());
    let made = start(&world, &["brief", "--agent", "codex", "--", "-c", &option, "-m", "foo", "-i", "one.png"]);
    fs::remove_file(prompt).unwrap();
    let copy = made["profile"]["files"][0]["copy"].as_str().unwrap();
    assert_eq!(fs::read_to_string(copy).unwrap(), "be brief");
    let option = format!("model_instructions_file={copy}");
    assert_eq!(made["profile"]["args"], json!(["-c", option, "-m", "foo"]));
    assert!(command(&made).ends_with(&["-i", "one.png"]), "an image belongs to what is said first");
}

#[test]
fn a_session_flag_is_honoured_or_refused_and_never_dropped() {
    let world = world();
    let id = "7c1d2e30-4f5a-4b6c-8d7e-9f0a1b2c3d4e";
    let made = start(&world, &["given", "--", "--session-id", id, "--verbose"]);
    assert_eq!(made["id"], id);
    assert_eq!(command(&made), ["claude", "--session-id", id, "--name", "given", "--verbose"]);
    let output = world.run(["start", "headless", "--in", "headless", "--prompt", "hello", "--", "--session-id", LOGIN]);
    assert!(output.code == 1 && output.err.contains("already in use"), "{}", output.whole());
    let check = |words: &[&str], hint: &str| {
        let output = world.run(words);
        let hint = format!("hint: {hint}\n");
        assert!(output.code == 1 && output.err.ends_with(&hint), "{words:?}: {}", output.whole());
    };
    let claude = |words: &[&str], hint: &str| check(&[&["start", "new", "--"], words].concat(), hint);
    claude(&["--session-id", id], &format!("`tine resume {id}` continues that session"));
    claude(&["--session-id", "mine"], "leave out `--session-id` to let tine create an id");
    claude(&["--resume", LOGIN], &format!("run `tine resume {LOGIN}`"));
    claude(&["--resume"], "run `tine resume SESSION`");
    claude(&["-c"], "run `tine resume .`");
    claude(&["--resume", LOGIN, "--fork-session"], &format!("run `tine fork {LOGIN}`"));
    claude(&["-c", "--fork-session"], "run `tine fork .`");
    claude(&["-r", LOGIN, "--resume-session-at", "u"], &format!("run `tine fork {LOGIN}@TURN`"));
    claude(&["--name", "y"], "run `tine start NAME`");
    claude(&["--from-pr", "3"], "run `claude --from-pr 3` yourself, then name the session with `tine adopt`");
    let codex =
        |words: &[&str], hint: &str| check(&[&["start", "new", "--agent", "codex", "--"], words].concat(), hint);
    codex(&["resume", EXPORT], &format!("run `tine resume {EXPORT}`"));
    codex(&["resume", "--last"], "run `tine resume .`");
    codex(&["fork", EXPORT, "and a prompt"], &format!("run `tine fork {EXPORT}`"));
    codex(&["-C", "/tmp"], "run `tine start` in that directory");
    let resume = |session: &str, words: &[&str], hint: &str| check(&[&["resume", session, "--"], words].concat(), hint);
    let (login, export) = (&LOGIN[..8], &EXPORT[..8]);
    let own = format!("leave it out: `tine resume {login}` continues that session under its own id");
    resume(LOGIN, &["--fork-session"], &format!("run `tine fork {login}`"));
    resume(LOGIN, &["-c"], &own);
    resume(LOGIN, &["--resume", LOGIN], &own);
    resume(LOGIN, &["--session-id", id], &own);
    resume(LOGIN, &["--resume", COOKIE], &format!("run `tine resume {COOKIE}`"));
    resume(LOGIN, &["--session-id", id, "--fork-session"], &format!("run `tine fork {login}`"));
    resume(EXPORT, &["-C", "/tmp"], &format!("run `tine resume {export} --to DIR`"));
    resume(EXPORT, &["fork", EXPORT], &format!("run `tine fork {export}`"));
    insta::assert_snapshot!("session flag", world.run(["start", "new", "--", "--resume", LOGIN]).whole());
    // Nothing of what was refused is left.
    let output = world.run(["status", "new"]);
    assert!(output.err.contains("session `new` not found"), "{}", output.whole());
}

#[test]
fn an_answer_is_understood_whatever_is_told_besides() {
    let world = world();
    let output = world.run(["start", "loud", "--in", "headless", "--prompt", "hello", "--", "--verbose"]);
    assert_eq!((output.code, output.out.as_str()), (0, "hello, , loud\n"), "{}", output.err);
    // More options for this time, with files where the person stands.
    world.sandbox.write(world.blog.join("x.json"), "{}");
    let words = ["resume", "loud", "--in", "headless", "--prompt", "again", "--", "--settings", "x.json"];
    assert_eq!(world.run_in(&world.blog, words).code, 0);
    let settings = world.blog.join("x.json").to_string_lossy().into_owned();
    assert!(asked(&world).windows(2).any(|pair| pair == ["--settings".to_owned(), settings.clone()]));
    assert_eq!(world.json(["info", "loud", "--json"])["profile"]["args"], json!(["--verbose"]));
    for command in [&["start", "quiet"][..], &["resume", "loud"]] {
        let output = world.run([command, &["--in", "headless"]].concat());
        assert!(output.code == 1 && output.err.contains("a headless session needs a prompt"), "{}", output.whole());
    }
}

#[test]
fn an_agent_that_fails_leaves_what_it_began_under_its_name() {
    let world = world();
    world.sandbox.write(world.sandbox.home().join("fails"), "");
    insta::assert_snapshot!(
        "failed after it began",
        world.run(["start", "poor", "--in", "headless", "--prompt", "hello"]).whole()
    );
    assert_eq!(world.json(["info", "poor", "--json"])["turns"], 1);
    insta::assert_snapshot!(
        "failed to resume",
        world.run(["resume", "poor", "--in", "headless", "--prompt", "hello"]).whole()
    );
    world.sandbox.script("claude", "#!/bin/sh\necho 'no such model' >&2\nexit 1\n");
    insta::assert_snapshot!(
        "failed before it began",
        world.run(["start", "none", "--in", "headless", "--prompt", "hello"]).whole()
    );
    assert_eq!(world.run(["start", "none", "--in", "none"]).code, 0, "the name is free");
}

#[test]
fn a_printed_command_has_the_environment() {
    let world = world();
    world.sandbox.write(
        world.sandbox.root().join("config/tine/config.toml"),
        "[profiles.careful]\nagent = \"claude\"\nenv = { FOO = \"b  r\" }\n",
    );
    let words = ["start", "careful", "--profile", "careful", "--in", "headless", "--prompt", "x"];
    assert_eq!(world.run(words).out, "x, b  r, careful\n");
    assert!(world.run(["info", "careful"]).out.contains("FOO='b  r'"));
    let printed = [
        (&["start", "second", "--profile", "careful", "--in", "none"][..], "second"),
        (&["resume", "careful", "--in", "none"], "careful"),
        (&["fork", "careful", "third", "--in", "none"], "third"),
    ];
    world.sandbox.script("claude", "#!/bin/sh\necho \"$FOO, $TINE_SESSION\"\n");
    for (words, name) in printed {
        let output = world.run(words);
        let mut shell: Command = world.sandbox.command("sh");
        let ran = shell.args(["-c", &output.raw]).current_dir("/").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("b  r, {name}\n"), "{}", output.out);
    }
    for words in [&["resume", "third", "--json"][..], &["fork", "third", "fourth", "--json"]] {
        let output = world.json(words);
        let name = if words[0] == "resume" { "third" } else { "fourth" };
        assert_eq!(
            (&output["environment"]["FOO"], &output["environment"]["TINE_SESSION"]),
            (&json!("b  r"), &json!(name))
        );
        assert_eq!(output["command"][0], "claude");
    }
}

#[test]
fn passwords_reach_the_agent_and_nobody_else() {
    let mut world = world();
    world.sandbox.set("HTTPS_PROXY", "http://bob:s3cret@127.0.0.1:9");
    let output = world.run(["start", "quiet", "--in", "headless", "--prompt", "x"]);
    assert_eq!(output.out, "x, , quiet\n", "{}", output.err);
    let given = fs::read_to_string(world.sandbox.home().join("proxy")).unwrap();
    assert_eq!(given, "http://bob:s3cret@127.0.0.1:9\n");
    for words in [
        &["info", "quiet"][..],
        &["info", "quiet", "--json"],
        &["start", "--in", "none"],
        &["start", "--in", "none", "--json"],
        &["resume", "quiet", "--in", "none"],
        &["resume", "quiet", "--json"],
        &["fork", "quiet", "--plan"],
        &["fork", "quiet", "--in", "none"],
        &["fork", "quiet", "--json"],
    ] {
        let output = world.run(words);
        assert!(output.code == 0 && !output.whole().contains("s3cret"), "{}", output.whole());
    }
    let output = world.run(["resume", "quiet", "--in", "none"]);
    assert!(output.err.contains("passwords are not printed") && output.err.contains("HTTPS_PROXY"), "{}", output.err);
    let shown = world.json(["info", "quiet", "--json"]);
    assert_eq!(shown["profile"]["environment"]["HTTPS_PROXY"], "http://bob:[secret]@127.0.0.1:9");
}

#[test]
fn words_are_shown_as_they_were_given() {
    let world = world();
    let words = ["start", "two", "--in", "headless", "--prompt", "x", "--", "--append-system-prompt", "it's  $HOME"];
    assert_eq!(world.run(words).code, 0);
    assert!(world.run(["info", "two"]).out.contains(r"options  --append-system-prompt 'it'\''s  $HOME'"));
}

#[test]
fn a_file_or_a_profile_that_is_not_there_is_named() {
    let world = world();
    insta::assert_snapshot!("no file", world.run(["start", "x2", "--settings", "nosuch.json"]).whole());
    world.sandbox.write(
        world.sandbox.root().join("config/tine/config.toml"),
        "[profiles.careful]\nsettings = \"~/nosuch.json\"\n",
    );
    insta::assert_snapshot!("no such profile among some", world.run(["start", "x2", "--profile", "bold"]).whole());
    insta::assert_snapshot!("no file of a profile", world.run(["start", "x2", "--profile", "careful"]).whole());
}

#[test]
fn several_that_start_at_once_get_names_of_their_own() {
    let world = world();
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = world.command(["start", "--in", "none", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tine")
        })
        .collect();
    let mut names: Vec<String> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
            printed["name"].as_str().unwrap().to_owned()
        })
        .collect();
    names.sort();
    let expected: Vec<String> = std::iter::once("main".into()).chain((2..=8).map(|n| format!("main-{n}"))).collect();
    assert_eq!(names, expected);
}
