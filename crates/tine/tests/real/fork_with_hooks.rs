//! Forks by the real agents while tine's own hooks run inside of them: the fork has the name that was asked for and no
//! other, and can be taken back after it was opened and closed.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::poll::{PATIENCE, wait_until};

use crate::panes::{Lab, answer_by_prompt, with_lab};

mod claude {
    testkit::for_each_version!(v2_1_325 = "2.1.325", v2_1_197 = "2.1.197" => [forks_with_hooks]);
    fn forks_with_hooks(version: &str) {
        super::forks_with_hooks("claude", version);
    }
}

mod codex {
    testkit::for_each_version!(v0_166_0 = "0.166.0", v0_140_0 = "0.140.0" => [forks_with_hooks]);
    fn forks_with_hooks(version: &str) {
        super::forks_with_hooks("codex", version);
    }
}

/// Every name in use.
fn names(lab: &Lab<'_>) -> BTreeSet<String> {
    let sessions = lab.json(&["list", "--all", "--json"]);
    let name = |session: &Value| session["name"].as_str().map(str::to_owned);
    sessions.as_array().expect("a list").iter().filter_map(name).collect()
}

fn forks_with_hooks(agent: &str, version: &str) {
    with_lab(agent, version, true, |lab, model| {
        let _gate = answer_by_prompt(model);
        lab.tine(&["setup", agent, "--yes"]);
        lab.start("source");
        lab.tine(&["send", "source", "first", "--wait"]);
        lab.tine(&["stop", "source"]);
        let mut expected = BTreeSet::from(["source".to_owned()]);
        for method in ["native", "seed"] {
            for place in ["none", "headless", "tmux:window"] {
                let name = format!("{method}-{}", place.split(':').next().unwrap_or_default());
                let mut words = vec!["fork", "source", &name, "--method", method, "--in", place, "--json", "--yes"];
                if place == "headless" {
                    words.extend(["--prompt", "go on"]);
                }
                let made = lab.json(&words);
                assert_eq!((&made["method"], &made["session"]["name"]), (&method.into(), &name.as_str().into()));
                let info = lab.json(&["info", &name, "--json"]);
                assert_eq!(info["parent"]["name"], "source", "{name}: {info:#}");
                expected.insert(name);
                assert_eq!(names(lab), expected, "{method} {place}");
            }
        }
        // A fork that was opened and closed without a message.
        lab.tine(&["stop", "native-tmux", "seed-tmux"]);
        wait_until("the agent to end", PATIENCE, || lab.state("native-tmux") == "stopped");
        let log = lab.json(&["log", "--json"]);
        let is_it = |operation: &&Value| operation["what"].as_str().is_some_and(|what| what.ends_with(" native-tmux"));
        let operation = log.as_array().expect("a log").iter().find(is_it).expect("the fork")["id"].to_string();
        lab.tine(&["undo", &operation]);
        expected.remove("native-tmux");
        assert_eq!(names(lab), expected);
        let forked = lab.tine(&["events", "--json", "--last", "1000"]);
        assert_eq!(forked.lines().filter(|line| line.contains("\"event\":\"forked\"")).count(), 6, "{forked}");
    });
}
