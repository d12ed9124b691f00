//! Requests of an agent, and how the user answers them. Nothing is answered without a key.

use engine::chat::{Action, AgentRequest, Answer, Ask, Question};
use transcript::render::to_json_pretty;

/// A request with the user's choices so far.
#[derive(Debug, Clone)]
pub(crate) struct PendingRequest {
    pub request: AgentRequest,
    /// The state of the answer.
    pub choosing: Choosing,
}

/// How much of an answer the user has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choosing {
    /// A key decides.
    Key,
    /// A rule is chosen from those that the agent offers.
    Rule {
        /// The selected one.
        selected: usize,
    },
    /// A reason is being written.
    Reason(String),
    /// The arguments of the call are being edited, as JSON.
    Input {
        /// The text.
        text: String,
        /// Why it can't be used.
        error: Option<String>,
    },
    /// Questions are being answered, one after the other.
    Questions {
        /// The answers to the previous questions.
        answers: Vec<(String, Vec<String>)>,
        /// The selected choice.
        selected: usize,
        /// The marked choices, if several are allowed.
        chosen: Vec<usize>,
        /// A free-text answer.
        own: Option<String>,
    },
}

impl PendingRequest {
    pub(crate) fn new(request: AgentRequest) -> Self {
        let choosing = match &request.ask {
            Ask::Questions(_) => Choosing::questions(),
            _ => Choosing::Key,
        };
        PendingRequest { request, choosing }
    }

    /// Whether letters are text and not keys.
    pub(crate) fn takes_text(&self) -> bool {
        matches!(self.choosing, Choosing::Reason(_) | Choosing::Input { .. } | Choosing::Questions { own: Some(_), .. })
    }

    fn with(&self, answer: Answer) -> Action {
        Action::Answer { request: self.request.id.clone(), answer }
    }

    /// Allows it once.
    pub(crate) fn allow(&self) -> Option<Action> {
        match &self.request.ask {
            Ask::Tool { .. } | Ask::Consent { .. } => Some(self.with(Answer::Allow { input: None })),
            Ask::Plan { modes, .. } => {
                let mode = modes.first().map(|mode| (*mode).to_owned());
                Some(self.with(Answer::Approve { mode }))
            }
            Ask::Questions(_) | Ask::Elsewhere { .. } | Ask::Unknown { .. } => None,
        }
    }

    /// Approves a plan in the second mode, such as one that accepts edits.
    pub(crate) fn approve_further(&self) -> Option<Action> {
        let Ask::Plan { modes, .. } = &self.request.ask else { return None };
        modes.get(1).map(|mode| self.with(Answer::Approve { mode: Some((*mode).to_owned()) }))
    }

    /// Denies it. The turn continues unless it is interrupted.
    pub(crate) fn deny(&self, reason: Option<String>, interrupt: bool) -> Action {
        self.with(Answer::Deny { reason, interrupt })
    }

    /// Starts choosing what to allow from now on. A single rule is chosen immediately.
    pub(crate) fn always(&mut self) -> Option<Action> {
        let Ask::Tool { always, .. } = &self.request.ask else { return self.approve_further() };
        match always.len() {
            0 => None,
            1 => Some(self.with(Answer::Always(0))),
            _ => {
                self.choosing = Choosing::Rule { selected: 0 };
                None
            }
        }
    }

    /// Starts editing the arguments.
    pub(crate) fn edit(&mut self) {
        if let Ask::Tool { can_edit: true, input, .. } = &self.request.ask {
            self.choosing = Choosing::Input { text: to_json_pretty(input), error: None };
        }
    }

    /// Takes the choice, the reason, the arguments or the answer that is ready. `None` while questions remain.
    pub(crate) fn confirm(&mut self) -> Option<Action> {
        match self.choosing.clone() {
            Choosing::Key => None,
            Choosing::Rule { selected } => Some(self.with(Answer::Always(selected))),
            Choosing::Reason(reason) => Some(self.deny(Some(reason).filter(|reason| !reason.trim().is_empty()), false)),
            Choosing::Input { text, .. } => match serde_json::from_str(&text) {
                Ok(input) => Some(self.with(Answer::Allow { input: Some(input) })),
                Err(error) => {
                    self.choosing = Choosing::Input { text, error: Some(format!("not valid JSON: {error}")) };
                    None
                }
            },
            Choosing::Questions { mut answers, selected, chosen, own } => {
                let Ask::Questions(questions) = &self.request.ask else { return None };
                let question = questions.get(answers.len())?;
                let given = answer_to(question, selected, &chosen, own.as_deref())?;
                answers.push((question.id.clone(), given));
                if answers.len() == questions.len() {
                    return Some(self.with(Answer::Answers(answers)));
                }
                let next = Choosing::Questions { answers, selected: 0, chosen: Vec::new(), own: None };
                self.choosing = next;
                None
            }
        }
    }

    /// The question that is being answered.
    pub(crate) fn question(&self) -> Option<&Question> {
        match (&self.request.ask, &self.choosing) {
            (Ask::Questions(questions), Choosing::Questions { answers, .. }) => questions.get(answers.len()),
            _ => None,
        }
    }

    /// Moves the selection.
    pub(crate) fn select(&mut self, steps: isize) {
        let last = match (&self.choosing, &self.request.ask) {
            (Choosing::Rule { .. }, Ask::Tool { always, .. }) => always.len().saturating_sub(1),
            // The free-text line comes after the choices.
            (Choosing::Questions { .. }, _) => {
                self.question().map_or(0, |question| (question.choices.len() + usize::from(question.free)).max(1) - 1)
            }
            _ => return,
        };
        if let Choosing::Rule { selected } | Choosing::Questions { selected, .. } = &mut self.choosing {
            *selected = selected.saturating_add_signed(steps).min(last);
        }
    }

    /// Marks the selected choice, if several are allowed.
    pub(crate) fn mark(&mut self) {
        let several = self.question().is_some_and(|question| question.several);
        if let Choosing::Questions { selected, chosen, .. } = &mut self.choosing
            && several
        {
            match chosen.iter().position(|place| place == selected) {
                Some(place) => drop(chosen.remove(place)),
                None => chosen.push(*selected),
            }
        }
    }

    /// Whether the selection is on the free-text line.
    pub(crate) fn is_on_own_words(&self) -> bool {
        let choices = self.question().map(|question| question.choices.len());
        matches!((&self.choosing, choices), (Choosing::Questions { selected, .. }, Some(choices)) if *selected >= choices)
    }

    /// The text that is being written.
    pub(crate) fn text(&mut self) -> Option<&mut String> {
        match &mut self.choosing {
            Choosing::Reason(text) | Choosing::Input { text, .. } | Choosing::Questions { own: Some(text), .. } => {
                Some(text)
            }
            _ => None,
        }
    }
}

impl Choosing {
    fn questions() -> Self {
        Choosing::Questions { answers: Vec::new(), selected: 0, chosen: Vec::new(), own: None }
    }
}

/// The answer to a question; `None` without one.
fn answer_to(question: &Question, selected: usize, chosen: &[usize], own: Option<&str>) -> Option<Vec<String>> {
    let label = |place: &usize| question.choices.get(*place).map(|choice| choice.label.clone());
    if let Some(own) = own.map(str::trim).filter(|own| !own.is_empty()) {
        return Some(chosen.iter().filter_map(label).chain([own.to_owned()]).collect());
    }
    if question.several && !chosen.is_empty() {
        return Some(chosen.iter().filter_map(label).collect());
    }
    label(&selected).map(|label| vec![label])
}

#[cfg(test)]
mod tests {
    use engine::chat::AnswerChoice;
    use serde_json::json;

    use super::*;

    fn pending_request(ask: Ask) -> PendingRequest {
        PendingRequest::new(AgentRequest { id: "r".into(), call: None, by_subagent: false, ask })
    }

    fn question(id: &str, several: bool) -> Question {
        let choice = |label: &str| AnswerChoice { label: label.into(), description: String::new() };
        Question {
            id: id.into(),
            header: String::new(),
            text: id.into(),
            choices: vec![choice("Red"), choice("Blue")],
            several,
            free: true,
        }
    }

    fn answer(action: Option<Action>) -> Answer {
        match action {
            Some(Action::Answer { answer, .. }) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn questions_are_answered_one_after_the_other() {
        let mut asked = pending_request(Ask::Questions(vec![
            question("one", false),
            question("two", true),
            question("three", false),
        ]));
        asked.select(1);
        assert_eq!(asked.confirm(), None);
        asked.mark();
        asked.select(1);
        asked.mark();
        assert_eq!(asked.confirm(), None);
        asked.select(9);
        assert!(asked.is_on_own_words());
        assert_eq!(asked.confirm(), None, "nothing is answered with nothing");
        asked.choosing = match asked.choosing {
            Choosing::Questions { answers, selected, chosen, .. } => {
                Choosing::Questions { answers, selected, chosen, own: Some("Green".into()) }
            }
            other => panic!("{other:?}"),
        };
        let expected = [("one", vec!["Blue"]), ("two", vec!["Red", "Blue"]), ("three", vec!["Green"])];
        let expected = expected.map(|(id, given)| (id.to_owned(), given.into_iter().map(str::to_owned).collect()));
        assert_eq!(answer(asked.confirm()), Answer::Answers(expected.to_vec()));
    }

    #[test]
    fn what_is_unknown_can_only_be_denied() {
        let mut asked = pending_request(Ask::Unknown { name: "elicitation".into() });
        assert_eq!((asked.allow(), asked.always(), asked.confirm()), (None, None, None));
        assert_eq!(answer(Some(asked.deny(None, false))), Answer::Deny { reason: None, interrupt: false });
    }

    #[test]
    fn edited_arguments_have_to_be_json() {
        let ask = Ask::Tool {
            name: "Bash".into(),
            input: json!({ "command": "ls" }),
            reason: None,
            can_edit: true,
            hears_reason: true,
            always: Vec::new(),
        };
        let mut asked = pending_request(ask);
        asked.edit();
        *asked.text().unwrap() = "{".into();
        assert_eq!(asked.confirm(), None);
        assert!(matches!(&asked.choosing, Choosing::Input { error: Some(_), .. }));
        *asked.text().unwrap() = r#"{"command":"pwd"}"#.into();
        assert_eq!(answer(asked.confirm()), Answer::Allow { input: Some(json!({ "command": "pwd" })) });
    }
}
