//! What a row states.

use rheostat_measure::quantiles::{Sorted, median};
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::arrivals::SharingArrivals;
use super::{SharingAction, SharingWindow, System};

/// The figures of one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharingRow {
    /// The system, as [`System::name`] has it.
    pub system: String,
    /// What is done with flows, as [`SharingAction::name`] has it.
    pub action: String,
    /// Flows, of which each packet is any with the same probability.
    pub flows: u32,
    /// Lanes, each on a core of its own.
    pub lanes: usize,
    /// Time that lanes spend on a packet, its work and waiting for locks included, waiting for packets
    /// not, in nanoseconds: the median window.
    pub ns_per_packet: f64,
    /// The least window.
    pub ns_min: f64,
    /// The greatest.
    pub ns_max: f64,
    /// The same in ticks of the time-stamp counter: the median window.
    pub cycles_per_packet: f64,
    /// Packets per second through all lanes, in millions: the median window.
    pub mpps: f64,
    /// The share of packets that left, of all lanes together, after one of their flow that came later
    /// (RFC 4737, section 3): the median window.
    pub reordered: f64,
    /// The time per packet ÷ that of tables per shard in the same round: the median round. Only where
    /// these were measured, too, and not of themselves.
    pub time_ratio: Option<f64>,
    /// The rate ÷ that of tables per shard in the same round: the median round.
    pub rate_ratio: Option<f64>,
}

impl SharingRow {
    /// The row of a system with these windows, one per round; `own` are those of tables per shard in the
    /// same rounds.
    pub(super) fn new(
        system: System,
        action: SharingAction,
        arrivals: &SharingArrivals,
        windows: &[SharingWindow],
        own: Option<&[SharingWindow]>,
    ) -> SharingRow {
        let nanos = Sorted::of(windows.iter().map(SharingWindow::nanos_per_packet));
        let [least, greatest] = nanos.range().unwrap_or_default();
        let ratio = |of: fn(&SharingWindow) -> f64| {
            let pairs = windows.iter().zip(own?);
            Some(to_thousandths(median(pairs.map(|(theirs, own)| of(theirs) / of(own)))))
        };
        let packets = |window: &SharingWindow| window.packets as f64;
        SharingRow {
            system: system.name().into(),
            action: action.name().into(),
            flows: arrivals.flows.len() as u32,
            lanes: arrivals.lanes(),
            ns_per_packet: to_thousandths(nanos.median().unwrap_or_default()),
            ns_min: to_thousandths(least),
            ns_max: to_thousandths(greatest),
            cycles_per_packet: to_thousandths(median(
                windows.iter().map(|window| window.spent.cycles as f64 / packets(window)),
            )),
            mpps: to_thousandths(median(windows.iter().map(SharingWindow::mpps))),
            reordered: median(
                windows.iter().map(|window| window.reordered as f64 / packets(window)),
            ),
            time_ratio: ratio(SharingWindow::nanos_per_packet),
            rate_ratio: ratio(SharingWindow::mpps),
        }
    }
}

impl SharingWindow {
    fn nanos_per_packet(&self) -> f64 {
        self.spent.nanos as f64 / self.packets as f64
    }

    fn mpps(&self) -> f64 {
        1e3 * self.packets as f64 / self.elapsed.max(1) as f64
    }
}

impl TableRow for SharingRow {
    /// The last two columns compare with tables per shard in the same rounds.
    const COLUMNS: &'static [Column<SharingRow>] = &[
        Column::name("system", 10, |row| &row.system),
        Column::name("action", 8, |row| &row.action),
        Column::count("flows", 8, |row| row.flows.into()),
        Column::count("lanes", 5, |row| row.lanes as u64),
        Column::number("ns", 8, 1, |row| row.ns_per_packet),
        Column::text("min-max", 13, |row| format!("{:.0}-{:.0}", row.ns_min, row.ns_max)),
        Column::number("cycles", 8, 0, |row| row.cycles_per_packet),
        Column::number("Mpps", 7, 3, |row| row.mpps),
        Column::percent("reordered", 10, 2, |row| row.reordered),
        Column::known("time x", 7, 2, |row| row.time_ratio),
        Column::known("rate x", 7, 2, |row| row.rate_ratio),
    ];
}

#[cfg(test)]
mod tests {
    use super::super::lane::Spent;
    use super::*;

    fn window(nanos: u64, elapsed: u64, reordered: u64) -> SharingWindow {
        let spent = Spent { cycles: 2 * nanos, nanos };
        SharingWindow { packets: 1_000, elapsed, spent, reordered }
    }

    #[test]
    fn the_median_window_counts() {
        let arrivals = SharingArrivals::draw(7, 1_000, 2).unwrap();
        let windows = [
            window(300_000, 150_000, 10),
            window(200_000, 100_000, 0),
            window(900_000, 500_000, 5),
        ];
        let row = SharingRow::new(System::Spray, SharingAction::Write, &arrivals, &windows, None);
        assert_eq!((row.system.as_str(), row.action.as_str()), ("spray", "write"));
        assert_eq!((row.flows, row.lanes), (7, 2));
        assert_eq!((row.ns_per_packet, row.ns_min, row.ns_max), (300.0, 200.0, 900.0));
        assert_eq!((row.cycles_per_packet, row.mpps), (600.0, 6.667));
        assert_eq!((row.reordered, row.time_ratio, row.rate_ratio), (0.005, None, None));
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let arrivals = SharingArrivals::draw(7, 1_000, 2).unwrap();
        // The machine becomes slower from round to round, by more than the systems differ.
        let [own, theirs] = [1, 2].map(|times| {
            [1, 2, 4].map(|slow| window(100_000 * slow * times, 50_000 * slow * times, 0))
        });
        let row =
            SharingRow::new(System::Shared, SharingAction::Read, &arrivals, &theirs, Some(&own));
        assert_eq!((row.time_ratio, row.rate_ratio), (Some(2.0), Some(0.5)));
    }
}
