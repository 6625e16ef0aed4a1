//! A line of a chart.

use super::svg::{Path, Svg};
use super::{Axis, Key, Table};

/// How many series have a colour and a mark of their own.
pub const SERIES: usize = 10;

/// Values along an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What they are of.
    pub name: String,
    pub(super) points: Vec<Point>,
    pub(super) series: usize,
    pub(super) simulated: bool,
    pub(super) shape: Shape,
}

/// A value, and between what it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// The least and the most that it may be, if that is known.
    pub span: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// From point to point.
    Straight,
    /// Each value holds until the next.
    Step,
    /// As a step, and filled down to the axis.
    Area,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y, span: None }
    }
}

impl Line {
    /// A line through these points, which lie in the order of `x`.
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Line {
        let points = points.into_iter().map(Into::into).collect();
        let (series, simulated, shape) = (0, false, Shape::Straight);
        Line { name: name.into(), points, series, simulated, shape }
    }

    /// The colour and the mark, from 0; there are [`SERIES`] of them. Charts number lines that say nothing.
    #[must_use]
    pub fn series(mut self, series: usize) -> Line {
        self.series = series % SERIES;
        self
    }

    /// Grey: not one of those compared, but what they are compared with.
    #[must_use]
    pub fn plain(mut self) -> Line {
        self.series = PLAIN;
        self
    }

    /// Simulated lines are dashed, and the legend reports it.
    #[must_use]
    pub fn simulated(mut self, simulated: bool) -> Line {
        self.simulated = simulated;
        self
    }

    /// Each value holds until the next.
    #[must_use]
    pub fn step(mut self) -> Line {
        self.shape = Shape::Step;
        self
    }

    /// As a step, and filled down to the axis.
    #[must_use]
    pub fn area(mut self) -> Line {
        self.shape = Shape::Area;
        self
    }

    /// The classes of its group.
    pub(super) fn class(&self) -> String {
        class(self.series, self.simulated)
    }

    /// Whether its points have marks, and whiskers where they have spans.
    pub(super) fn is_marked(&self) -> bool {
        self.shape == Shape::Straight && self.points.len() <= MARKED && !self.is_plain()
    }

    /// Whether it is there for others to be compared with.
    pub(super) fn is_plain(&self) -> bool {
        self.series == PLAIN
    }

    pub(super) fn key(&self) -> Key {
        let mut sample = Svg::sample();
        sample.open(self.class());
        if self.shape == Shape::Area {
            sample.rect("fill", (1.0, 1.0), 26.0, 10.0);
        } else {
            sample.line("line", (0.0, 6.0), (28.0, 6.0));
            if self.is_marked() {
                sample.path("mark", &mark(self.series, (14.0, 6.0)));
            }
        }
        sample.close();
        Key { sample: sample.finish(), text: self.name.clone() }
    }
}

/// Lines of more points than that have no marks, and bands instead of whiskers.
pub(super) const MARKED: usize = 16;

/// The series of what is no series.
const PLAIN: usize = usize::MAX;

/// The classes of what belongs to a series.
pub(super) fn class(series: usize, simulated: bool) -> String {
    let origin = if simulated { " simulated" } else { "" };
    if series == PLAIN { format!("plain{origin}") } else { format!("s{series}{origin}") }
}

/// The mark of a series, so that colours are not all that distinguishes them.
pub(super) fn mark(series: usize, (x, y): (f64, f64)) -> Path {
    let corners: &[(f64, f64)] = match series % 4 {
        // An octagon, round enough at this size.
        0 => &[
            (-1.5, -3.6),
            (1.5, -3.6),
            (3.6, -1.5),
            (3.6, 1.5),
            (1.5, 3.6),
            (-1.5, 3.6),
            (-3.6, 1.5),
            (-3.6, -1.5),
        ],
        1 => &[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)],
        2 => &[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)],
        _ => &[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)],
    };
    let mut path = Path::default();
    corners.iter().for_each(|(dx, dy)| path.to((x + dx, y + dy)));
    path.close();
    path
}

/// What the strokes of simulated and of real lines look like, where there are any.
///
/// `draw` draws a sample of a chart's marks.
pub(super) fn origin_keys(
    any_simulated: bool,
    any_real: bool,
    draw: impl Fn(&mut Svg),
) -> Vec<Key> {
    let key = |simulated: bool, text: &str| {
        let mut sample = Svg::sample();
        sample.open(if simulated { "ink simulated" } else { "ink" });
        draw(&mut sample);
        sample.close();
        Key { sample: sample.finish(), text: text.to_owned() }
    };
    let mut keys = Vec::new();
    if any_simulated {
        keys.push(key(true, "simulated"));
    }
    if any_simulated && any_real {
        keys.push(key(false, "measured"));
    }
    keys
}

/// A table of lines: a row per place, a column per line.
pub(super) fn table(lines: &[Line], x: &Axis, y: &Axis) -> Table {
    let mut places: Vec<f64> = lines.iter().flat_map(|l| l.points.iter().map(|p| p.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let cell = |line: &Line, place: f64| {
        let point = line.points.iter().find(|point| point.x == place);
        point.map_or_else(|| "–".to_owned(), |point| y.unit.show_in(point.y, point.span))
    };
    let names = lines.iter().map(|line| line.name.clone());
    Table {
        head: std::iter::once(x.label.clone()).chain(names).collect(),
        rows: thinned(&places)
            .map(|place| {
                let cells = lines.iter().map(|line| cell(line, place));
                std::iter::once(x.unit.show(place)).chain(cells).collect()
            })
            .collect(),
    }
}

/// At most a hundred places, evenly picked, with the first and the last.
fn thinned(places: &[f64]) -> impl Iterator<Item = f64> {
    const MOST: usize = 100;
    let every = places.len().div_ceil(MOST).max(1);
    let last = places.len().saturating_sub(1);
    places.iter().enumerate().filter(move |(at, _)| at % every == 0 || *at == last).map(|(_, x)| *x)
}
