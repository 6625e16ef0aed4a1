//! Bars, in groups.

use super::frame::{HEIGHT, PlotFrame, WIDTH};
use super::series::{class, origin_keys};
use super::svg::{Anchor, Svg, width};
use super::{Axis, Chart, Key, Table, Unit};

/// Bars side by side: one group after the other, or the bins of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    x: String,
    y: Axis,
    none: Axis,
    groups: Vec<String>,
    bars: Vec<Bar>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Which group it belongs to.
    pub group: usize,
    /// What it is of.
    pub name: String,
    /// Its colour.
    pub series: usize,
    /// Hatched if so.
    pub simulated: bool,
    /// How high.
    pub value: f64,
    /// Between what the value lies, if that is known.
    pub span: Option<(f64, f64)>,
}

impl BarChart {
    /// A chart without bars; `x` states what the groups are. Bars grow from 0, so `y` has to be linear.
    pub fn new(x: impl Into<String>, groups: Vec<String>, y: Axis) -> BarChart {
        let none = Axis::linear("", Unit::Plain);
        BarChart { x: x.into(), y: y.from(0.0), none, groups, bars: Vec::new() }
    }

    /// A histogram: pairs of a bin's name and what is in it.
    pub fn histogram(
        x: impl Into<String>,
        y: Axis,
        bins: impl IntoIterator<Item = (String, f64)>,
    ) -> BarChart {
        let (groups, values): (Vec<String>, Vec<f64>) = bins.into_iter().unzip();
        let name = y.label.clone();
        let bar = |(group, value)| Bar {
            group,
            name: name.clone(),
            series: 0,
            simulated: false,
            value,
            span: None,
        };
        let bars: Vec<Bar> = values.into_iter().enumerate().map(bar).collect();
        bars.into_iter().fold(BarChart::new(x, groups, y), BarChart::with)
    }

    /// Adds a bar, unless it is no number.
    #[must_use]
    pub fn with(mut self, bar: Bar) -> BarChart {
        if bar.value.is_finite() && bar.group < self.groups.len() {
            self.bars.push(bar);
        }
        self
    }

    fn names(&self) -> Vec<&Bar> {
        let mut names: Vec<&Bar> = Vec::new();
        for bar in &self.bars {
            if !names.iter().any(|other| other.name == bar.name) {
                names.push(bar);
            }
        }
        names
    }

    /// Whether each group has one bar, named as the group: then the group's name states enough.
    fn is_labelled_below(&self) -> bool {
        self.bars.iter().all(|bar| self.groups[bar.group] == bar.name)
    }
}

impl Chart for BarChart {
    fn svg(&self, title: &str, says: &str) -> String {
        let spans = self.bars.iter().filter_map(|bar| bar.span).flat_map(|(low, high)| [low, high]);
        let values = self.bars.iter().map(|bar| bar.value).chain(spans);
        let frame = PlotFrame::upright(&self.y, &self.none, values);
        let mut svg = Svg::new(WIDTH, HEIGHT, title, says);
        frame.draw_y(&mut svg);
        let names = self.names();
        let side_by_side = if self.is_labelled_below() { 1 } else { names.len().max(1) };
        let wide = (frame.right() - frame.left()) / self.groups.len().max(1) as f64;
        let slot = (0.9 * wide / side_by_side as f64).min(60.0);
        for bar in &self.bars {
            let place = if self.is_labelled_below() {
                0
            } else {
                names.iter().position(|other| other.name == bar.name).unwrap_or(0)
            };
            let middle = frame.left() + (bar.group as f64 + 0.5) * wide;
            let x = middle + (place as f64 - (side_by_side as f64 - 1.0) / 2.0) * slot;
            let (half, top) = (0.43 * slot, frame.y.place(bar.value));
            svg.open(class(bar.series, bar.simulated));
            svg.rect("bar", (x - half, top), 2.0 * half, frame.y.place(0.0) - top);
            if let Some((low, high)) = bar.span {
                let (low, high) = (frame.y.place(low), frame.y.place(high));
                svg.line("bar-whisker", (x, high), (x, low));
                svg.line("bar-whisker", (x - 4.0, high), (x + 4.0, high));
                svg.line("bar-whisker", (x - 4.0, low), (x + 4.0, low));
            }
            svg.close();
        }
        frame.base(&mut svg, &self.x);
        let mut free = f64::NEG_INFINITY;
        for (at, name) in self.groups.iter().enumerate() {
            let middle = frame.left() + (at as f64 + 0.5) * wide;
            let half = width(name) / 2.0;
            if middle - half >= free {
                svg.text("tick", (middle, frame.bottom() + 18.0), Anchor::Middle, name);
                free = middle + half + 5.0;
            }
        }
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let names = self.names();
        let mut keys = Vec::new();
        if names.len() > 1 && !self.is_labelled_below() {
            keys.extend(names.iter().map(|bar| {
                let mut sample = Svg::sample();
                sample.open(class(bar.series, bar.simulated));
                sample.rect("bar", (3.0, 1.0), 22.0, 10.0);
                sample.close();
                Key { sample: sample.finish(), text: bar.name.clone() }
            }));
        }
        let is = |wanted: bool| self.bars.iter().any(|bar| bar.simulated == wanted);
        keys.extend(origin_keys(is(true), is(false), |sample| {
            sample.rect("bar", (3.0, 1.0), 22.0, 10.0);
        }));
        keys
    }

    fn table(&self) -> Table {
        let names = self.names();
        let head = std::iter::once(self.x.clone()).chain(names.iter().map(|bar| bar.name.clone()));
        let cell = |group: usize, name: &str| {
            let bar = self.bars.iter().find(|bar| bar.group == group && bar.name == name);
            bar.map_or_else(|| "–".to_owned(), |bar| self.y.unit.show_in(bar.value, bar.span))
        };
        if self.is_labelled_below() {
            let rows = self.groups.iter().enumerate();
            let rows = rows.map(|(group, name)| vec![name.clone(), cell(group, name)]).collect();
            return Table { head: vec![self.x.clone(), self.y.label.clone()], rows };
        }
        let rows = self.groups.iter().enumerate().map(|(group, name)| {
            let cells = names.iter().map(|bar| cell(group, &bar.name));
            std::iter::once(name.clone()).chain(cells).collect()
        });
        Table { head: head.collect(), rows: rows.collect() }
    }
}
