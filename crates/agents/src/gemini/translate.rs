//! Another agent's conversation as a session of Gemini CLI, which tine doesn't write yet.

use std::io;

use transcript::translate::{Message, Receipt, ToolWords};

use super::Gemini;
use crate::translate::{Translation, TranslationRequest};

impl Translation for Gemini {
    fn takes_translations(&self) -> bool {
        false
    }

    fn shared_tools(&self) -> &'static [ToolWords] {
        &[]
    }

    fn adapt(&self, _message: &mut Message, _receipt: &mut Receipt) {}

    fn write_session(
        &self,
        _request: &TranslationRequest,
        _messages: &mut dyn Iterator<Item = Message>,
        _out: &mut dyn io::Write,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
