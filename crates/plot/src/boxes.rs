//! Boxes of percentiles, in groups.

use super::frame::{HEIGHT, PlotFrame, WIDTH};
use super::series::{class, mark, origin_keys};
use super::svg::{Anchor, Svg};
use super::{Axis, Chart, Key, Table, Unit};

/// Boxes side by side, a group for each place along x.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxChart {
    x: String,
    y: Axis,
    none: Axis,
    /// The groups' names.
    groups: Vec<String>,
    boxes: Vec<Percentiles>,
}

/// A box: from the 25th to the 75th percentile, whiskers to the 5th and 95th, and a mark at the 99th.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// Which group it belongs to.
    pub group: usize,
    /// What it is of.
    pub name: String,
    /// Its colour.
    pub series: usize,
    /// Hatched if so.
    pub simulated: bool,
    /// The 5th, 25th, 50th, 75th, 95th and 99th percentile.
    pub at: [f64; 6],
}

impl BoxChart {
    /// A chart without boxes; `x` states what the groups are.
    pub fn new(x: impl Into<String>, groups: Vec<String>, y: Axis) -> BoxChart {
        let none = Axis::linear("", Unit::Plain);
        BoxChart { x: x.into(), y, none, groups, boxes: Vec::new() }
    }

    /// Adds a box, unless one of its percentiles is no number.
    #[must_use]
    pub fn with(mut self, percentiles: Percentiles) -> BoxChart {
        if percentiles.at.iter().all(|value| value.is_finite())
            && percentiles.group < self.groups.len()
        {
            self.boxes.push(percentiles);
        }
        self
    }

    /// The boxes' names with one of each, in the order in which they came.
    fn named(&self) -> Vec<&Percentiles> {
        let mut named: Vec<&Percentiles> = Vec::new();
        for one in &self.boxes {
            if !named.iter().any(|other| other.name == one.name) {
                named.push(one);
            }
        }
        named
    }
}

impl Chart for BoxChart {
    fn svg(&self, title: &str, says: &str) -> String {
        let values = self.boxes.iter().flat_map(|one| one.at);
        let frame = PlotFrame::upright(&self.y, &self.none, values);
        let mut svg = Svg::new(WIDTH, HEIGHT, title, says);
        frame.draw_y(&mut svg);
        frame.base(&mut svg, &self.x);
        let named = self.named();
        let wide = (frame.right() - frame.left()) / self.groups.len().max(1) as f64;
        let slot = (0.86 * wide / named.len().max(1) as f64).min(40.0);
        for (at, name) in self.groups.iter().enumerate() {
            let middle = frame.left() + (at as f64 + 0.5) * wide;
            svg.text("tick", (middle, frame.bottom() + 18.0), Anchor::Middle, name);
        }
        for one in &self.boxes {
            let place = named.iter().position(|other| other.name == one.name).unwrap_or(0);
            let middle = frame.left() + (one.group as f64 + 0.5) * wide;
            let x = middle + (place as f64 - (named.len() as f64 - 1.0) / 2.0) * slot;
            draw_box(&mut svg, one, x, 0.76 * slot, |value| frame.y.place(value));
        }
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let named = self.named();
        let mut keys: Vec<Key> = named
            .iter()
            .map(|one| {
                let mut sample = Svg::sample();
                sample.open(class(one.series, one.simulated));
                sample.rect("box", (3.0, 1.0), 22.0, 10.0);
                sample.close();
                Key { sample: sample.finish(), text: one.name.clone() }
            })
            .collect();
        let mut sample = Svg::sample();
        sample.open("ink");
        sample.line("whisker", (2.0, 6.0), (26.0, 6.0));
        sample.rect("box", (8.0, 2.0), 10.0, 8.0);
        sample.line("median", (12.0, 2.0), (12.0, 10.0));
        sample.close();
        let text = "5, 25, 50, 75, 95 %; the mark: 99 %".to_owned();
        keys.push(Key { sample: sample.finish(), text });
        let is = |wanted: bool| self.boxes.iter().any(|one| one.simulated == wanted);
        keys.extend(origin_keys(is(true), is(false), |sample| {
            sample.rect("box", (3.0, 1.0), 22.0, 10.0);
        }));
        keys
    }

    fn table(&self) -> Table {
        let head = [self.x.as_str(), "of", "5 %", "25 %", "50 %", "75 %", "95 %", "99 %"];
        let rows = self.boxes.iter().map(|one| {
            let values = one.at.iter().map(|value| self.y.unit.show(*value));
            [self.groups[one.group].clone(), one.name.clone()].into_iter().chain(values).collect()
        });
        Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
    }
}

fn draw_box(svg: &mut Svg, one: &Percentiles, x: f64, wide: f64, place: impl Fn(f64) -> f64) {
    let [p5, p25, p50, p75, p95, p99] = one.at.map(place);
    let (left, right) = (x - wide / 2.0, x + wide / 2.0);
    svg.open(class(one.series, one.simulated));
    svg.line("whisker", (x, p95), (x, p75));
    svg.line("whisker", (x, p25), (x, p5));
    for y in [p5, p95] {
        svg.line("whisker", (x - wide / 4.0, y), (x + wide / 4.0, y));
    }
    // So thin a box would not be seen.
    svg.rect("box", (left, p75), wide, (p25 - p75).max(1.5));
    svg.line("median", (left, p50), (right, p50));
    svg.path("mark", &mark(one.series, (x, p99)));
    svg.close();
}
