//! A chat: the messages, the agent's request, and the prompt box.

use engine::chat::{Ask, Question};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use transcript::render::to_json_line;
use transcript::text::{clean, clip, one_line, width};

use super::{BOLD, DIM, SELECTED};
use crate::keymap::{Action, Keymap};
use crate::workbench::chat::{Activity, ChatTab, Choosing, Driver, PendingRequest};
use crate::workbench::layout;
use crate::workbench::state::State;

pub(super) const ACTIONS: &[Action] = &[
    Action::Send,
    Action::Newline,
    Action::Interrupt,
    Action::ForkChat,
    Action::Mode,
    Action::Model,
    Action::ChatTools,
    Action::ToSessions,
    Action::CloseTab,
    Action::Help,
];

/// The tabs, the list of sessions first.
pub(super) fn tab_bar(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let mut spans = Vec::new();
    for label in layout::tab_labels(state, area.width) {
        let is_shown = match label.number {
            Some(number) => state.screen.is_chat(number),
            None => state.chat().is_none(),
        };
        if !spans.is_empty() {
            spans.push(Span::raw("│"));
        }
        spans.push(Span::styled(label.text, if is_shown { SELECTED } else { DIM }));
    }
    frame.render_widget(Line::from(spans), area);
}

/// The status of the chat, on one line.
pub(super) fn header(tab: &ChatTab, columns: u16) -> Line<'static> {
    let label = one_line(&tab.label);
    let state = match (&tab.driver, tab.activity) {
        _ if tab.request().is_some() => "needs you",
        (Driver::Starting, _) => "starting…",
        (Driver::Failed(_), _) => "not started",
        (Driver::Ended(_), _) => "ended",
        (Driver::Pane, _) => "runs elsewhere",
        (_, Activity::Busy) => "working…",
        (_, Activity::Compacting) => "compacting…",
        (Driver::Asleep | Driver::Stream, Activity::Idle) => "idle",
    };
    let left = format!(" · {} · {state}", tab.agent.product_name());
    let mut facts: Vec<String> = Vec::new();
    facts.extend(tab.model.as_deref().map(one_line));
    facts.extend(tab.mode.as_deref().map(|mode| format!("{} mode", one_line(mode))));
    facts.extend(tab.cost.1.map(|cost| format!("${cost:.2}")));
    facts.extend(gauge(tab));
    let right = facts.join(" · ");
    let used = 1 + width(&label) + width(&left);
    let room = usize::from(columns).saturating_sub(used + 2);
    let right = clip(&right, room);
    let gap = " ".repeat(room.saturating_sub(width(&right)) + 1);
    Line::from(vec![Span::styled(format!(" {label}"), BOLD), Span::raw(left), Span::raw(gap), Span::styled(right, DIM)])
}

/// The use of the context window: five blocks and a percentage, or the tokens if the size of the window is unknown.
fn gauge(tab: &ChatTab) -> Option<String> {
    let used = Some(tab.context.used).filter(|used| *used > 0)?;
    let Some(window) = tab.context.window.filter(|window| *window > 0) else {
        return Some(format!("{} tokens", thousands(used)));
    };
    let percent = (used * 100 / window).min(100);
    let full = usize::try_from(percent / 20).unwrap_or(5);
    Some(format!("{}{} {percent} % of {}", "▓".repeat(full), "░".repeat(5 - full), thousands(window)))
}

/// A number of tokens, as `18 k`.
pub(super) fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000_000.. if tokens % 1_000_000 < 100_000 => format!("{} M", tokens / 1_000_000),
        _ => format!("{} k", tokens / 1_000),
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, tab: &ChatTab, keymap: &Keymap) {
    let request = tab.request().map(|asked| request_lines(asked, keymap, area.width.saturating_sub(4)));
    let most = area.height / 2;
    let request_height = request.as_ref().map_or(0, |lines| (lines.len() as u16 + 2).min(most.max(4)));
    let prompt_height = tab.prompt.height(area.width.saturating_sub(4)).clamp(1, most.max(1)) + 1;
    let below = below_lines(tab, area.width);
    let rows = [
        Constraint::Min(1),
        Constraint::Length(below.len() as u16),
        Constraint::Length(request_height),
        Constraint::Length(prompt_height),
    ];
    let [said, notes, asked, prompt] = Layout::vertical(rows).areas(area);
    draw_said(frame, said, tab);
    frame.render_widget(Paragraph::new(below), notes);
    if let Some(lines) = request {
        draw_request(frame, asked, tab, lines);
    }
    draw_prompt(frame, prompt, tab);
}

/// The conversation: the lines on the screen, and no others.
fn draw_said(frame: &mut Frame<'_>, area: Rect, tab: &ChatTab) {
    let Some(history) = tab.history.as_ref().or(Some(&crate::workbench::document::EMPTY)).filter(|_| !is_reading(tab))
    else {
        frame.render_widget(Paragraph::new(Line::styled(" reading…", DIM)), area);
        return;
    };
    let unsettled = tab.log.unsettled();
    let parts = [&history.lines[..], tab.log.finished(), tab.log.settled(), &unsettled];
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let height = usize::from(area.height);
    let top = tab.top.unwrap_or(usize::MAX).min(total.saturating_sub(height));
    let mut skipped = 0;
    let mut row = 0;
    for part in parts {
        let from = top.saturating_sub(skipped).min(part.len());
        for line in part[from..].iter().take(height - row) {
            let place = Rect { x: area.x + 1, y: area.y + row as u16, width: area.width.saturating_sub(1), height: 1 };
            frame.render_widget(line, place);
            row += 1;
        }
        skipped += part.len();
    }
    if total == 0 {
        frame.render_widget(Paragraph::new(Line::styled("  Write a message below.", DIM)), area);
    }
}

fn is_reading(tab: &ChatTab) -> bool {
    tab.history.is_none() && tab.session.as_ref().is_some_and(|session| session.view.turns > 0) && tab.ticket > 0
}

/// The lines between the conversation and the prompt box: messages under way, notes, errors.
fn below_lines(tab: &ChatTab, columns: u16) -> Vec<Line<'static>> {
    let room = usize::from(columns).saturating_sub(4);
    let line = |mark: &str, text: &str| Line::styled(clip(&format!(" {mark}{}", one_line(text)), room + 3), DIM);
    let mut lines: Vec<Line<'static>> = tab.sent.iter().map(|prompt| line("❯ ", &prompt.text)).collect();
    lines.extend(tab.queued.iter().map(|prompt| line("queued: ", &prompt.text)));
    match &tab.driver {
        Driver::Failed(trouble) => {
            lines.push(Line::styled(clip(&format!(" error: {}", one_line(&trouble.message)), room + 3), BOLD));
            lines.extend(trouble.hint.iter().map(|hint| line("hint: ", hint)));
        }
        Driver::Ended(end) if end.code != Some(0) => {
            let code = end.code.map_or("killed".to_owned(), |code| format!("exit code {code}"));
            lines.push(Line::styled(
                format!(" The agent has ended ({code}). Send a message to resume the session."),
                BOLD,
            ));
            lines.extend(end.printed.lines().rev().take(2).map(|printed| line("", printed)));
        }
        Driver::Pane => lines.push(line("", "This session runs in another place. Messages are typed there.")),
        _ => {}
    }
    lines.extend(tab.note.iter().map(|note| line("", note)));
    lines
}

fn draw_prompt(frame: &mut Frame<'_>, area: Rect, tab: &ChatTab) {
    let pictures = match tab.prompt.images.len() {
        0 => String::new(),
        1 => " 1 picture ".to_owned(),
        count => format!(" {count} pictures "),
    };
    let block = Block::new().borders(Borders::TOP).border_style(DIM).title(pictures);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [mark, text] = Layout::horizontal([Constraint::Length(3), Constraint::Min(1)]).areas(inner);
    frame.render_widget(Span::styled(" ❯ ", BOLD), mark);
    frame.render_widget(&tab.prompt.area, text);
    if tab.request().is_none() {
        let cursor = tab.prompt.area.screen_cursor();
        let (top, left) = tab.prompt.area.scroll_offset();
        let row = (cursor.row as u16).saturating_sub(top).min(text.height.saturating_sub(1));
        let column = (cursor.col as u16).saturating_sub(left).min(text.width.saturating_sub(1));
        frame.set_cursor_position(Position { x: text.x + column, y: text.y + row });
    }
    if let Some(completion) = &tab.prompt.completion {
        let count = completion.choices.len().min(8) as u16;
        let height = count.min(area.y);
        let place =
            Rect { x: area.x + 2, y: area.y.saturating_sub(height), width: area.width.saturating_sub(4), height };
        let first = (completion.selected + 1).saturating_sub(usize::from(height.max(1)));
        let lines: Vec<Line<'_>> = completion
            .choices
            .iter()
            .enumerate()
            .skip(first)
            .take(usize::from(height))
            .map(|(number, (choice, what))| {
                let line =
                    Line::from(vec![Span::styled(format!(" {choice}  "), BOLD), Span::styled(what.clone(), DIM)]);
                if number == completion.selected { line.style(SELECTED) } else { line }
            })
            .collect();
        frame.render_widget(ratatui::widgets::Clear, place);
        frame.render_widget(Paragraph::new(lines), place);
    }
}

fn draw_request(frame: &mut Frame<'_>, area: Rect, tab: &ChatTab, lines: Vec<Line<'static>>) {
    let more = match tab.requests.len() {
        0 | 1 => String::new(),
        count => format!(" · {} more ", count - 1),
    };
    let block = Block::bordered().title(format!(" {} needs you{more} ", one_line(&tab.label))).border_style(BOLD);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    // The keys at the end matter most.
    let height = usize::from(inner.height);
    let cut = lines.len().saturating_sub(height);
    let keys = lines.len().saturating_sub(1);
    let shown: Vec<Line<'static>> = lines
        .into_iter()
        .enumerate()
        .filter(|(place, _)| *place == keys || *place + cut < keys)
        .map(|(_, line)| line)
        .collect();
    frame.render_widget(Paragraph::new(shown).wrap(Wrap { trim: false }), inner);
}

/// The agent's request, with the keys for the answers as the last line.
fn request_lines(asked: &PendingRequest, keymap: &Keymap, columns: u16) -> Vec<Line<'static>> {
    let room = usize::from(columns);
    let text = |text: &str| -> Vec<Line<'static>> {
        clean(text).lines().map(|line| Line::raw(clip(&format!(" {line}"), room))).collect()
    };
    let keys = |actions: &[Action]| {
        let mut spans = vec![Span::raw(" ")];
        for action in actions {
            let key = keymap.keys(*action).next().map(|key| key.to_string()).unwrap_or_default();
            spans.extend([Span::styled(key, BOLD), Span::raw(format!(" {}   ", crate::keymap::info(*action).what))]);
        }
        Line::from(spans)
    };
    let mut lines = Vec::new();
    match (&asked.request.ask, &asked.choosing) {
        (Ask::Tool { name, input, reason, can_edit, hears_reason, always }, choosing) => {
            let who = if asked.request.by_subagent { "A subagent wants to run" } else { "Wants to run" };
            lines.push(Line::styled(format!(" {who} {}", one_line(name)), BOLD));
            lines.extend(call_lines(input, room));
            lines.extend(reason.iter().flat_map(|reason| text(reason)));
            match choosing {
                Choosing::Rule { selected } => {
                    lines.extend(always.iter().enumerate().map(|(place, rule)| {
                        let line = Line::raw(clip(&format!("  {} {}", place + 1, one_line(&rule.label)), room));
                        if place == *selected { line.style(SELECTED) } else { line }
                    }));
                    lines.push(Line::raw(" enter always allow this   esc back"));
                }
                Choosing::Reason(reason) => {
                    lines.extend(text(&format!("Reason: {reason}▏")));
                    lines.push(Line::raw(" enter deny with this reason   esc back"));
                }
                Choosing::Input { text: input, error } => {
                    lines.extend(text(&format!("{input}▏")));
                    lines.extend(error.iter().map(|error| Line::styled(format!(" {}", one_line(error)), BOLD)));
                    lines.push(Line::raw(" enter run this instead   ctrl+j new line   esc back"));
                }
                _ => {
                    let mut actions = vec![Action::Allow];
                    actions.extend((!always.is_empty()).then_some(Action::Always));
                    actions.push(Action::Deny);
                    actions.extend(hears_reason.then_some(Action::DenyWithReason));
                    actions.extend(can_edit.then_some(Action::EditCall));
                    actions.push(Action::InterruptRequest);
                    lines.push(keys(&actions));
                }
            }
        }
        (Ask::Questions(_), Choosing::Questions { selected, chosen, own, .. }) => {
            if let Some(question) = asked.question() {
                lines.extend(question_lines(question, *selected, chosen, own.as_deref(), room));
            }
        }
        (Ask::Questions(_), _) => {}
        (Ask::Plan { text: plan, modes }, choosing) => {
            lines.push(Line::styled(" Wants to carry out this plan", BOLD));
            lines.extend(text(plan));
            if let Choosing::Reason(reason) = choosing {
                lines.extend(text(&format!("What to change: {reason}▏")));
                lines.push(Line::raw(" enter send   esc back"));
            } else {
                let mut spans = vec![Span::raw(" ")];
                let names: Vec<String> = modes.iter().map(|mode| format!(" approve, {mode} mode   ")).collect();
                for (key, name) in ["y", "a"].iter().zip(names) {
                    spans.extend([Span::styled((*key).to_owned(), BOLD), Span::raw(name)]);
                }
                spans.extend([Span::styled("n", BOLD), Span::raw(" keep planning   ")]);
                spans.extend([Span::styled("r", BOLD), Span::raw(" say what to change")]);
                lines.push(Line::from(spans));
            }
        }
        (Ask::Consent { from, message, url, details }, _) => {
            lines.push(Line::styled(format!(" {} asks for your consent", one_line(from)), BOLD));
            lines.extend(text(message));
            lines.extend(url.iter().flat_map(|url| text(url)));
            lines.extend(Some(details).filter(|it| !it.is_null()).into_iter().flat_map(|it| call_lines(it, room)));
            lines.push(keys(&[Action::Allow, Action::Deny, Action::InterruptRequest]));
        }
        (Ask::Elsewhere { what }, _) => {
            lines.push(Line::styled(" Waits for an answer in its pane", BOLD));
            lines.extend(text(what));
            lines.push(keys(&[Action::HandOver]));
        }
        (Ask::Unknown { name }, _) => {
            lines.push(Line::raw(format!(" The agent asks for `{}`, which tine doesn't know.", one_line(name))));
            lines.push(keys(&[Action::Deny, Action::InterruptRequest, Action::HandOver]));
        }
    }
    lines
}

/// The arguments of a call: the command, or all of them.
fn call_lines(input: &serde_json::Value, room: usize) -> Vec<Line<'static>> {
    let command = input["command"].as_str().map(str::to_owned);
    let texts = match (command, input.as_object()) {
        (Some(command), _) => vec![command],
        (None, Some(fields)) => fields
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(text) => format!("{name}: {text}"),
                None => format!("{name}: {}", to_json_line(value)),
            })
            .collect(),
        (None, None) => vec![to_json_line(input)],
    };
    let lines = texts.iter().flat_map(|text| clean(text).lines().map(str::to_owned).collect::<Vec<_>>());
    lines.map(|line| Line::raw(clip(&format!("   {line}"), room))).collect()
}

fn question_lines(
    question: &Question,
    selected: usize,
    chosen: &[usize],
    own: Option<&str>,
    room: usize,
) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> =
        clean(&question.text).lines().map(|line| Line::styled(clip(&format!(" {line}"), room), BOLD)).collect();
    for (place, choice) in question.choices.iter().enumerate() {
        let mark = match (question.several, chosen.contains(&place)) {
            (false, _) => "",
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
        };
        let text = format!("  {} {mark}{}", place + 1, one_line(&choice.label));
        let description = clip(&format!("  {}", one_line(&choice.description)), room.saturating_sub(width(&text)));
        let line = Line::from(vec![Span::raw(clip(&text, room)), Span::styled(description, DIM)]);
        lines.push(if place == selected { line.style(SELECTED) } else { line });
    }
    if question.free {
        let line = match own {
            Some(own) => Line::raw(clip(&format!("  … {}▏", one_line(own)), room)),
            None => Line::raw("  … something else"),
        };
        lines.push(if selected >= question.choices.len() { line.style(SELECTED) } else { line });
    }
    let keys =
        if question.several { " space mark   enter answer   ↑↓ choose" } else { " enter answer   ↑↓ choose" };
    lines.push(Line::raw(keys));
    lines
}
