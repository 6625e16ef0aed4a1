//! Bars one below the other, the longest first, each with its name and its value written out.

use super::frame::WIDTH;
use super::svg::{Anchor, Svg, width};
use super::{Axis, Chart, Key, Table};

/// From one bar to the next, in pixels: two lines of text, the bar, and room.
const PITCH: f64 = 56.0;
/// How high a bar is.
const BAR: f64 = 14.0;
/// Where the first line of the first bar stands.
const TOP: f64 = 14.0;

/// A ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankChart {
    name: String,
    value: Axis,
    bars: Vec<Rank>,
}

/// A place in a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Rank {
    /// What it is of.
    pub name: String,
    /// More about it, in a line of its own.
    pub detail: String,
    /// How much.
    pub value: f64,
}

impl RankChart {
    /// A ranking without entries; `name` states what the entries are. Bars grow from 0; all the room there is stands
    /// for the greatest value.
    pub fn new(name: impl Into<String>, value: Axis) -> RankChart {
        RankChart { name: name.into(), value, bars: Vec::new() }
    }

    /// Adds an entry in its place, unless its value is no number, or negative.
    #[must_use]
    pub fn with(mut self, bar: Rank) -> RankChart {
        if bar.value.is_finite() && bar.value >= 0.0 {
            let at = self.bars.partition_point(|other| other.value >= bar.value);
            self.bars.insert(at, bar);
        }
        self
    }
}

impl Chart for RankChart {
    fn svg(&self, title: &str, says: &str) -> String {
        let height = TOP + PITCH * self.bars.len().max(1) as f64;
        let mut svg = Svg::new(WIDTH, height, title, says);
        let shown = |bar: &Rank| self.value.unit.show(bar.value);
        let room =
            WIDTH - 20.0 - self.bars.iter().map(|bar| width(&shown(bar))).fold(0.0, f64::max);
        let most = self.bars.first().map_or(1.0, |bar| bar.value).max(f64::MIN_POSITIVE);
        for (place, bar) in self.bars.iter().enumerate() {
            let top = TOP + PITCH * place as f64;
            svg.text("label", (0.0, top), Anchor::Start, &fitting(&bar.name));
            svg.text("tick", (0.0, top + 15.0), Anchor::Start, &fitting(&bar.detail));
            let long = room * (bar.value / most);
            svg.open("s0");
            svg.rect("bar", (0.0, top + 21.0), long, BAR);
            svg.close();
            svg.text("tick", (long + 6.0, top + 21.0 + BAR - 2.5), Anchor::Start, &shown(bar));
        }
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        Vec::new()
    }

    fn table(&self) -> Table {
        let head = vec![self.name.clone(), self.value.label.clone(), "details".to_owned()];
        let row = |bar: &Rank| {
            vec![bar.name.clone(), self.value.unit.show(bar.value), bar.detail.clone()]
        };
        Table { head, rows: self.bars.iter().map(row).collect() }
    }
}

/// The text, or its end where it is too wide: of a path, the end states most.
fn fitting(text: &str) -> String {
    if width(text) <= WIDTH {
        return text.to_owned();
    }
    let mut rest = text;
    while width(rest) > WIDTH - width("…") {
        rest = rest.char_indices().nth(1).map_or("", |(next, _)| &rest[next..]);
    }
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    fn chart(values: &[(&str, f64)]) -> RankChart {
        let axis = Axis::linear("share of aborts", Unit::Share);
        values.iter().fold(RankChart::new("cause", axis), |chart, (name, value)| {
            chart.with(Rank { name: (*name).into(), detail: "src/x.rs:7".into(), value: *value })
        })
    }

    #[test]
    fn the_longest_bar_comes_first_and_equals_stay_in_their_order() {
        let chart = chart(&[("b", 0.2), ("a", 0.7), ("none", f64::NAN), ("c", 0.2)]);
        let names: Vec<_> = chart.table().rows.into_iter().map(|row| row[0].clone()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_stay_within_the_chart() {
        let svg = chart(&[("a", 0.8), ("b", 0.2)]).svg("t", "s");
        let document = roxmltree::Document::parse(&svg).unwrap();
        let long = |node: roxmltree::Node<'_, '_>| node.attribute("width")?.parse::<f64>().ok();
        let bars: Vec<f64> =
            document.descendants().filter(|n| n.has_tag_name("rect")).filter_map(long).collect();
        assert!((bars[0] / bars[1] - 4.0).abs() < 0.01, "{bars:?}");
        assert!(bars[0] + width("80\u{a0}%") < WIDTH);
    }

    #[test]
    fn what_is_too_wide_keeps_its_end() {
        let long = format!("{}/antiddos.rs:88", "crates/".repeat(20));
        let shown = fitting(&long);
        assert!(shown.starts_with('…') && shown.ends_with("/antiddos.rs:88"), "{shown}");
        assert!(width(&shown) <= WIDTH);
    }

    #[test]
    fn an_empty_ranking_and_zeros_are_drawn() {
        for values in [&[][..], &[("a", 0.0)], &[("a", 0.0), ("b", 1e300)]] {
            let svg = chart(values).svg("t", "s");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            roxmltree::Document::parse(&svg).unwrap();
        }
    }
}
