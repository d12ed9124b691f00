//! Renderers write at once, keep nothing, and pass on what goes wrong with the writer.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use jiff::tz::TimeZone;
use transcript::render::{Html, Json, Markdown, Part, Renderer, Style, Terminal, Tools};

use crate::sample::conversation;

/// A writer that others can look into, and that breaks after so many bytes.
#[derive(Clone)]
struct Pipe {
    written: Rc<RefCell<Vec<u8>>>,
    breaks_at: usize,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.written.borrow_mut();
        if written.len() + bytes.len() > self.breaks_at {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn renderers(pipe: impl Fn() -> Pipe) -> Vec<(Pipe, Box<dyn Renderer>)> {
    let style = Style { color: true, width: 80, zone: TimeZone::UTC, highlight: None };
    let pipes = [pipe(), pipe(), pipe(), pipe()];
    let [json, markdown, html, terminal] = pipes.clone();
    let renderers: [Box<dyn Renderer>; 4] = [
        Box::new(Json::new(json)),
        Box::new(Markdown::new(markdown, Tools::Full)),
        Box::new(Html::new(html, Tools::Full)),
        Box::new(Terminal::new(terminal, Tools::Full, style)),
    ];
    pipes.into_iter().zip(renderers).collect()
}

#[test]
fn a_block_is_written_when_it_arrives() {
    let conversation = conversation();
    for (pipe, mut renderer) in renderers(|| Pipe { written: Rc::default(), breaks_at: usize::MAX }) {
        renderer.begin(&conversation.session, Part::Whole).unwrap();
        for block in &conversation.blocks {
            let before = pipe.written.borrow().len();
            renderer.block(block).unwrap();
            let told = !matches!(&block.kind, transcript::BlockKind::Thinking { text } if text.is_empty());
            assert!(!told || pipe.written.borrow().len() > before, "{block:?}");
        }
    }
}

#[test]
fn a_broken_pipe_is_passed_on() {
    let conversation = conversation();
    for breaks_at in (0..3000).step_by(37) {
        for (_, mut renderer) in renderers(|| Pipe { written: Rc::default(), breaks_at }) {
            let mut result = renderer.begin(&conversation.session, Part::Whole);
            for block in &conversation.blocks {
                result = result.and_then(|()| renderer.block(block));
            }
            let error = result.and_then(|()| renderer.end(&conversation.defects)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
    }
}
