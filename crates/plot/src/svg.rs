//! SVG, element by element.

use std::fmt::{Display, Write};

/// An `<svg>` element in the making. Colours come from classes.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// Where a text begins, has its middle, or ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An image of so many pixels, which scales with the page.
    pub(super) fn new(width: f64, height: f64, title: &str, says: &str) -> Svg {
        let text = format!(
            "<svg role=\"img\" class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title>{}</title><desc>{}</desc>\n",
            escape(title),
            escape(says)
        );
        Svg { text }
    }

    /// A sample for a legend.
    pub(super) fn sample() -> Svg {
        let text = "<svg class=\"sample\" viewBox=\"0 0 28 12\" aria-hidden=\"true\" xmlns=\"http://www.w3.org/2000/svg\">";
        Svg { text: text.to_owned() }
    }

    pub(super) fn open(&mut self, class: impl Display) {
        self.add(format_args!("<g class=\"{class}\">"));
    }

    pub(super) fn close(&mut self) {
        self.add(format_args!("</g>\n"));
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    pub(super) fn path(&mut self, class: &str, path: &Path) {
        if !path.0.is_empty() {
            self.add(format_args!("<path class=\"{class}\" d=\"{}\"/>", path.0));
        }
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), width: f64, height: f64) {
        let (x, y) = at;
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            width.max(0.0),
            height.max(0.0)
        ));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = at;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.text.write_fmt(element).expect("a string takes everything");
    }
}

/// The `d` of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn to(&mut self, (x, y): (f64, f64)) {
        let letter = if self.0.is_empty() { 'M' } else { 'L' };
        write!(self.0, "{letter}{x:.1} {y:.1}").expect("a string takes everything");
    }

    /// A rectangle for itself.
    pub(super) fn cell(&mut self, (x, y): (f64, f64), width: f64, height: f64) {
        write!(self.0, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z")
            .expect("a string takes everything");
    }

    pub(super) fn close(&mut self) {
        if !self.0.is_empty() {
            self.0.push('Z');
        }
    }
}

/// The text as it may stand in elements and attributes of HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // No XML has these, not even escaped.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// About how many pixels a text takes in the size of tick labels.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(|letter| if " .,:·ijl|\u{a0}".contains(letter) { 4.6 } else { 8.2 }).sum()
}
