//! A page that is one file: no request goes out, nothing is run, and it can be printed.

use std::fmt::{Arguments, Write};

use super::{Chart, SERIES, Table, escape};

/// A page in the making.
#[derive(Clone, Debug)]
pub struct Page {
    text: String,
    /// Whether figures are being laid out side by side.
    in_figures: bool,
    in_section: bool,
}

impl Page {
    /// A page with this title.
    pub fn new(title: &str) -> Page {
        let title = escape(title);
        let style = include_str!("page.css");
        let text = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
             <meta name=\"color-scheme\" content=\"light dark\"/>\
             <title>{title}</title><style>\n{style}</style></head>\n<body>\n{}\n<h1>{title}</h1>\n",
            hatches()
        );
        Page { text, in_figures: false, in_section: false }
    }

    /// A list of links: pairs of an identifier of a [`section`](Page::section) and its name.
    pub fn contents(&mut self, links: &[(String, String)]) {
        self.add(format_args!("<nav aria-label=\"Contents\"><ul>"));
        for (id, name) in links {
            self.add(format_args!("<li><a href=\"#{}\">{}</a></li>", escape(id), escape(name)));
        }
        self.add(format_args!("</ul></nav>\n"));
    }

    /// Begins a section. What stands beside its title is `badge`; it is a dashed one for what is simulated.
    pub fn section(&mut self, id: &str, title: &str, badge: &str, is_simulated: bool) {
        self.end_section();
        let class = if is_simulated { "badge simulated" } else { "badge" };
        let (id, title, badge) = (escape(id), escape(title), escape(badge));
        self.add(format_args!(
            "<section id=\"{id}\"><h2>{title} <span class=\"{class}\">{badge}</span></h2>\n"
        ));
        self.in_section = true;
    }

    /// A paragraph; `class` is one of the style sheet's, or empty.
    pub fn text(&mut self, class: &str, text: &str) {
        self.end_figures();
        match class {
            "" => self.add(format_args!("<p>{}</p>\n", escape(text))),
            class => self.add(format_args!("<p class=\"{class}\">{}</p>\n", escape(text))),
        }
    }

    /// Names and what stands for them.
    pub fn facts<'a>(&mut self, facts: impl IntoIterator<Item = (&'a str, String)>) {
        self.end_figures();
        self.add(format_args!("<dl>"));
        for (name, value) in facts {
            self.add(format_args!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(&value)));
        }
        self.add(format_args!("</dl>\n"));
    }

    /// Lines of a program or a command line.
    pub fn code(&mut self, text: &str) {
        self.end_figures();
        self.add(format_args!("<pre><code>{}</code></pre>\n", escape(text)));
    }

    /// A figure: its title, what it shows in a sentence, the chart, and its numbers, folded away.
    pub fn figure(&mut self, title: &str, says: &str, chart: &dyn Chart) {
        if !self.in_figures {
            self.add(format_args!("<div class=\"figures\">\n"));
            self.in_figures = true;
        }
        let svg = chart.svg(title, says);
        let (title, says) = (escape(title), escape(says));
        self.add(format_args!("<figure><figcaption><h3>{title}</h3><p>{says}</p></figcaption>\n"));
        let keys = chart.keys();
        if !keys.is_empty() {
            self.add(format_args!("<ul class=\"keys\">"));
            for key in keys {
                let text = escape(&key.text);
                self.add(format_args!("<li>{}<span>{text}</span></li>", key.sample));
            }
            self.add(format_args!("</ul>\n"));
        }
        self.add(format_args!("{svg}\n"));
        let table = chart.table().html();
        self.add(format_args!("<details><summary>Numbers</summary>{table}</details></figure>\n"));
    }

    /// A table that can be folded away.
    pub fn table(&mut self, summary: &str, is_open: bool, table: &Table) {
        self.folded(summary, is_open, &table.html());
    }

    /// A text that is folded away.
    pub fn source(&mut self, summary: &str, text: &str) {
        self.folded(summary, false, &format!("<pre><code>{}</code></pre>", escape(text)));
    }

    fn folded(&mut self, summary: &str, is_open: bool, html: &str) {
        self.end_figures();
        let open = if is_open { " open=\"open\"" } else { "" };
        let summary = escape(summary);
        self.add(format_args!("<details{open}><summary>{summary}</summary>{html}</details>\n"));
    }

    /// The page as HTML, which is also well-formed XML but for its first line.
    pub fn finish(mut self) -> String {
        self.end_section();
        self.text.push_str("</body></html>\n");
        self.text
    }

    fn end_figures(&mut self) {
        if std::mem::take(&mut self.in_figures) {
            self.text.push_str("</div>\n");
        }
    }

    fn end_section(&mut self) {
        self.end_figures();
        if std::mem::take(&mut self.in_section) {
            self.text.push_str("</section>\n");
        }
    }

    fn add(&mut self, text: Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes everything");
    }
}

/// The hatchings of simulated bars and boxes, one for each colour.
fn hatches() -> String {
    let hatch = |series: usize| {
        format!(
            "<pattern id=\"hatch{series}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><line class=\"s{series}\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\" \
             style=\"stroke: var(--c); stroke-width: 3\"/></pattern>"
        )
    };
    let all: String = (0..SERIES).map(hatch).collect();
    format!(
        "<svg class=\"hatches\" aria-hidden=\"true\" xmlns=\"http://www.w3.org/2000/svg\"><defs>{all}</defs></svg>"
    )
}
