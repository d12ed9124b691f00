//! Markdown as HTML that loads nothing and runs nothing.
//!
//! Invariant: the only tags are those of Markdown itself and our own. Raw HTML is shown as the text that it is,
//! pictures are links, and a link leads to the web or to an address, or it is no link.

use pulldown_cmark::{CowStr, Event, Tag, TagEnd, html};

use super::page::escaped;
use crate::render::prose::{events, safe_target};
use crate::render::segments::Segment;
use crate::text::one_line;

/// The HTML of a segment of clean Markdown.
pub(super) fn rendered(segment: &Segment<'_>) -> String {
    let mut safe = Safe::default();
    for event in events(&segment.text) {
        safe.take(event);
    }
    let mut out = String::new();
    html::push_html(&mut out, safe.events.into_iter());
    out
}

#[derive(Default)]
struct Safe<'a> {
    events: Vec<Event<'a>>,
    /// What ends each link or picture that is open.
    ends: Vec<&'static str>,
    in_code: bool,
}

impl<'a> Safe<'a> {
    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => self.open_link(&dest_url),
            Event::Start(Tag::Image { dest_url, .. }) => {
                self.open_link(&dest_url);
                self.ours("image: ");
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let end = self.ends.pop().unwrap_or_default();
                self.ours(end);
            }
            Event::Start(Tag::HtmlBlock) => self.ours("<p class=\"raw\">"),
            Event::End(TagEnd::HtmlBlock) => self.ours("</p>\n"),
            Event::Start(Tag::Table(alignments)) => {
                self.ours("<div class=\"table\">");
                self.events.push(Event::Start(Tag::Table(alignments)));
            }
            Event::End(TagEnd::Table) => {
                self.events.push(Event::End(TagEnd::Table));
                self.ours("</div>\n");
            }
            Event::Text(text) if !self.in_code && self.ends.is_empty() => self.text(&text),
            event => {
                match event {
                    Event::Start(Tag::CodeBlock(_)) => self.in_code = true,
                    Event::End(TagEnd::CodeBlock) => self.in_code = false,
                    _ => {}
                }
                self.events.push(event);
            }
        }
    }

    fn ours(&mut self, html: impl Into<CowStr<'a>>) {
        self.events.push(Event::InlineHtml(html.into()));
    }

    fn open_link(&mut self, target: &str) {
        // Links do not nest: a picture within a link is text.
        let inside_link = self.ends.contains(&"</a>");
        match safe_target(target) {
            Some(target) if !inside_link => {
                self.ours(format!("<a href=\"{}\" rel=\"noopener noreferrer\">", escaped(&target)));
                self.ends.push("</a>");
            }
            _ => {
                self.ours(format!("<span class=\"target\" title=\"{}\">", escaped(&one_line(target))));
                self.ends.push("</span>");
            }
        }
    }

    /// Text in which web addresses become links, as they are in every agent's own window.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(start) = start_of_address(rest) {
            let (before, address) = rest.split_at(start);
            let end = address.find(|c: char| c.is_whitespace() || "<>\"'`|\\^{}".contains(c)).unwrap_or(address.len());
            let address = address[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*']);
            self.events.push(Event::Text(before.to_owned().into()));
            self.open_link(address);
            self.events.push(Event::Text(address.to_owned().into()));
            let close = self.ends.pop().unwrap_or_default();
            self.ours(close);
            rest = &rest[start + address.len()..];
        }
        self.events.push(Event::Text(rest.to_owned().into()));
    }
}

fn start_of_address(text: &str) -> Option<usize> {
    let mut starts = text.match_indices("http").map(|(start, _)| start);
    starts.find(|start| ["http://", "https://"].iter().any(|scheme| text[*start..].starts_with(scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::segments::segments;
    use crate::render::segments::tests::check_segments;

    fn html_of(markdown: &str) -> String {
        segments(markdown).map(|segment| rendered(&segment)).collect()
    }

    #[test]
    fn long_answers_look_the_same_in_segments() {
        check_segments(|segments| segments.map(|segment| rendered(&segment)).collect::<String>());
    }

    #[test]
    fn markdown_cannot_bring_markup_of_its_own() {
        let check = |markdown: &str, expected: &str| assert_eq!(html_of(markdown).trim_end(), expected, "{markdown:?}");
        check("a <b>x</b>", "<p>a &lt;b&gt;x&lt;/b&gt;</p>");
        check("<script>\nalert(1)\n</script>", "<p class=\"raw\">&lt;script&gt;\nalert(1)\n&lt;/script&gt;</p>");
        check("[x](javascript:alert(1))", "<p><span class=\"target\" title=\"javascript:alert(1)\">x</span></p>");
        check(
            "[x](<https://a/\"onclick=1>)",
            "<p><a href=\"https://a/&quot;onclick=1\" rel=\"noopener noreferrer\">x</a></p>",
        );
        check(
            "![alt](https://a/b.png \"t\")",
            "<p><a href=\"https://a/b.png\" rel=\"noopener noreferrer\">image: alt</a></p>",
        );
        check("![alt](x.png)", "<p><span class=\"target\" title=\"x.png\">image: alt</span></p>");
        check(
            "[![alt](https://a/b.png)](https://c)",
            "<p><a href=\"https://c\" rel=\"noopener noreferrer\">\
             <span class=\"target\" title=\"https://a/b.png\">image: alt</span></a></p>",
        );
        check(
            "```\"><img src=x onerror=y>\n</code>\n```",
            "<pre><code class=\"language-&quot;&gt;&lt;img\">&lt;/code&gt;\n</code></pre>",
        );
        check("`</code><img>`", "<p><code>&lt;/code&gt;&lt;img&gt;</code></p>");
    }

    #[test]
    fn addresses_in_text_are_links() {
        let link = |address: &str| format!("<a href=\"{address}\" rel=\"noopener noreferrer\">{address}</a>");
        let check = |markdown: &str, expected: &str| assert_eq!(html_of(markdown).trim_end(), expected, "{markdown:?}");
        check("see https://a.b/c?d=1, then", &format!("<p>see {}, then</p>", link("https://a.b/c?d=1")));
        check("(http://a) https://", &format!("<p>({}) {}</p>", link("http://a"), link("https://")));
        check("`https://a`", "<p><code>https://a</code></p>");
    }
}
