//! What a row states.

use rheostat_measure::confidence::Median;
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_hundredths;
use serde::{Deserialize, Serialize};

use super::EngineKind;
use super::packets::Packets;
use super::window::TxnWindow;

/// The figures of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TxnRow {
    /// The engine, as [`EngineKind::name`] has it.
    pub engine: String,
    /// The workload, as [`Workload::name`](super::Workload::name) has it.
    pub workload: String,
    /// Lanes, each on a core of its own.
    pub lanes: usize,
    /// Packets to a transaction, at most.
    pub batch: usize,
    /// What a lane spends on a packet, in nanoseconds: the median window.
    pub ns: f64,
    /// The bounds between which the true median is with 95 %; of fewer than six windows, their range.
    pub ns_low: f64,
    /// The upper one.
    pub ns_high: f64,
    /// Packets per second through all lanes, in millions: lanes ÷ `ns`.
    pub mpps: f64,
    /// Transactions that were given up ÷ all that were begun, over all windows. With locks, none is given up.
    pub abort_rate: f64,
    /// The time per packet ÷ that of transactions in the same round: the median round. Only where these were
    /// measured, too, and not of themselves.
    pub ratio: Option<f64>,
}

impl TxnRow {
    /// The row of an engine with these windows, one per round; `own` are those of transactions in the same
    /// rounds.
    pub(super) fn new(
        engine: EngineKind,
        packets: &Packets,
        batch: usize,
        windows: &[TxnWindow],
        own: Option<&[TxnWindow]>,
    ) -> TxnRow {
        let nanos = |window: &TxnWindow| window.nanos as f64 / window.packets as f64;
        let Median { value, low, high } = Median::of(windows.iter().map(nanos).collect());
        let ratio = |own: &[TxnWindow]| {
            let rounds = windows.iter().zip(own);
            Median::of(rounds.map(|(theirs, own)| nanos(theirs) / nanos(own)).collect()).value
        };
        let count = |of: fn(&TxnWindow) -> u64| windows.iter().map(of).sum::<u64>() as f64;
        let (aborted, all) =
            (count(|window| window.tries.aborted), count(|window| window.tries.all));
        TxnRow {
            engine: engine.name().into(),
            workload: packets.workload.name().into(),
            lanes: packets.lanes(),
            batch,
            ns: to_hundredths(value),
            ns_low: to_hundredths(low),
            ns_high: to_hundredths(high),
            mpps: to_hundredths(1e3 * packets.lanes() as f64 / value),
            abort_rate: aborted / all,
            ratio: own.map(ratio).map(to_hundredths),
        }
    }
}

impl TableRow for TxnRow {
    /// The last column compares with transactions in the same rounds.
    const COLUMNS: &'static [Column<TxnRow>] = &[
        Column::name("workload", 11, |row| &row.workload),
        Column::name("engine", 13, |row| &row.engine),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::count("batch", 5, |row| row.batch as u64),
        Column::number("ns", 8, 1, |row| row.ns),
        Column::text("95 %", 15, |row| format!("{:.1}-{:.1}", row.ns_low, row.ns_high)),
        Column::number("Mpps", 8, 2, |row| row.mpps),
        Column::percent("aborts", 8, 2, |row| row.abort_rate),
        Column::known("ratio", 7, 2, |row| row.ratio),
    ];
}

#[cfg(test)]
mod tests {
    use super::super::Workload;
    use super::super::engine::Tries;
    use super::*;

    #[test]
    fn a_row_is_the_median_and_compares_round_by_round() {
        let packets = Packets::draw(Workload::WriteUniform, 2, 500);
        let window = |nanos, aborted| TxnWindow {
            packets: 1_000,
            nanos,
            tries: Tries { all: 1_000 + aborted, aborted },
        };
        let own = [window(10_000, 0), window(40_000, 0), window(20_000, 0)];
        let theirs = [window(30_000, 0), window(60_000, 0), window(100_000, 600)];
        let row = TxnRow::new(EngineKind::TwoPhase, &packets, 32, &theirs, Some(&own));
        assert_eq!((row.ns, row.ns_low, row.ns_high), (60.0, 30.0, 100.0));
        // Not 60 ÷ 20: rounds are compared before the median is taken.
        assert_eq!(row.ratio, Some(3.0));
        assert_eq!((row.mpps, row.abort_rate), (33.33, 600.0 / 3_600.0));
        assert_eq!(TxnRow::new(EngineKind::Txn, &packets, 1, &own, None).ratio, None);
        let line = row.line();
        assert_eq!(line.len(), TxnRow::heading().len(), "{line}");
    }
}
