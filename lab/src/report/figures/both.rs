//! What was measured beside what was simulated of the same scenario: how far a simulation can be trusted.

use rheostat_plot::{Table, Unit};

use super::{ReportFigure, against};
use crate::record::Results;
use crate::report::cells::{ReportCell, cells, distinct};
use crate::report::estimate::{Difference, ReportEstimate};
use crate::report::metric::{DROPS, IMBALANCE, MIGRATIONS, Metric, P50, P95, P99, THROUGHPUT};
use crate::report::sentence;
use crate::report::versus::Versus;

/// Results of one scenario, measured and simulated, with the rows that both have.
pub(in crate::report) struct Both<'a> {
    measured: &'a Results,
    /// Whether both are of the same text, and not of the same name alone.
    pub(in crate::report) is_same: bool,
    /// The cells that both have: what was measured, and what was simulated.
    pairs: Vec<(ReportCell<'a>, ReportCell<'a>)>,
}

const METRICS: [Metric; 7] = [P50, P95, P99, DROPS, THROUGHPUT, IMBALANCE, MIGRATIONS];

impl<'a> Both<'a> {
    /// The newest results of each scenario that was both measured and simulated.
    pub(in crate::report) fn all(results: &'a [Results]) -> Vec<Both<'a>> {
        let newest = |scenario: &str, simulated: bool| {
            let of = results.iter().filter(|results| {
                (results.file_header.scenario.as_str(), results.file_header.simulated)
                    == (scenario, simulated)
            });
            of.max_by(|a, b| a.file_header.started.cmp(&b.file_header.started))
        };
        let mut scenarios: Vec<&str> =
            results.iter().map(|r| r.file_header.scenario.as_str()).collect();
        scenarios.sort_unstable();
        scenarios.dedup();
        let both = |scenario| {
            let (measured, simulated) = newest(scenario, false).zip(newest(scenario, true))?;
            let is_same = measured.file_header.text == simulated.file_header.text;
            let simulated = cells(&simulated.runs);
            let partner = |cell: &ReportCell<'_>| {
                simulated.iter().find(|other| {
                    (other.policy, other.lanes) == (cell.policy, cell.lanes)
                        && (other.load - cell.load).abs() < 1e-9
                })
            };
            let pairs: Vec<_> = cells(&measured.runs)
                .into_iter()
                .filter_map(|cell| partner(&cell).cloned().map(|other| (cell, other)))
                .collect();
            (!pairs.is_empty()).then_some(Both { measured, is_same, pairs })
        };
        scenarios.into_iter().filter_map(both).collect()
    }

    /// The title of its section.
    pub(in crate::report) fn title(&self) -> String {
        format!("{}: measured and simulated", self.measured.file_header.title)
    }

    /// What was measured and simulated in the same charts, for every number of lanes.
    pub(in crate::report) fn figures(&self) -> Vec<ReportFigure> {
        let noise = self.measured.file_header.noise.as_ref();
        let cells: Vec<&ReportCell<'_>> = self.pairs.iter().flat_map(|(a, b)| [a, b]).collect();
        let lanes = distinct(cells.iter().map(|cell| cell.lanes.into()));
        let mut figures = Vec::new();
        for lanes in lanes {
            let lanes = lanes as u16;
            let of: Vec<_> = cells.iter().filter(|cell| cell.lanes == lanes).copied().collect();
            let view = against::on_lanes(of, lanes);
            for metric in [P95, DROPS, IMBALANCE, THROUGHPUT] {
                if let Some(figure) = view.figure(&metric, noise) {
                    figures.push(ReportFigure { says: self.says(&metric, lanes), ..figure });
                }
            }
        }
        figures
    }

    /// How far the simulation is off.
    fn says(&self, metric: &Metric, lanes: u16) -> String {
        let noise = self.measured.file_header.noise.as_ref();
        let pairs = self.pairs.iter().filter(|(measured, _)| measured.lanes == lanes);
        let mut ratios = Vec::new();
        let (mut alike, mut different, mut limited) = (0, 0, 0);
        for (measured, simulated) in pairs {
            if measured.is_limited(metric, noise) {
                limited += 1;
                continue;
            }
            let Some((real, model)) = measured.estimate(metric).zip(simulated.estimate(metric))
            else {
                continue;
            };
            match Versus::of(metric, simulated, measured).map(|versus| versus.difference) {
                Some(Difference::None) => alike += 1,
                Some(Difference::Above | Difference::Below) => different += 1,
                Some(Difference::Unknown) | None => {}
            }
            if real.value > 0.0 {
                ratios.push(model.value / real.value);
            }
        }
        ratios.sort_by(f64::total_cmp);
        let mut text = match ratios.as_slice() {
            [] => {
                format!(
                    "On {}, nothing was measured that the simulated {} could be a multiple of.",
                    sentence::lanes(lanes),
                    metric.label
                )
            }
            [first, .., last] => format!(
                "On {}, the simulated {} is {} to {} times what was measured.",
                sentence::lanes(lanes),
                metric.label,
                Unit::Plain.show(*first),
                Unit::Plain.show(*last)
            ),
            [only] => format!(
                "On {}, the simulated {} is {} times what was measured.",
                sentence::lanes(lanes),
                metric.label,
                Unit::Plain.show(*only)
            ),
        };
        if alike + different > 0 {
            text.push_str(&format!(
                " In {alike} of {} rows there is no difference to be seen.",
                alike + different
            ));
        }
        if limited > 0 {
            text.push_str(&format!(
                " {limited} rows are left out: what was measured there is the machine's own noise."
            ));
        }
        text
    }

    /// Row by row: simulated ÷ measured.
    pub(in crate::report) fn table(&self) -> Table {
        let noise = self.measured.file_header.noise.as_ref();
        let ratio = |metric: &Metric, (measured, simulated): &(ReportCell<'_>, ReportCell<'_>)| {
            let of = |cell: &ReportCell<'_>| cell.estimate(metric);
            let Some((ReportEstimate { value: real, .. }, ReportEstimate { value: model, .. })) =
                of(measured).zip(of(simulated))
            else {
                return "–".to_owned();
            };
            let mark = if measured.is_limited(metric, noise) { "†" } else { "" };
            let values = format!("{} : {}", metric.unit.show(model), metric.unit.show(real));
            match real > 0.0 {
                true => format!("{}{mark} ({values})", Unit::Plain.show(model / real)),
                false => format!("({values})"),
            }
        };
        let row = |pair: &(ReportCell<'_>, ReportCell<'_>)| {
            let ReportCell { policy, lanes, load, .. } = &pair.0;
            let named = [(*policy).to_owned(), lanes.to_string(), Unit::Plain.show(*load)];
            named.into_iter().chain(METRICS.iter().map(|metric| ratio(metric, pair))).collect()
        };
        let head = ["policy", "lanes", "load"].into_iter().chain(METRICS.iter().map(|m| m.label));
        Table {
            head: head.map(str::to_owned).collect(),
            rows: self.pairs.iter().map(row).collect(),
        }
    }
}
