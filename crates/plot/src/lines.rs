//! Lines over a number: a load, a number of lanes, time, a share.

use super::frame::PlotFrame;
use super::scale::Scale;
use super::series::{MARKED, Shape, class, mark, origin_keys, table};
use super::svg::{Anchor, Path, Svg, width};
use super::{Axis, Chart, Key, Line, Point, Table};

/// Lines with what they may be off by, and the floor below which they say nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    x: Axis,
    y: Axis,
    lines: Vec<Line>,
    floor: Option<Floor>,
    spans: String,
}

/// What the machine does by itself. Values below twice that are shaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    /// What it is, for the legend.
    pub text: String,
    /// The same everywhere, or pairs of a place and a value.
    pub points: Vec<(f64, f64)>,
}

/// Lines up to that number have their names written at their ends.
const NAMED: usize = 6;
/// How far names at the ends of lines stay apart.
const LEADING: f64 = 14.0;

impl LineChart {
    /// A chart without lines.
    pub fn new(x: Axis, y: Axis) -> LineChart {
        let spans = "between these it lies".to_owned();
        LineChart { x, y, lines: Vec::new(), floor: None, spans }
    }

    /// Adds a line. Points that are no numbers are left out.
    #[must_use]
    pub fn with(mut self, mut line: Line) -> LineChart {
        line.points.retain(|point| point.x.is_finite() && point.y.is_finite());
        for point in &mut line.points {
            point.span = point.span.filter(|(low, high)| low.is_finite() && high.is_finite());
        }
        // Lines that did not ask for a colour are distinguished all the same.
        if line.series == 0 && self.lines.iter().any(|other| other.series == 0) {
            line.series = self.lines.len() % super::SERIES;
        }
        self.lines.push(line);
        self
    }

    /// Draws the machine's own share.
    #[must_use]
    pub fn floor(mut self, floor: Option<Floor>) -> LineChart {
        self.floor = floor.filter(|floor| floor.points.iter().any(|(_, y)| *y > 0.0));
        self
    }

    /// What the spans of points are, for the legend.
    #[must_use]
    pub fn spans(mut self, text: impl Into<String>) -> LineChart {
        self.spans = text.into();
        self
    }

    fn frame(&self) -> PlotFrame<'_> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let spans = points().filter_map(|p| p.span).flat_map(|(low, high)| [low, high]);
        let floor = self.floor.iter().flat_map(|floor| &floor.points);
        let ys = points().map(|p| p.y).chain(spans);
        let ys = ys.chain(floor.filter(|(_, y)| *y > 0.0).flat_map(|(_, y)| [*y, 2.0 * y]));
        // An area stands on the ground.
        let ground = self.lines.iter().any(|line| line.shape == Shape::Area);
        let ys = ys.chain(ground.then_some(0.0));
        let names = self.lines.iter().map(|line| width(&line.name) + 14.0).fold(0.0, f64::max);
        let margin = if self.names_at_ends() { names } else { 0.0 };
        let are_few = self.lines.iter().all(|line| line.points.len() <= MARKED);
        PlotFrame::over((&self.x, &self.y), points().map(|p| p.x), ys, margin, are_few)
    }

    /// Names stand beside the lines where there are few, and short ones.
    fn names_at_ends(&self) -> bool {
        (2..=NAMED).contains(&self.lines.len())
            && self.lines.iter().all(|line| line.shape != Shape::Area && width(&line.name) < 110.0)
    }
}

impl Chart for LineChart {
    fn svg(&self, title: &str, says: &str) -> String {
        let frame = self.frame();
        let mut svg = Svg::new(super::frame::WIDTH, super::frame::HEIGHT, title, says);
        if let Some(floor) = &self.floor {
            draw_floor(&mut svg, &frame, floor);
        }
        frame.draw_y(&mut svg);
        frame.draw_x(&mut svg);
        // Below the marks, at which leaders end.
        if self.names_at_ends() {
            draw_names(&mut svg, &frame, &self.lines);
        }
        for (at, line) in self.lines.iter().enumerate() {
            // Whiskers at the same place would hide each other.
            let aside = 3.0 * (at as f64 - (self.lines.len() as f64 - 1.0) / 2.0);
            draw_line(&mut svg, &frame, line, aside);
        }
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        // A single line is what the axis states.
        if self.lines.len() > 1 && !self.names_at_ends() {
            // What was measured and simulated has the same name and colour.
            for line in &self.lines {
                let key = line.key();
                if keys.iter().all(|other: &Key| other.text != key.text) {
                    keys.push(key);
                }
            }
        }
        let compared = || self.lines.iter().filter(|line| !line.is_plain());
        let is_simulated = |wanted: bool| compared().any(|line| line.simulated == wanted);
        keys.extend(origin_keys(is_simulated(true), is_simulated(false), |sample| {
            sample.line("line", (0.0, 6.0), (28.0, 6.0));
        }));
        if self.lines.iter().flat_map(|line| &line.points).any(|point| point.span.is_some()) {
            let mut sample = Svg::sample();
            sample.open("ink");
            draw_whisker(&mut sample, 14.0, 1.0, 11.0);
            sample.close();
            keys.push(Key { sample: sample.finish(), text: self.spans.clone() });
        }
        if let Some(floor) = &self.floor {
            let mut sample = Svg::sample();
            sample.rect("floor-shade", (0.0, 0.0), 28.0, 12.0);
            sample.line("floor", (0.0, 8.0), (28.0, 8.0));
            keys.push(Key { sample: sample.finish(), text: floor.text.clone() });
        }
        keys
    }

    fn table(&self) -> Table {
        table(&self.lines, &self.x, &self.y)
    }
}

fn draw_floor(svg: &mut Svg, frame: &PlotFrame<'_>, floor: &Floor) {
    let level = |y: f64| if y > 0.0 { frame.y.place(y) } else { frame.bottom() };
    let places: Vec<(f64, f64, f64)> = match floor.points.as_slice() {
        [(_, y)] => vec![
            (frame.left(), level(*y), level(2.0 * y)),
            (frame.right(), level(*y), level(2.0 * y)),
        ],
        points => points
            .iter()
            .filter(|(x, _)| frame.x.has(*x))
            .map(|&(x, y)| (frame.x.place(x), level(y), level(2.0 * y)))
            .collect(),
    };
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
    let (mut shade, mut edge) = (Path::default(), Path::default());
    shade.to((first.0, frame.bottom()));
    for &(x, y, twice) in &places {
        shade.to((x, twice));
        edge.to((x, y));
    }
    shade.to((last.0, frame.bottom()));
    shade.close();
    svg.path("floor-shade", &shade);
    svg.path("floor", &edge);
}

fn draw_line(svg: &mut Svg, frame: &PlotFrame<'_>, line: &Line, aside: f64) {
    let has = |point: &&Point| frame.x.has(point.x) && frame.y.has(point.y);
    let points: Vec<&Point> = line.points.iter().filter(has).collect();
    let at = |point: &Point| (frame.x.place(point.x), frame.y.place(point.y));
    svg.open(line.class());
    let mut path = Path::default();
    let mut before: Option<(f64, f64)> = None;
    for point in &points {
        let (x, y) = at(point);
        if let (Some((_, y_before)), Shape::Step | Shape::Area) = (before, line.shape) {
            path.to((x, y_before));
        }
        path.to((x, y));
        before = Some((x, y));
    }
    if line.is_marked() {
        for point in &points {
            if let Some((low, high)) = point.span {
                let x = at(point).0 + aside;
                draw_whisker(svg, x, place(&frame.y, high), place(&frame.y, low));
            }
        }
    } else if points.iter().any(|point| point.span.is_some()) {
        svg.path("band", &band(frame, &points));
    }
    if let (Shape::Area, Some(first), Some((last, _))) = (line.shape, points.first(), before) {
        let mut fill = path.clone();
        fill.to((last, frame.bottom()));
        fill.to((at(first).0, frame.bottom()));
        fill.close();
        svg.path("fill", &fill);
    }
    svg.path("line", &path);
    if line.is_marked() {
        points.iter().for_each(|point| svg.path("mark", &mark(line.series, at(point))));
    }
    svg.close();
}

/// What has no place on a logarithmic axis lies at its end.
fn place(scale: &Scale, value: f64) -> f64 {
    if scale.has(value) { scale.place(value) } else { scale.ends().0 }
}

fn draw_whisker(svg: &mut Svg, x: f64, top: f64, bottom: f64) {
    svg.line("whisker", (x, top), (x, bottom));
    for y in [top, bottom] {
        svg.line("whisker", (x - 3.0, y), (x + 3.0, y));
    }
}

fn band(frame: &PlotFrame<'_>, points: &[&Point]) -> Path {
    let mut path = Path::default();
    let span = |point: &Point| point.span.unwrap_or((point.y, point.y));
    for point in points {
        path.to((frame.x.place(point.x), place(&frame.y, span(point).1)));
    }
    for point in points.iter().rev() {
        path.to((frame.x.place(point.x), place(&frame.y, span(point).0)));
    }
    path.close();
    path
}

/// Names beside the ends of lines, moved apart where lines end close to each other.
fn draw_names(svg: &mut Svg, frame: &PlotFrame<'_>, lines: &[Line]) {
    let mut ends: Vec<(f64, f64, &Line)> = Vec::new();
    for line in lines {
        let has = |point: &&Point| frame.x.has(point.x) && frame.y.has(point.y);
        if let Some(last) = line.points.iter().rfind(has) {
            ends.push((frame.x.place(last.x), frame.y.place(last.y), line));
        }
    }
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let places = apart(
        &ends.iter().map(|(_, y, _)| *y).collect::<Vec<_>>(),
        LEADING,
        (frame.top(), frame.bottom()),
    );
    for ((x, y, line), place) in ends.into_iter().zip(places) {
        svg.open(class(line.series, line.simulated));
        let from = frame.right() + 2.0;
        let mut leader = Path::default();
        [(x, y), (from, y), (from + 5.0, place)].into_iter().for_each(|point| leader.to(point));
        svg.path("leader", &leader);
        svg.text("name", (from + 7.0, place + 4.0), Anchor::Start, &line.name);
        svg.close();
    }
}

/// Sorted places moved so that they are `least` apart, each as little as may be, within bounds if they all fit.
fn apart(places: &[f64], least: f64, (low, high): (f64, f64)) -> Vec<f64> {
    // Neighbours that are too close become one group, centred where its members would be.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for &place in places {
        groups.push((place, 1));
        while let [.., (a, n), (b, m)] = groups[..] {
            let (half_a, half_b) = ((n - 1) as f64 * least / 2.0, (m - 1) as f64 * least / 2.0);
            if b - half_b - (a + half_a) >= least {
                break;
            }
            groups.truncate(groups.len() - 2);
            groups.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    let mut moved = Vec::with_capacity(places.len());
    for (middle, count) in groups {
        let half = (count - 1) as f64 * least / 2.0;
        let first = (middle - half).min(high - 2.0 * half).max(low);
        moved.extend((0..count).map(|at| first + at as f64 * least));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_apart_and_stay_where_they_can() {
        assert_eq!(apart(&[10.0, 50.0, 90.0], 14.0, (0.0, 100.0)), [10.0, 50.0, 90.0]);
        assert_eq!(apart(&[50.0, 52.0, 90.0], 14.0, (0.0, 100.0)), [44.0, 58.0, 90.0]);
        assert_eq!(apart(&[99.0, 99.0], 14.0, (0.0, 100.0)), [86.0, 100.0]);
        let moved = apart(&[30.0, 31.0, 32.0, 33.0, 60.0], 14.0, (0.0, 100.0));
        assert!(moved.windows(2).all(|pair| pair[1] - pair[0] >= 13.999), "{moved:?}");
    }
}
