//! What the renderers write: snapshots of one rich conversation, hostile content, and properties of any conversation.

mod any;
mod hostile;
mod properties;
mod sample;
mod snapshots;
mod streaming;
mod terminal_prose;

use jiff::tz::TimeZone;
use transcript::render::{Html, Json, Markdown, Part, Renderer, Style, Terminal, Tools};
use transcript::{Block, Defects, SessionView};

/// A session and all that is in it.
#[derive(Debug)]
struct Conversation {
    session: SessionView,
    blocks: Vec<Block>,
    defects: Defects,
}

impl Conversation {
    fn json(&self) -> String {
        self.rendered(|out| Box::new(Json::new(out)))
    }

    fn markdown(&self, tools: Tools) -> String {
        self.rendered(|out| Box::new(Markdown::new(out, tools)))
    }

    fn html(&self, tools: Tools) -> String {
        self.rendered(|out| Box::new(Html::new(out, tools)))
    }

    fn terminal(&self, tools: Tools, color: bool, width: usize) -> String {
        let style = Style { color, width, zone: TimeZone::UTC, highlight: None };
        self.rendered(|out| Box::new(Terminal::new(out, tools, style)))
    }

    fn rendered(&self, renderer: impl FnOnce(&mut Vec<u8>) -> Box<dyn Renderer + '_>) -> String {
        let mut out = Vec::new();
        let mut renderer = renderer(&mut out);
        renderer.begin(&self.session, Part::Whole).unwrap();
        for block in &self.blocks {
            renderer.block(block).unwrap();
        }
        renderer.end(&self.defects).unwrap();
        drop(renderer);
        String::from_utf8(out).unwrap()
    }
}
