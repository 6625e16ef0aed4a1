//! What a row states.

use rheostat_measure::quantiles::{Sorted, median};
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::generator::GeneratorWindow;
use super::path::LivePath;
use crate::testbed::cpu_time::CpuUse;

/// The figures of one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveRow {
    /// The path, as [`LivePath::name`] has it.
    pub path: String,
    /// How it meets the interfaces: `af_xdp`, `kernel`, `xdp`.
    pub device: String,
    /// Flows, in an order that no cache foresees.
    pub flows: u32,
    /// Processor time of the whole machine for a packet that arrived, in nanoseconds, less what the
    /// source takes: the median window.
    pub cpu_ns_per_packet: f64,
    /// The least window.
    pub cpu_ns_min: f64,
    /// The greatest.
    pub cpu_ns_max: f64,
    /// The same of the tasks that carry packets alone. Much less than the above means that the machine
    /// did something else meanwhile.
    pub task_ns_per_packet: f64,
    /// Processor time of the source for a packet, in nanoseconds: what was taken off.
    pub source_ns_per_packet: f64,
    /// Packets per second that arrived, in millions.
    pub mpps: f64,
    /// The share of packets that did not arrive.
    pub loss: f64,
    /// The share of processor time that the hypervisor took.
    pub stolen: f64,
}

impl LiveRow {
    /// The row of a path from its windows and those of the source alone, of which each was measured in
    /// the same round.
    pub(super) fn new(
        path: LivePath,
        flows: u32,
        windows: &[GeneratorWindow],
        source: &[GeneratorWindow],
    ) -> LiveRow {
        let per_sent =
            |seconds: f64, window: &GeneratorWindow| 1e9 * seconds / window.sent.max(1) as f64;
        let above = |of: fn(&CpuUse) -> f64| {
            windows.iter().zip(source).map(move |(window, source)| {
                let source = per_sent(of(&source.cpu), source) * window.sent as f64;
                (1e9 * of(&window.cpu) - source) / window.arrived.max(1) as f64
            })
        };
        let whole = Sorted::of(above(|cpu| cpu.busy));
        let [least, greatest] = whole.range().unwrap_or_default();
        let of_windows =
            |value: fn(&GeneratorWindow) -> f64| to_thousandths(median(windows.iter().map(value)));
        LiveRow {
            path: path.name().into(),
            device: path.device().into(),
            flows,
            cpu_ns_per_packet: to_thousandths(whole.median().unwrap_or_default()),
            cpu_ns_min: to_thousandths(least),
            cpu_ns_max: to_thousandths(greatest),
            task_ns_per_packet: to_thousandths(median(above(|cpu| cpu.tasks))),
            source_ns_per_packet: to_thousandths(median(
                source.iter().map(|window| per_sent(window.cpu.busy, window)),
            )),
            mpps: of_windows(|window| window.arrived as f64 / window.cpu.elapsed / 1e6),
            loss: of_windows(|window| 1.0 - window.arrived as f64 / window.sent.max(1) as f64),
            stolen: of_windows(|window| window.cpu.stolen / window.cpu.elapsed),
        }
    }
}

impl TableRow for LiveRow {
    const COLUMNS: &'static [Column<LiveRow>] = &[
        Column::name("path", 15, |row| &row.path),
        Column::name("device", 7, |row| &row.device),
        Column::count("flows", 8, |row| row.flows.into()),
        Column::number("cpu ns", 9, 0, |row| row.cpu_ns_per_packet),
        Column::text("min-max", 17, |row| format!("{:.0}-{:.0}", row.cpu_ns_min, row.cpu_ns_max)),
        Column::number("tasks ns", 9, 0, |row| row.task_ns_per_packet),
        Column::number("source", 8, 0, |row| row.source_ns_per_packet),
        Column::number("Mpps", 7, 3, |row| row.mpps),
        Column::text("loss", 6, |row| format!("{:.1}%", row.loss * 100.0)),
        Column::text("stolen", 7, |row| format!("{:.1}%", row.stolen * 100.0)),
    ];
}

impl LiveRow {
    /// What the rows with as many flows come to against each other: one line for each path of `rheo`
    /// and each that it is held against.
    pub fn ratios(rows: &[LiveRow]) -> Vec<String> {
        let mut lines = Vec::new();
        for ours in rows.iter().filter(|row| row.path.starts_with("rheo-")) {
            let others = rows.iter().filter(|row| !row.path.starts_with("rheo-"));
            for theirs in others.filter(|row| row.flows == ours.flows) {
                let ratio = ours.cpu_ns_per_packet / theirs.cpu_ns_per_packet;
                lines.push(format!(
                    "{} / {} at {} flows: {ratio:.2}",
                    ours.path, theirs.path, ours.flows
                ));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(sent: u64, arrived: u64, busy: f64) -> GeneratorWindow {
        let cpu = CpuUse { busy, stolen: 0.5, tasks: busy / 2.0, elapsed: 2.0 };
        GeneratorWindow { sent, arrived, cpu }
    }

    #[test]
    fn the_source_is_taken_off_and_the_rest_shared_by_what_arrived() {
        // 100 ns for the source; 1,000 ns for the path, which loses a tenth.
        // In the last round the machine is slower, for both.
        let source = [0.1, 0.1, 0.2].map(|busy| window(1_000_000, 1_000_000, busy));
        let windows = [0.9, 1.0, 1.4].map(|busy| window(1_000_000, 900_000, busy));
        let row = LiveRow::new(LivePath::RheoNat, 65_536, &windows, &source);
        assert_eq!(
            (row.path.as_str(), row.device.as_str(), row.flows),
            ("rheo-nat", "af_xdp", 65_536)
        );
        assert_eq!(row.source_ns_per_packet, 100.0);
        assert_eq!(row.cpu_ns_per_packet, 1_000.0);
        assert_eq!((row.cpu_ns_min, row.cpu_ns_max), (888.889, 1333.333));
        assert_eq!(row.task_ns_per_packet, 500.0);
        assert_eq!((row.mpps, row.loss, row.stolen), (0.45, 0.1, 0.25));
    }

    #[test]
    fn ratios_are_between_rows_of_as_many_flows() {
        let row = |path, flows, busy| {
            let (measured, source) = (window(1_000_000, 1_000_000, busy), window(1, 1, 0.0));
            LiveRow::new(path, flows, &[measured], &[source])
        };
        let rows = [
            row(LivePath::RheoForward, 1024, 1.0),
            row(LivePath::NftMasquerade, 1024, 4.0),
            row(LivePath::NftMasquerade, 2048, 8.0),
        ];
        assert_eq!(LiveRow::ratios(&rows), ["rheo-forward / nft-masquerade at 1024 flows: 0.25"]);
    }
}
