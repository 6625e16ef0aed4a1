//! A figure of all policies against the load, or against the number of lanes.

use super::{Figure, by_policy, load_of, picked, sentence};
use crate::noise::Noise;
use crate::report::cells::{Cell, distinct, series};
use crate::report::metric::{
    ACTIVE, DROPS, IMBALANCE, MIGRATIONS, Metric, P50, P95, P99, SPREAD, THROUGHPUT,
};
use crate::report::plot::{Axis, Floor, Line, LineChart, Point, Unit};
use crate::report::sentence;

/// More numbers of lanes, or loads, than that would make a page nobody reads to the end.
const MOST: usize = 2;

/// Figures against the load, for numbers of lanes that have several.
pub(super) fn load(cells: &[Cell<'_>], noise: Option<&Noise>) -> Vec<Figure> {
    let of_lanes =
        |lanes: f64| cells.iter().filter(|cell| f64::from(cell.lanes) == lanes).collect::<Vec<_>>();
    let lanes = distinct(cells.iter().map(|cell| cell.lanes.into()));
    let several: Vec<f64> = lanes
        .into_iter()
        .filter(|&lanes| distinct(of_lanes(lanes).iter().map(|cell| cell.load)).len() > 1)
        .collect();
    // The most lanes first: they are what the others lead to.
    picked(&several, MOST)
        .into_iter()
        .rev()
        .flat_map(|lanes| {
            let cells = of_lanes(lanes);
            let on = sentence::lanes(lanes as u16);
            let highest = distinct(cells.iter().map(|cell| cell.load)).pop().unwrap_or_default();
            let view = Against {
                cells: cells.clone(),
                x: Axis::linear("load, as a share of what all lanes can do", Unit::Plain),
                of: |cell| cell.load,
                title: format!("against load, {on}"),
                place: format!("At a load of {} on {on}", load_of(highest)),
                hardest: highest,
            };
            [P95, DROPS, THROUGHPUT, P99, P50, IMBALANCE, MIGRATIONS]
                .iter()
                .filter_map(|metric| view.figure(metric, noise))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Figures against the number of lanes, for loads (or amounts of traffic) that several have.
pub(super) fn lanes(cells: &[Cell<'_>], noise: Option<&Noise>) -> Vec<Figure> {
    let share = |cell: &Cell<'_>| cell.load;
    // As a number of lanes that could just do it, so that what was divided by the lanes is the same again.
    let demand = |cell: &Cell<'_>| (cell.load * f64::from(cell.lanes) * 1e6).round() / 1e6;
    let several = |key: &dyn Fn(&Cell<'_>) -> f64| -> Vec<f64> {
        let lanes_of = |value: f64| {
            let of = cells.iter().filter(|cell| key(cell) == value);
            distinct(of.map(|cell| cell.lanes.into())).len()
        };
        let keys = distinct(cells.iter().map(key));
        keys.into_iter().filter(|&value| lanes_of(value) > 1).collect()
    };
    let (by_share, by_demand) = (several(&share), several(&demand));
    let is_share = !by_share.is_empty();
    let keys = if is_share { by_share } else { by_demand };
    let key = |cell: &Cell<'_>| if is_share { share(cell) } else { demand(cell) };
    picked(&keys, MOST)
        .into_iter()
        .rev()
        .flat_map(|value| {
            let cells: Vec<&Cell<'_>> = cells.iter().filter(|cell| key(cell) == value).collect();
            let most = cells.iter().map(|cell| cell.lanes).max().unwrap_or_default();
            let load = if is_share {
                format!("a load of {}", load_of(value))
            } else {
                format!("traffic for {} lanes", load_of(value))
            };
            let view = Against {
                cells,
                x: Axis::log("lanes", Unit::Plain),
                of: |cell| cell.lanes.into(),
                title: format!("against lanes, {load}"),
                place: format!("On {} at {load}", sentence::lanes(most)),
                hardest: most.into(),
            };
            [IMBALANCE, SPREAD, MIGRATIONS, THROUGHPUT, DROPS, P95, ACTIVE]
                .iter()
                .filter_map(|metric| view.figure(metric, noise))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Cells along an axis.
struct Against<'a, 'b, F: Fn(&Cell<'_>) -> f64> {
    cells: Vec<&'b Cell<'a>>,
    x: Axis,
    of: F,
    title: String,
    /// Where policies are compared in words, and what `of` gives there.
    place: String,
    hardest: f64,
}

impl<F: Fn(&Cell<'_>) -> f64> Against<'_, '_, F> {
    /// Nothing, where the metric is the same everywhere.
    fn figure(&self, metric: &Metric, noise: Option<&Noise>) -> Option<Figure> {
        let axis = if metric.is_log {
            Axis::log(metric.axis, metric.unit)
        } else {
            let from = if metric.name == IMBALANCE.name { 1.0 } else { 0.0 };
            Axis::linear(metric.axis, metric.unit).from(from)
        };
        let floor = noise.zip(metric.share).map(|(noise, share)| noise.floor_us(share));
        let mut chart = LineChart::new(self.x.clone(), axis);
        let mut values = Vec::new();
        for (policy, mut cells) in by_policy(&self.cells) {
            cells.sort_by(|a, b| (self.of)(a).total_cmp(&(self.of)(b)));
            let simulated = cells[0].simulated;
            let points: Vec<Point> = cells
                .into_iter()
                .filter_map(|cell| {
                    let of = cell.estimate(metric)?;
                    values.push(of.value);
                    Some(Point { x: (self.of)(cell), y: of.value, span: of.span() })
                })
                .collect();
            let line = Line::new(policy, points).series(series(policy)).simulated(simulated);
            chart = chart.with(line);
        }
        let first = *values.first()?;
        if values.iter().all(|value| *value == first) {
            return None;
        }
        if metric.name == THROUGHPUT.name {
            chart = chart.with(self.offered());
        }
        if self.cells.iter().all(|cell| !cell.simulated) {
            chart = chart.floor(floor.map(|us| Floor {
                text: format!(
                    "the machine's own {}: {}; figures below twice that say nothing",
                    metric.label,
                    Unit::Microseconds.show(us)
                ),
                points: vec![(0.0, us)],
            }));
        }
        let hardest: Vec<&Cell<'_>> =
            self.cells.iter().filter(|cell| (self.of)(cell) == self.hardest).copied().collect();
        Some(Figure {
            title: format!("{} {}", capital(metric.label), self.title),
            says: sentence(&self.place, metric, &hardest, noise),
            chart: Box::new(chart),
        })
    }

    /// What arrived, whatever the policy.
    fn offered(&self) -> Line {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for x in distinct(self.cells.iter().map(|cell| (self.of)(cell))) {
            let here = self.cells.iter().filter(|cell| (self.of)(cell) == x);
            let runs: Vec<_> = here.flat_map(|cell| &cell.runs).collect();
            let rate = runs.iter().map(|run| run.packets as f64 / run.seconds).sum::<f64>();
            points.push((x, rate / runs.len() as f64));
        }
        Line::new("offered", points).plain()
    }
}

/// With a capital letter, unless it is a name such as `p95`.
fn capital(label: &str) -> String {
    if label.chars().any(|letter| letter.is_ascii_digit()) {
        return format!("Latency {label}");
    }
    let mut letters = label.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
