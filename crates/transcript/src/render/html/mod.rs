//! A session as one HTML page that needs nothing else: no script, no font, no picture, no network.
//!
//! Invariant: everything from the transcript is cleaned and escaped, or rendered by `prose`, before it is written.

mod page;
mod prose;

use std::fmt;
use std::io::{self, Write};

use self::page::{Escaped, escaped, foot, head, time};
use super::segments::segments;
use super::turns::{Turns, is_turn_prompt};
use super::{Part, Renderer, Tools, call, words};
use crate::seed::is_seed;
use crate::text::clean;
use crate::{Block, BlockKind, Defects, NoticeKind, SessionView};

/// Writes a page with a section for each turn; what is long is folded.
#[derive(Debug)]
pub struct Html<W> {
    writer: W,
    tools: Tools,
    turns: Turns,
    turn_is_open: bool,
    /// How many subagents are open, one in the other.
    subagents: usize,
    /// The call that is still open, so that its output can be put into it.
    call: Option<String>,
}

/// What a tool gave back.
struct Output<'a> {
    call: &'a str,
    tool: String,
    text: &'a str,
    error: bool,
    outcome: Option<String>,
}

impl<W: Write> Html<W> {
    /// A renderer that writes to `writer`.
    pub fn new(writer: W, tools: Tools) -> Self {
        Html { writer, tools, turns: Turns::default(), turn_is_open: false, subagents: 0, call: None }
    }

    fn line(&mut self, html: impl fmt::Display) -> io::Result<()> {
        writeln!(self.writer, "{html}")
    }

    fn close_call(&mut self) -> io::Result<()> {
        if self.call.take().is_some() { self.line("</details>") } else { Ok(()) }
    }

    fn close_subagents(&mut self, remaining: usize) -> io::Result<()> {
        while self.subagents > remaining {
            self.subagents -= 1;
            self.line("</div>\n</details>")?;
        }
        Ok(())
    }

    fn close_turn(&mut self) -> io::Result<()> {
        self.close_call()?;
        self.close_subagents(0)?;
        if std::mem::take(&mut self.turn_is_open) { self.line("</section>") } else { Ok(()) }
    }

    fn open_turn(&mut self, block: &Block) -> io::Result<()> {
        self.close_turn()?;
        self.turn_is_open = true;
        let number = block.turn;
        if number == 0 {
            return self.line("<section class=\"turn\" id=\"turn-0\">");
        }
        let time = block.at.map(|at| format!(" {}", time(at))).unwrap_or_default();
        self.line(format_args!("<section class=\"turn\" id=\"turn-{number}\">"))?;
        self.line(format_args!("<h2><a href=\"#turn-{number}\">Turn {number}</a>{time}</h2>"))
    }

    fn prompt(&mut self, text: &str, label: Option<&str>) -> io::Result<()> {
        let label = label.map(|label| format!("<p class=\"label\">{label}</p>")).unwrap_or_default();
        let text = clean(text);
        let text = Escaped(words::trimmed(&text));
        self.line(format_args!("<div class=\"prompt\" role=\"group\" aria-label=\"Prompt\">{label}<p>{text}</p></div>"))
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        let text = clean(text);
        let mut is_open = false;
        for segment in segments(&text) {
            let html = prose::rendered(&segment);
            if !is_open && html.trim().is_empty() {
                continue;
            }
            if !std::mem::replace(&mut is_open, true) {
                self.line("<div class=\"prose answer\">")?;
            }
            self.writer.write_all(html.as_bytes())?;
        }
        if is_open { self.line("</div>") } else { Ok(()) }
    }

    /// Long text, folded under one line.
    fn folded(&mut self, class: &str, summary: &str, prose: &str) -> io::Result<()> {
        self.line(format_args!("<details class=\"step {class}\"><summary>{summary}</summary>\n<div class=\"prose\">"))?;
        for segment in segments(&clean(prose)) {
            self.writer.write_all(prose::rendered(&segment).as_bytes())?;
        }
        self.line("</div>\n</details>")
    }

    fn call(&mut self, id: &str, name: &str, input: &serde_json::Value) -> io::Result<()> {
        let mut line = format!("<b>{}</b>", escaped(&words::tool(Some(name))));
        let telling = call::main_argument(input);
        if !telling.is_empty() {
            line = format!("{line} <code>{}</code>", escaped(&telling));
        }
        if self.tools == Tools::Brief && call::telling_is_all(input) {
            return self.line(format_args!("<div class=\"step line\">{line}</div>"));
        }
        self.line(format_args!("<details class=\"step\"><summary>{line}</summary>"))?;
        self.call = Some(id.to_owned());
        let arguments = call::all_arguments(input);
        if arguments.is_empty() {
            Ok(())
        } else {
            self.line(format_args!("<pre>{}</pre>", Escaped(arguments.trim_end())))
        }
    }

    fn output(&mut self, output: &Output<'_>) -> io::Result<()> {
        if self.call.as_deref() != Some(output.call) {
            self.close_call()?;
            let tool = escaped(&output.tool);
            self.line(format_args!("<details class=\"step\"><summary><b>{tool}</b> <span>output</span></summary>"))?;
        }
        self.call = None;
        let failed = if output.error { " failed" } else { "" };
        if let Some(outcome) = &output.outcome {
            self.line(format_args!("<p class=\"label{failed}\">{}</p>", escaped(outcome)))?;
        }
        let text = clean(output.text);
        match text.trim_end() {
            "" => self.line("<p class=\"label\">no output</p>")?,
            text => self.line(format_args!("<pre class=\"output{failed}\">{}</pre>", Escaped(text)))?,
        }
        self.line("</details>")
    }

    fn failure(&mut self, output: &Output<'_>) -> io::Result<()> {
        let (tool, first) = (escaped(&output.tool), escaped(&words::first_line(output.text)));
        let outcome = output.outcome.as_deref().unwrap_or("failed");
        self.line(format_args!("<div class=\"step line failed\"><b>{tool} {outcome}</b> <code>{first}</code></div>"))
    }

    fn notice(&mut self, kind: NoticeKind, text: &str) -> io::Result<()> {
        let class = if kind == NoticeKind::Error { "notice error" } else { "notice" };
        let label = words::notice(kind);
        let text = clean(text);
        let text = text.trim();
        if self.tools == Tools::Full && text.contains('\n') {
            let first = escaped(&words::first_line(text));
            return self.line(format_args!(
                "<details class=\"step\"><summary><b>{label}</b> <code>{first}</code></summary><pre>{}</pre></details>",
                Escaped(text)
            ));
        }
        let line = escaped(&words::short_line(text));
        let told = if line.is_empty() { label.to_owned() } else { format!("{label}: {line}") };
        self.line(format_args!("<p class=\"{class}\">{told}</p>"))
    }

    fn subagent(&mut self, label: &str) -> io::Result<()> {
        let line = format!("<b>Subagent</b> <span>{}</span>", escaped(label));
        if self.tools == Tools::Brief {
            return self.line(format_args!("<div class=\"step line\">{line}</div>"));
        }
        self.subagents += 1;
        self.line(format_args!("<details class=\"step subagent\"><summary>{line}</summary>\n<div class=\"nested\">"))
    }

    fn content(&mut self, block: &Block) -> io::Result<()> {
        let full = self.tools == Tools::Full;
        match &block.kind {
            BlockKind::Prompt { text, steer: true } => self.prompt(text, Some("Sent while the agent was busy")),
            BlockKind::Prompt { text, .. } if is_turn_prompt(block) => {
                self.prompt(text, is_seed(text).then_some(words::SEED))
            }
            BlockKind::Prompt { text, .. } => self.prompt(text, Some("Prompt")),
            BlockKind::Answer { text, .. } => self.answer(text),
            BlockKind::Thinking { text } if full && !text.trim().is_empty() => {
                self.folded("thinking", "Thinking", text)
            }
            BlockKind::Thinking { .. } => Ok(()),
            BlockKind::Call { id, name, input } => self.call(id, name, input),
            BlockKind::Output { call, name, text, error, exit_code } => {
                let outcome = words::outcome(*error, *exit_code);
                let output = Output { call, tool: words::tool(name.as_deref()), text, error: *error, outcome };
                match (full, error) {
                    (true, _) => self.output(&output),
                    (false, true) => self.failure(&output),
                    (false, false) => Ok(()),
                }
            }
            BlockKind::Media { media_type, bytes, .. } => {
                self.line(format_args!("<p class=\"notice\">[{}]</p>", escaped(&words::media(media_type, *bytes))))
            }
            BlockKind::Compaction { summary } => {
                self.line("<p class=\"compaction\">history compacted</p>")?;
                let shown = full && !summary.trim().is_empty();
                if shown { self.folded("summary", "Summary for the agent", summary) } else { Ok(()) }
            }
            BlockKind::Notice { notice, text } => self.notice(*notice, text),
            BlockKind::Subagent { id, role, description } => {
                self.subagent(&words::subagent(id, role.as_deref(), description.as_deref()))
            }
        }
    }
}

impl<W: Write> Renderer for Html<W> {
    fn begin(&mut self, session: &SessionView, part: Part) -> io::Result<()> {
        head(&mut self.writer, session, part)
    }

    fn block(&mut self, block: &Block) -> io::Result<()> {
        let position = self.turns.next(block);
        if position.opens_turn {
            self.open_turn(block)?;
        }
        if !words::shows_depth(self.tools, position.depth) {
            return Ok(());
        }
        let answers_call = self.tools == Tools::Full
            && position.depth == self.subagents
            && matches!(&block.kind, BlockKind::Output { call, .. } if self.call.as_ref() == Some(call));
        if !answers_call {
            self.close_call()?;
            self.close_subagents(position.depth)?;
        }
        self.content(block)
    }

    fn end(&mut self, defects: &Defects) -> io::Result<()> {
        self.close_turn()?;
        foot(&mut self.writer, defects)?;
        self.writer.flush()
    }
}
