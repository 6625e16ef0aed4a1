//! A figure of all policies against the load, or against the number of lanes.

use rheostat_plot::{Axis, Floor, Line, LineChart, Point, Unit};

use super::{ReportFigure, by_policy, load_of, picked, sentence};
use crate::noise::Noise;
use crate::report::cells::{ReportCell, distinct, series, spans};
use crate::report::metric::{
    ACTIVE, DROPS, IMBALANCE, MIGRATIONS, Metric, P50, P95, P99, SPREAD, THROUGHPUT,
};
use crate::report::sentence;

/// More numbers of lanes, or loads, would make a page too long to read.
const MOST: usize = 2;

/// Figures against the load, for numbers of lanes that have several.
pub(super) fn load(cells: &[ReportCell<'_>], noise: Option<&Noise>) -> Vec<ReportFigure> {
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
            let view = on_lanes(of_lanes(lanes), lanes as u16);
            [P95, DROPS, THROUGHPUT, P99, P50, IMBALANCE, MIGRATIONS]
                .iter()
                .filter_map(|metric| view.figure(metric, noise))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// These cells, which are all on so many lanes, against the load.
pub(super) fn on_lanes<'a, 'b>(cells: Vec<&'b ReportCell<'a>>, lanes: u16) -> Against<'a, 'b> {
    let on = sentence::lanes(lanes);
    let highest = distinct(cells.iter().map(|cell| cell.load)).pop().unwrap_or_default();
    Against {
        cells,
        x: Axis::linear("load, as a share of what all lanes can do", Unit::Plain),
        of: |cell| cell.load,
        title: format!("against load, {on}"),
        place: format!("At a load of {} on {on}", load_of(highest)),
        hardest: highest,
    }
}

/// Figures against the number of lanes, for loads (or amounts of traffic) that several have.
pub(super) fn lanes(cells: &[ReportCell<'_>], noise: Option<&Noise>) -> Vec<ReportFigure> {
    let share = |cell: &ReportCell<'_>| cell.load;
    // As a number of lanes that could just do it, so that what was divided by the lanes is the same again.
    let demand = |cell: &ReportCell<'_>| (cell.load * f64::from(cell.lanes) * 1e6).round() / 1e6;
    let several = |key: &dyn Fn(&ReportCell<'_>) -> f64| -> Vec<f64> {
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
    let key = |cell: &ReportCell<'_>| if is_share { share(cell) } else { demand(cell) };
    picked(&keys, MOST)
        .into_iter()
        .rev()
        .flat_map(|value| {
            let cells: Vec<&ReportCell<'_>> =
                cells.iter().filter(|cell| key(cell) == value).collect();
            let view = under_load(cells, value, is_share);
            [IMBALANCE, SPREAD, MIGRATIONS, THROUGHPUT, DROPS, P95, ACTIVE]
                .iter()
                .filter_map(|metric| view.figure(metric, noise))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// These cells against the lanes. All have this load; or, where it is no share, traffic for so many lanes.
fn under_load<'a, 'b>(
    cells: Vec<&'b ReportCell<'a>>,
    load: f64,
    is_share: bool,
) -> Against<'a, 'b> {
    let counts = distinct(cells.iter().map(|cell| cell.lanes.into()));
    let most = counts.last().copied().unwrap_or_default();
    // Of a load that is a share, the most lanes are the hardest to keep even; of a given traffic, those that
    // could just do it.
    let enough = counts.into_iter().find(|&lanes| lanes >= load);
    let hardest = enough.filter(|_| !is_share).unwrap_or(most);
    let under = match is_share {
        true => format!("load {}", load_of(load)),
        false => format!("traffic for {} lanes", load_of(load)),
    };
    Against {
        cells,
        x: Axis::log("lanes", Unit::Plain),
        of: |cell| cell.lanes.into(),
        title: format!("against lanes, {under}"),
        place: format!("On {} with {under}", sentence::lanes(hardest as u16)),
        hardest,
    }
}

/// Cells along an axis.
pub(super) struct Against<'a, 'b> {
    cells: Vec<&'b ReportCell<'a>>,
    x: Axis,
    of: fn(&ReportCell<'_>) -> f64,
    title: String,
    /// Where policies are compared in words, and what `of` gives there.
    place: String,
    hardest: f64,
}

impl Against<'_, '_> {
    /// Nothing, where the metric is the same everywhere.
    pub(super) fn figure(&self, metric: &Metric, noise: Option<&Noise>) -> Option<ReportFigure> {
        let axis = if metric.is_log {
            Axis::log(metric.axis, metric.unit)
        } else {
            let from = if metric.name == IMBALANCE.name { 1.0 } else { 0.0 };
            Axis::linear(metric.axis, metric.unit).from(from)
        };
        let floor = noise.zip(metric.share).map(|(noise, share)| noise.floor_us(share));
        let mut chart =
            LineChart::new(self.x.clone(), axis).spans(spans(self.cells.iter().copied()));
        // Measured and simulated runs are offered as much as their own capacity allows.
        if metric.name == THROUGHPUT.name && by_policy(&self.cells).len() == self.policies() {
            chart = chart.with(self.offered());
        }
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
        // All lanes, always: that is no news.
        let all_lanes = metric.name == ACTIVE.name
            && self.cells.iter().all(|cell| {
                cell.estimate(metric).is_some_and(|of| of.value == f64::from(cell.lanes))
            });
        if all_lanes || values.iter().all(|value| *value == first) {
            return None;
        }
        if self.cells.iter().any(|cell| !cell.simulated) {
            chart = chart.floor(floor.map(|us| Floor {
                text: format!(
                    "the machine's own {}: {}; figures below twice that say nothing",
                    metric.label,
                    Unit::Microseconds.show(us)
                ),
                points: vec![(0.0, us)],
            }));
        }
        let hardest: Vec<&ReportCell<'_>> =
            self.cells.iter().filter(|cell| (self.of)(cell) == self.hardest).copied().collect();
        Some(ReportFigure {
            title: format!("{} {}", capital(metric.label), self.title),
            says: sentence(&self.place, metric, &hardest, noise) + &self.lanes_needed(metric),
            chart: Box::new(chart),
        })
    }

    /// From how many lanes on a policy drops next to nothing, where the traffic is the same for all (RSS++ Figure 14).
    fn lanes_needed(&self, metric: &Metric) -> String {
        const NEXT_TO_NOTHING: f64 = 1e-3;
        let places = distinct(self.cells.iter().map(|cell| (self.of)(cell)));
        let is_traffic =
            places.len() > 1 && distinct(self.cells.iter().map(|cell| cell.load)).len() > 1;
        if metric.name != DROPS.name || self.hardest == places[places.len() - 1] || !is_traffic {
            return String::new();
        }
        let said = by_policy(&self.cells).into_iter().map(|(policy, mut cells)| {
            cells.sort_by_key(|cell| std::cmp::Reverse(cell.lanes));
            let is_enough = |cell: &&&ReportCell<'_>| {
                cell.estimate(metric).is_some_and(|of| of.value <= NEXT_TO_NOTHING)
            };
            match cells.iter().take_while(is_enough).last() {
                Some(cell) => format!("{policy} {}", cell.lanes),
                None => format!("{policy} more than there were"),
            }
        });
        let said = said.collect::<Vec<_>>().join(", ");
        format!(" Lanes from which on half of the runs drop at most 0.1 %: {said}.")
    }

    /// How many policies there are, whether measured or simulated.
    fn policies(&self) -> usize {
        let mut names: Vec<&str> = self.cells.iter().map(|cell| cell.policy).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
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
