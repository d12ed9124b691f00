//! What an MCP server asks the user through an agent (an elicitation): a form as questions, its answers as JSON, or a
//! consent.

use serde_json::{Map, Value, json};

use super::{Answer, AnswerChoice, Ask, Question, string};

/// The answer that leaves a field out.
const EMPTY: &str = "leave empty";

/// The answers to a yes-or-no question.
const YES_NO: [&str; 2] = ["yes", "no"];

/// What a server asks for: the fields of its form or, without any, a consent.
pub(crate) fn ask(server: &str, message: &str, schema: &Value, url: Option<&str>, details: Value) -> Ask {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let questions: Vec<Question> =
        fields.map(|(name, field)| question(server, message, name, field, is_required(schema, name))).collect();
    if questions.is_empty() {
        let url = url.map(str::to_owned);
        return Ask::Consent { from: server.to_owned(), message: message.to_owned(), url, details };
    }
    Ask::Questions(questions)
}

/// The result for the server, or what is wrong with the answers.
pub(crate) fn result(schema: &Value, answer: &Answer) -> Result<Value, String> {
    Ok(match answer {
        Answer::Answers(answers) => json!({ "action": "accept", "content": content(schema, answers)? }),
        Answer::Allow { .. } if schema["properties"].as_object().is_none_or(Map::is_empty) => {
            json!({ "action": "accept", "content": {} })
        }
        Answer::Deny { interrupt: true, .. } => json!({ "action": "cancel" }),
        _ => json!({ "action": "decline" }),
    })
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

fn question(server: &str, message: &str, name: &str, field: &Value, is_required: bool) -> Question {
    let named = choices(field);
    let mut choices: Vec<AnswerChoice> =
        named.iter().map(|(label, _)| AnswerChoice { label: label.clone(), description: String::new() }).collect();
    let free = choices.is_empty();
    let suggested =
        field["default"].as_str().map(str::to_owned).or_else(|| field["default"].as_f64().map(|it| it.to_string()));
    if free {
        choices.extend(suggested.map(|label| AnswerChoice { label, description: "suggested".to_owned() }));
    }
    if !is_required {
        choices.push(AnswerChoice { label: EMPTY.to_owned(), description: String::new() });
    }
    let title = field["title"].as_str().unwrap_or(name);
    let more = field["description"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
    let several = field["type"] == "array";
    Question {
        id: name.to_owned(),
        header: server.to_owned(),
        text: format!("{message}\n{title}{more}"),
        choices,
        several,
        free,
    }
}

/// What can be chosen for a field: the label and the value.
fn choices(field: &Value) -> Vec<(String, Value)> {
    if field["type"] == "boolean" {
        return YES_NO.iter().map(|word| ((*word).to_owned(), json!(*word == "yes"))).collect();
    }
    let of = if field["type"] == "array" { &field["items"] } else { field };
    let titled = of["oneOf"].as_array().or(of["anyOf"].as_array());
    if let Some(titled) = titled {
        let label = |choice: &Value| choice["title"].as_str().map_or_else(|| string(&choice["const"]), str::to_owned);
        return titled.iter().map(|choice| (label(choice), choice["const"].clone())).collect();
    }
    let names = of["enumNames"].as_array().map(Vec::as_slice).unwrap_or_default();
    let values = of["enum"].as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
    values.map(|(place, value)| (names.get(place).map_or_else(|| string(value), string), value.clone())).collect()
}

fn content(schema: &Value, answers: &[(String, Vec<String>)]) -> Result<Value, String> {
    let mut content = Map::new();
    for (name, given) in answers {
        if given.iter().any(|word| word == EMPTY) && !is_required(schema, name) {
            continue;
        }
        let field = &schema["properties"][name];
        let title = field["title"].as_str().unwrap_or(name);
        content.insert(name.clone(), value(field, given).map_err(|wrong| format!("{title}: {wrong}"))?);
    }
    Ok(Value::Object(content))
}

fn value(field: &Value, given: &[String]) -> Result<Value, String> {
    let choices = choices(field);
    let chosen = |label: &String| choices.iter().find(|(other, _)| other == label).map(|(_, value)| value.clone());
    let first = given.first().map(String::as_str).unwrap_or_default().trim();
    let number: Option<Value> = match field["type"].as_str() {
        Some("array") => return Ok(given.iter().filter_map(chosen).collect()),
        Some("integer") => first.parse::<i64>().ok().map(Value::from),
        Some("number") => first.parse::<f64>().ok().and_then(|it| serde_json::Number::from_f64(it).map(Value::Number)),
        _ if choices.is_empty() => return Ok(json!(first)),
        _ => return given.first().and_then(chosen).ok_or_else(|| "choose one of the answers".to_owned()),
    };
    let number = number.ok_or_else(|| "enter a number".to_owned())?;
    let amount = number.as_f64().unwrap_or_default();
    match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
        (Some(least), _) if amount < least => Err(format!("enter {least} or more")),
        (_, Some(most)) if amount > most => Err(format!("enter {most} or less")),
        _ => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Value {
        json!({ "type": "object", "required": ["count", "urgent", "colour"], "properties": {
            "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "note": { "type": "string", "default": "none" },
            "tags": { "type": "array", "items": { "enum": ["x", "y"] } },
            "urgent": { "type": "boolean" },
        } })
    }

    fn answers(given: &[(&str, &[&str])]) -> Answer {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Answer::Answers(given.iter().map(|(name, given)| ((*name).to_owned(), words(given))).collect())
    }

    #[test]
    fn a_form_becomes_questions_and_their_answers_its_content() {
        let Ask::Questions(questions) = ask("forms", "Please", &form(), None, Value::Null) else { panic!() };
        let labels = |question: &Question| {
            let labels: Vec<&str> = question.choices.iter().map(|choice| choice.label.as_str()).collect();
            format!("{} {} {}", question.id, labels.join("|"), question.free)
        };
        let shown: Vec<String> = questions.iter().map(labels).collect();
        let expected = [
            "colour Red|Blue false",
            "count  true",
            "note none|leave empty true",
            "tags x|y|leave empty false",
            "urgent yes|no false",
        ];
        assert_eq!(shown, expected);
        let given = answers(&[
            ("colour", &["Blue"]),
            ("count", &["3"]),
            ("note", &["leave empty"]),
            ("tags", &["x", "y"]),
            ("urgent", &["no"]),
        ]);
        let expected = json!({ "colour": "b", "count": 3, "tags": ["x", "y"], "urgent": false });
        assert_eq!(result(&form(), &given), Ok(json!({ "action": "accept", "content": expected })));
    }

    #[test]
    fn wrong_answers_are_refused_before_they_are_sent() {
        for (count, wrong) in
            [("many", "count: enter a number"), ("0", "count: enter 1 or more"), ("10", "count: enter 9 or less")]
        {
            assert_eq!(result(&form(), &answers(&[("count", &[count])])), Err(wrong.to_owned()));
        }
        assert!(result(&form(), &answers(&[("colour", &["Green"])])).is_err());
    }

    #[test]
    fn nothing_but_an_answer_accepts_a_form() {
        let refused = [Answer::Allow { input: None }, Answer::Always(0), Answer::Approve { mode: None }];
        for answer in refused {
            assert_eq!(result(&form(), &answer), Ok(json!({ "action": "decline" })), "{answer:?}");
        }
        let deny = |interrupt| Answer::Deny { reason: None, interrupt };
        assert_eq!(result(&Value::Null, &deny(false)), Ok(json!({ "action": "decline" })));
        assert_eq!(result(&Value::Null, &deny(true)), Ok(json!({ "action": "cancel" })));
        assert_eq!(
            result(&Value::Null, &Answer::Allow { input: None }),
            Ok(json!({ "action": "accept", "content": {} }))
        );
    }
}
