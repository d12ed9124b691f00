//! Notices about the results of a search. None of them is an error.

use transcript::text::count;

use super::{Answer, EngineError};
use crate::search::index::work::Missing;
use crate::search::rank::Grounds;

impl Answer {
    /// Notices about the results for the user, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = self.notices.clone();
        let missing = self.missing;
        let nothing = if missing == Missing::default() { "no session contains" } else { "no indexed session contains" };
        for correction in &self.corrections {
            notices.push(format!("{nothing} `{}`; searched for `{}` instead", correction.asked, correction.taken));
        }
        if !self.unknown.is_empty() && !self.no_sessions {
            notices.push(format!("{nothing} `{}`", self.unknown.join("` or `")));
            if self.left_out > 0 {
                let lines = count(self.left_out, "transcript line");
                notices.push(format!("{lines} were too long to index"));
            }
        }
        if missing.sessions > 0 {
            let sessions = count(missing.sessions as u64, "session");
            let verb = not(missing.sessions);
            notices.push(format!("{sessions} {verb} indexed yet, so results may be incomplete; run `tine index`"));
        } else if missing.tools > 0 {
            let sessions = count(missing.tools as u64, "session");
            notices.push(format!("tool calls and output of {sessions} aren't indexed yet; run `tine index`"));
        }
        let Grounds { missing, unknown_language } = self.grounds;
        if unknown_language {
            notices.push(
                "the language of the question isn't supported for search by meaning; matched by keyword only".into(),
            );
        } else if missing > 0 {
            let sessions = count(missing as u64, "session");
            let verb = not(missing);
            notices.push(format!(
                "{sessions} {verb} embedded yet; results by meaning may be incomplete; run `tine index`"
            ));
        }
        notices
    }

    /// The same for programs, with the engines that didn't answer and the folders that couldn't be read. People are
    /// warned about folders by every command.
    pub fn all_errors(&self) -> Vec<EngineError> {
        let notice = |message| EngineError { engine: self.engine, message };
        let notices = self.notices().into_iter().chain(self.unlisted.iter().cloned());
        self.errors.iter().cloned().chain(notices.map(notice)).collect()
    }

    /// Whether something that isn't in the index yet could match.
    pub fn is_incomplete(&self) -> bool {
        self.missing != Missing::default() || self.grounds.missing > 0
    }
}

fn not(count: usize) -> &'static str {
    if count == 1 { "isn't" } else { "aren't" }
}
