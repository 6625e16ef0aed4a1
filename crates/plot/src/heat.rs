//! Heat maps of lanes over time, one below the other.

use super::frame::WIDTH;
use super::scale::Scale;
use super::svg::{Anchor, Path, Svg};
use super::{Axis, Chart, Key, Table, Unit};

/// Panels under one axis of time, with one scale of colours from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The length of a column, in seconds.
    interval: f64,
    /// Where the measurement begins, in seconds.
    begin: f64,
    panels: Vec<Panel>,
}

/// Lanes of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What run.
    pub name: String,
    /// By lane, then by interval: shares of 1.
    pub rows: Vec<Vec<f32>>,
}

/// Steps of colour; the style sheet has a class for each.
const LEVELS: usize = 10;
/// More columns would be thinner than what is seen.
const COLUMNS: usize = 200;
/// More rows would be thinner than two pixels.
const ROWS: usize = 32;

const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 14.0;
/// Above each panel, for its name.
const NAME: f64 = 20.0;

impl HeatMap {
    /// A map without panels: columns are `interval` seconds, and a line is drawn after `begin` seconds, where the
    /// warm-up ends.
    pub fn new(interval: f64, begin: f64) -> HeatMap {
        HeatMap { interval, begin, panels: Vec::new() }
    }

    /// Adds a panel.
    #[must_use]
    pub fn with(mut self, panel: Panel) -> HeatMap {
        if panel.rows.iter().any(|row| !row.is_empty()) {
            self.panels.push(panel);
        }
        self
    }

    fn columns(&self) -> usize {
        self.panels.iter().flat_map(|panel| panel.rows.iter().map(Vec::len)).max().unwrap_or(0)
    }
}

impl Chart for HeatMap {
    fn svg(&self, title: &str, says: &str) -> String {
        let heights: Vec<f64> = self.panels.iter().map(|p| height(shown(p.rows.len()))).collect();
        let bottom = 4.0 + heights.iter().map(|height| height + NAME).sum::<f64>();
        let mut svg = Svg::new(WIDTH, bottom + 62.0, title, says);
        let axis = Axis::linear("time", Unit::Seconds);
        let end = self.columns() as f64 * self.interval;
        let ticks = Scale::over(&axis, [0.0, end].into_iter(), (LEFT, RIGHT)).ticks;
        let place = |seconds: f64| LEFT + (RIGHT - LEFT) * seconds / end.max(f64::MIN_POSITIVE);
        let mut y = 4.0;
        for (panel, height) in self.panels.iter().zip(heights) {
            svg.text("name", (LEFT, y + NAME - 6.0), Anchor::Start, &panel.name);
            y += NAME;
            draw_panel(&mut svg, panel, y, height, place(self.interval) - LEFT);
            svg.rect("edge", (LEFT, y), RIGHT - LEFT, height);
            if (f64::MIN_POSITIVE..end).contains(&self.begin) {
                svg.line("begin", (place(self.begin), y), (place(self.begin), y + height));
            }
            y += height;
        }
        for tick in ticks.into_iter().filter(|tick| *tick <= end * (1.0 + 1e-9)) {
            let x = place(tick);
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            svg.text("tick", (x, bottom + 17.0), Anchor::Middle, &Unit::Seconds.show(tick));
        }
        svg.text("label", ((LEFT + RIGHT) / 2.0, bottom + 33.0), Anchor::Middle, "time");
        draw_scale(&mut svg, bottom + 46.0);
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        if self.begin > 0.0 {
            let mut sample = Svg::sample();
            sample.line("begin", (14.0, 0.0), (14.0, 12.0));
            keys.push(Key { sample: sample.finish(), text: "end of the warm-up".to_owned() });
        }
        if let Some(lanes) = self.panels.iter().map(|p| p.rows.len()).filter(|&n| n > ROWS).max() {
            let each = lanes.div_ceil(ROWS);
            let text = format!("each row the mean of up to {each} lanes");
            keys.push(Key { sample: String::new(), text });
        }
        keys
    }

    fn table(&self) -> Table {
        let head = ["run", "lane", "mean", "least", "most"].map(str::to_owned).to_vec();
        let mut rows = Vec::new();
        for panel in &self.panels {
            for (lane, loads) in panel.rows.iter().enumerate() {
                let skipped = (self.begin / self.interval.max(f64::MIN_POSITIVE)).round() as usize;
                let loads: Vec<f64> = loads.iter().skip(skipped).map(|&load| load.into()).collect();
                let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
                let least = loads.iter().copied().fold(f64::INFINITY, f64::min);
                let most = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let shown = [mean, least, most].map(|load| Unit::Share.show(load));
                let [mean, least, most] = shown;
                rows.push(vec![panel.name.clone(), lane.to_string(), mean, least, most]);
            }
        }
        Table { head, rows }
    }
}

/// Rows drawn for so many lanes.
fn shown(lanes: usize) -> usize {
    lanes.div_ceil(lanes.div_ceil(ROWS).max(1))
}

fn height(rows: usize) -> f64 {
    (rows as f64 * 14.0).clamp(14.0, 96.0)
}

fn draw_panel(svg: &mut Svg, panel: &Panel, top: f64, height: f64, column: f64) {
    let rows = merged(&panel.rows);
    let high = height / rows.len() as f64;
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let each = columns.div_ceil(COLUMNS).max(1);
    // One path per colour: cells of the same colour next to each other are one.
    let mut paths = vec![Path::default(); LEVELS];
    for (lane, row) in rows.iter().enumerate() {
        let y = top + lane as f64 * high;
        let levels: Vec<usize> = row.chunks(each).map(level).collect();
        let mut from = 0;
        for at in 1..=levels.len() {
            if at == levels.len() || levels[at] != levels[from] {
                let (start, end) = (from * each, (at * each).min(row.len()));
                let left = LEFT + start as f64 * column;
                paths[levels[from]].cell((left, y), (end - start) as f64 * column, high);
                from = at;
            }
        }
    }
    for (at, path) in paths.iter().enumerate() {
        svg.path(&format!("h{at}"), path);
    }
    // The first and the last lane are named.
    let last = panel.rows.len() - 1;
    svg.text("tick", (LEFT - 5.0, top + high.min(14.0) / 2.0 + 4.0), Anchor::End, "0");
    if last > 0 {
        let y = top + height - high.min(14.0) / 2.0 + 4.0;
        svg.text("tick", (LEFT - 5.0, y), Anchor::End, &last.to_string());
    }
}

/// Neighbouring lanes as one row, their mean, where there are too many.
fn merged(rows: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let each = rows.len().div_ceil(ROWS).max(1);
    let mean = |lanes: &[Vec<f32>]| {
        let columns = lanes.iter().map(Vec::len).max().unwrap_or(0);
        let at = |column: usize| {
            lanes.iter().filter_map(|lane| lane.get(column)).sum::<f32>() / lanes.len() as f32
        };
        (0..columns).map(at).collect()
    };
    rows.chunks(each).map(mean).collect()
}

fn level(loads: &[f32]) -> usize {
    let mean = loads.iter().sum::<f32>() / loads.len() as f32;
    // What is no number is no load.
    ((mean * LEVELS as f32) as usize).min(LEVELS - 1)
}

/// What the colours mean.
fn draw_scale(svg: &mut Svg, y: f64) {
    let wide = 16.0;
    let left = (LEFT + RIGHT) / 2.0 - wide * LEVELS as f64 / 2.0;
    for at in 0..LEVELS {
        let mut path = Path::default();
        path.cell((left + at as f64 * wide, y), wide, 10.0);
        svg.path(&format!("h{at}"), &path);
    }
    svg.rect("edge", (left, y), wide * LEVELS as f64, 10.0);
    svg.text("tick", (left - 5.0, y + 9.0), Anchor::End, "idle");
    svg.text(
        "tick",
        (left + wide * LEVELS as f64 + 5.0, y + 9.0),
        Anchor::Start,
        "busy all the time",
    );
}
