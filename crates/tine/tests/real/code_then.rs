//! explore
use std::fs;
use serde_json::json;
use testkit::agents::{ClaudeDriver, CodexDriver};
use testkit::model::{Model, Reply};
use testkit::Sandbox;

testkit::for_each_version!(c2_1_325 = "2.1.325", c2_1_197 = "2.1.197" => [explore_claude]);
testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [explore_codex]);

fn explore_claude(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let claude = ClaudeDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let p = |name: &str| project.join(name).to_str().unwrap().to_owned();
    fs::write(p("crlf.txt"), "one\r\ntwo\r\nthree\r\n").unwrap();
    fs::write(p("tabs.txt"), "\tone\n\t\ttwo\nthree &$1\nno newline").unwrap();
    fs::write(p("bom.txt"), "\u{feff}one\ntwo\n").unwrap();
    fs::write(p("mixed.txt"), "one\r\ntwo\nthree\nfour\r\n").unwrap();
    fs::write(p("latin.txt"), b"caf\xe9\nx\n").unwrap();
    fs::write(p("empty.txt"), "").unwrap();
    fs::write(p("nb.ipynb"), r#"{"cells":[{"cell_type":"code","id":"a1","source":["x = 1"],"metadata":{},"outputs":[],"execution_count":null}],"metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}"#).unwrap();
    let read = |n: &str| Reply::tool("Read", json!({"file_path": p(n)}));
    let edit = |n: &str, a: &str, b: &str| Reply::tool("Edit", json!({"file_path": p(n), "old_string": a, "new_string": b}));
    for n in ["crlf.txt","tabs.txt","bom.txt","mixed.txt","latin.txt","empty.txt","nb.ipynb"] { model.push(read(n)); }
    model.push(edit("crlf.txt", "two", "TWO\nTWO2"));
    model.push(edit("tabs.txt", "three &$1", "\tTHREE $& <x>"));
    model.push(edit("bom.txt", "two", "TWO"));
    model.push(edit("mixed.txt", "two", "TWO\nx"));
    model.push(edit("latin.txt", "x", "y"));
    model.push(Reply::tool("NotebookEdit", json!({"notebook_path": p("nb.ipynb"), "cell_id": "a1", "new_source": "x = 2"})));
    model.push(Reply::tool("Write", json!({"file_path": p("new/deep.txt"), "content": "a\nb"})));
    model.push(Reply::tool("Write", json!({"file_path": p("crlf.txt"), "content": "x\ny\n"})));
    model.push(edit("nonexist.txt", "", "created by edit\n"));
    model.push(Reply::tool("MultiEdit", json!({"file_path": p("tabs.txt"), "edits": [{"old_string":"one","new_string":"ONE"},{"old_string":"two","new_string":"T W"}]})));
    model.push(Reply::tool("Bash", json!({"command": "sed -i s/a/b/ new/deep.txt && echo hi > sh.txt", "description":"x"})));
    model.push(Reply::tool("Bash", json!({"command": "true", "description":"x"})));
    model.push(Reply::tool("Bash", json!({"command": "cat crlf.txt; rm sh.txt; printf '\\0\\1' > bin.dat", "description":"x"})));
    model.push(read("crlf.txt"));
    model.push(Reply::tool("Read", json!({"file_path": p("tabs.txt"), "offset": 2, "limit": 1})));
    model.push(edit("crlf.txt", "nothere", "q"));
    model.push(Reply::tool("Edit", json!({"file_path": p("crlf.txt"), "old_string": "x", "new_string": "y", "replace_all": true})));
    model.push(Reply::text("done"));
    let id = "11111111-1111-4111-8111-111111111111";
    claude.start(&project, id, "go");
    let out = format!("/tmp/rebuild/claude-{version}");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).unwrap();
    fs::copy(claude.transcript(id).unwrap(), format!("{out}/t.jsonl")).unwrap();
    std::process::Command::new("cp").args(["-r", project.to_str().unwrap(), &format!("{out}/tree")]).status().unwrap();
    std::process::Command::new("sh").arg("-c").arg(format!("find {} > {out}/files", sandbox.claude_home().display())).status().unwrap();
}

fn explore_codex(version: &str) {
    let (sandbox, model) = (Sandbox::new(), Model::start());
    let codex = CodexDriver::new(&sandbox, &model, version);
    let project = sandbox.project("app");
    let p = |name: &str| project.join(name).to_str().unwrap().to_owned();
    fs::write(p("crlf.txt"), "one\r\ntwo\r\nthree\r\n").unwrap();
    fs::write(p("tabs.txt"), "\tone\n\t\ttwo\nthree &$1\nno newline").unwrap();
    fs::write(p("del.txt"), "one\ntwo").unwrap();
    fs::write(p("mv.txt"), "one\ntwo\n").unwrap();
    let patch = |body: &str| Reply::tool("exec_command", json!({"cmd": format!("apply_patch <<'EOF'\n*** Begin Patch\n{body}\n*** End Patch\nEOF\n")}));
    model.push(patch("*** Update File: crlf.txt\n@@\n one\n-two\n+TWO\n three"));
    model.push(patch("*** Update File: tabs.txt\n@@\n \t\ttwo\n-three &$1\n+\tTHREE\n no newline"));
    model.push(patch("*** Add File: new/a.txt\n+hello\n+world\n*** Delete File: del.txt\n*** Update File: mv.txt\n*** Move to: moved/mv.txt\n@@\n one\n-two\n+three"));
    model.push(patch("*** Update File: new/a.txt\n@@\n-nothere\n+x"));
    model.push(patch("*** Add File: new/a.txt\n+over\n+write"));
    model.push(Reply::tool("apply_patch", json!({"input": "*** Begin Patch\n*** Update File: new/a.txt\n@@\n over\n-write\n+written\n*** End Patch"})));
    model.push(Reply::tool("exec_command", json!({"cmd": "cat tabs.txt crlf.txt"})));
    model.push(Reply::tool("exec_command", json!({"cmd": "cat tabs.txt"})));
    model.push(Reply::tool("exec_command", json!({"cmd": "sed -i s/one/ONE/ tabs.txt", "workdir": project.to_str().unwrap()})));
    model.push(Reply::text("done"));
    let id = codex.start(&project, "go");
    let out = format!("/tmp/rebuild/codex-{version}");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).unwrap();
    fs::copy(codex.rollout(&id).unwrap(), format!("{out}/t.jsonl")).unwrap();
    std::process::Command::new("cp").args(["-r", project.to_str().unwrap(), &format!("{out}/tree")]).status().unwrap();
}
