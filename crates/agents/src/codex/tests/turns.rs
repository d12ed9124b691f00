//! What a person would count.

use super::{File, look};

/// Checks the number of turns, and what is shown of a thread in both dialects.
fn check(build: impl Fn(&mut File), turns: u32, mid_turn: bool, expected: &[&str]) {
    for mut file in [File::paginated(1, ""), File::legacy(1, "")] {
        build(&mut file);
        let (summary, shown) = look(file.text());
        assert_eq!(shown, expected, "{}", file.text());
        assert_eq!((summary.turns, summary.mid_turn), (turns, mid_turn), "{}", file.text());
        assert_eq!(summary.turn_keys.len(), turns as usize);
        assert!(summary.defects.is_empty(), "{:?}", summary.defects);
    }
}

const ENVIRONMENT: &str = r"<environment_context>\n  <cwd>/home/u/a</cwd>\n</environment_context>";

#[test]
fn context_is_no_prompt() {
    let agents = r"# AGENTS.md instructions for /home/u/a\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>";
    let developer = r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>"}]}"#;
    check(
        |file| {
            file.starts().item(developer).message(agents).message(ENVIRONMENT).asks("one").answers("a1").ends();
            file.starts().message(ENVIRONMENT).asks("two").message("<subagent_notification>").answers("a2").ends();
        },
        2,
        false,
        &["1 prompt one", "1 answer a1", "2 prompt two", "2 answer a2"],
    );
}

#[test]
fn a_prompt_that_was_added_to_a_running_turn_belongs_to_it() {
    let call = r#"{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}"#;
    let output = r#"{"type":"function_call_output","call_id":"c","output":"ok"}"#;
    check(
        |file| {
            file.starts().asks("one").item(call).item(output).asks("and this").answers("both").ends().turn("two");
        },
        2,
        false,
        &[
            "1 prompt one",
            "1 call c exec_command {}",
            "1 output c exec_command ok",
            "1 steer and this",
            "1 answer both",
            "2 prompt two",
            "2 answer answer to two",
        ],
    );
}

#[test]
fn an_interrupted_turn_is_a_turn() {
    check(
        |file| {
            file.starts()
                .asks("one")
                .message(r"<turn_aborted>\nThe user interrupted")
                .event(r#"{"type":"turn_aborted","turn_id":"x","reason":"interrupted"}"#);
            file.turn("two");
        },
        2,
        false,
        &["1 prompt one", "1 interrupted interrupted", "2 prompt two", "2 answer answer to two"],
    );
}

#[test]
fn a_turn_whose_process_was_killed_ends_where_the_next_begins() {
    check(
        |file| {
            file.starts().asks("one").starts().asks("two").answers("a2");
        },
        2,
        true,
        &["1 prompt one", "2 prompt two", "2 answer a2"],
    );
}

#[test]
fn a_shell_command_belongs_to_the_turn_before_it() {
    let command = r"<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\nDuration: 0.1 seconds\nOutput:\nfile\n</result>\n</user_shell_command>";
    check(
        |file| {
            file.turn("one").starts().message(command).ends().turn("two");
        },
        2,
        false,
        &["1 prompt one", "1 answer answer to one", "1 command $ ls\nfile", "2 prompt two", "2 answer answer to two"],
    );
}

#[test]
fn words_that_were_injected_are_no_prompt() {
    check(
        |file| {
            file.turn("one").message("injected").turn("two");
            file.starts().message("put in before").asks("three").ends();
        },
        3,
        false,
        &[
            "1 prompt one",
            "1 answer answer to one",
            "1 info injected",
            "2 prompt two",
            "2 answer answer to two",
            "2 info put in before",
            "3 prompt three",
        ],
    );
}

#[test]
fn a_prompt_whose_event_is_lost_is_still_a_prompt() {
    check(
        |file| {
            file.starts().message("one").answers("a1").ends().starts().message("two");
        },
        2,
        true,
        &["1 prompt one", "1 answer a1", "2 prompt two"],
    );
}

#[test]
fn files_made_by_hand_need_no_events() {
    check(
        |file| {
            file.message(ENVIRONMENT).message("one").answers("a1").message("two").answers("a2");
        },
        2,
        false,
        &["1 prompt one", "1 answer a1", "2 prompt two", "2 answer a2"],
    );
    // One that a client went on with, and one with the event before the message.
    check(
        |file| {
            file.message("one").answers("a1").turn("two").prompt_event("three").message("three").answers("a3");
        },
        3,
        false,
        &["1 prompt one", "1 answer a1", "2 prompt two", "2 answer answer to two", "3 prompt three", "3 answer a3"],
    );
}

#[test]
fn files_of_before_tasks_were_recorded_count_events() {
    check(
        |file| {
            file.message(ENVIRONMENT).asks("one").answers("a1").asks("two").answers("a2");
        },
        2,
        false,
        &["1 prompt one", "1 answer a1", "2 prompt two", "2 answer a2"],
    );
}

#[test]
fn going_back_takes_prompts_back() {
    // 0.140. Prompts are counted, not tasks: the shell command goes with the prompt before it.
    let command = r"<user_shell_command>\n<command>\nls\n</command>";
    let back = |n: u32| format!(r#"{{"type":"thread_rolled_back","num_turns":{n}}}"#);
    check(
        |file| {
            file.turn("one").turn("two").turn("three").starts().message(command).ends().event(&back(2)).turn("four");
        },
        2,
        false,
        &["1 prompt one", "1 answer answer to one", "2 prompt four", "2 answer answer to four"],
    );
    check(
        |file| {
            file.turn("one").starts().asks("two").answers("a2").asks("steering").answers("a3").ends().event(&back(1));
            file.turn("three");
        },
        3,
        false,
        &[
            "1 prompt one",
            "1 answer answer to one",
            "2 prompt two",
            "2 answer a2",
            "3 prompt three",
            "3 answer answer to three",
        ],
    );
    check(
        |file| {
            file.turn("one").turn("two").event(&back(1)).turn("three").event(&back(2)).turn("four");
        },
        1,
        false,
        &["1 prompt four", "1 answer answer to four"],
    );
    check(
        |file| {
            file.turn("one").event(&back(7));
        },
        0,
        false,
        &[],
    );
}

#[test]
fn a_review_is_one_turn() {
    // 0.140 records the prompt twice, and neither version writes it as a message.
    check(
        |file| {
            file.starts()
                .prompt_event("look for bugs")
                .prompt_event("look for bugs")
                .message("<user_action>")
                .answers("none")
                .ends();
        },
        1,
        false,
        &["1 prompt look for bugs", "1 answer none"],
    );
}

#[test]
fn pictures_stand_behind_the_words() {
    let framed = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<image name=[Image #1] path=\"p.png\">"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0="},{"type":"input_text","text":"</image>"},{"type":"input_text","text":"look"}]}"#;
    check(
        |file| {
            file.starts().item(framed).prompt_event("look").answers("seen").ends();
        },
        1,
        false,
        &["1 prompt look", "1 media image/png Some(5)", "1 answer seen"],
    );
}
