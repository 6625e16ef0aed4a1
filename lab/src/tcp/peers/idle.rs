//! A service with little to do: its processor time, and how long replies take.

use std::path::PathBuf;
use std::time::Duration;

use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use serde::{Deserialize, Serialize};

use super::client::ClientPace;
use super::peer::Peer;
use super::station::Station;
use super::usage::Usage;
use super::{WARM_UP, cores};
use crate::delays::quantile_us;
use crate::live::LiveError;
use crate::testbed::on_core;
use hdrhistogram::Histogram;

/// What is measured: the one that never sleeps first, with which the others are compared.
const PEERS: [Peer; 4] = [
    Peer::Serve { device: "af_xdp", polling: "busy" },
    Peer::Serve { device: "af_xdp", polling: "interrupt" },
    Peer::Serve { device: "af_xdp", polling: "metronome" },
    Peer::Epoll,
];
/// Requests a second.
const RATES: [u32; 3] = [0, 1_000, 10_000];

/// Measures servers that have little to do, one after the other.
#[derive(Clone, Debug)]
pub struct IdleBench {
    /// The command `rheo` that is measured.
    pub rheo: PathBuf,
    /// Connections.
    pub connections: u32,
    /// How long each rate is measured.
    pub span: Duration,
}

/// A server at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleRow {
    /// `epoll`, or `serve`.
    pub peer: String,
    /// `kernel`, or the kind of the service's device.
    pub device: String,
    /// How it waits for packets.
    pub polling: String,
    /// Connections.
    pub connections: u32,
    /// Requests a second, evenly spaced.
    pub offered_per_second: u32,
    /// The server's processor time, all its threads, as a share of a core.
    pub server_cpu: f64,
    /// What all processors do, as a share of a core.
    pub machine_cpu: f64,
    /// From the moment when a request was due to its reply, in microseconds; none without requests.
    pub p50_us: Option<f64>,
    /// The same for 99 in a hundred.
    pub p99_us: Option<f64>,
    /// The client's part of that: from the moment when a request was due until it was sent.
    pub late_p50_us: Option<f64>,
    /// The same for 99 in a hundred.
    pub late_p99_us: Option<f64>,
    /// By how much the median is above that of the service that never sleeps.
    pub added_p50_us: Option<f64>,
    /// The same for 99 in a hundred.
    pub added_p99_us: Option<f64>,
}

impl IdleBench {
    /// Measures, and calls `done` for each row.
    ///
    /// # Errors
    /// [`LiveError`] when something is missing on the machine, or a server does not answer.
    pub fn run(&self, mut done: impl FnMut(&IdleRow) + Send) -> Result<(), LiveError> {
        let cores = cores()?;
        on_core(cores.first(), || {
            let mut awake: Vec<IdleRow> = Vec::new();
            for peer in PEERS {
                // One that polls on would take the core from the others.
                let mut station = Station::build(peer, self.connections, &self.rheo, cores.last())?;
                let warm_up = ClientPace::Saturated { under_way: 16 };
                station.client.run(warm_up, WARM_UP)?;
                for (number, rate) in RATES.into_iter().enumerate() {
                    let row = self.measure(peer, &mut station, rate, awake.get(number))?;
                    done(&row);
                    if peer == PEERS[0] {
                        awake.push(row);
                    }
                }
                station.stop()?;
            }
            Ok(())
        })
    }

    fn measure(
        &self,
        peer: Peer,
        station: &mut Station,
        rate: u32,
        awake: Option<&IdleRow>,
    ) -> Result<IdleRow, LiveError> {
        let before = Usage::now(&station.tasks())?;
        let outcome = station.client.run(ClientPace::PerSecond(rate), self.span)?;
        let used = Usage::now(&station.tasks())?.since(&before, outcome.replies);
        let share = |seconds: f64| to_thousandths(seconds / used.cpu.elapsed);
        let quantile = |of: &Histogram<u64>, share| quantile_us(of, share).map(to_thousandths);
        let added = |value: Option<f64>, of: fn(&IdleRow) -> Option<f64>| {
            Some(to_thousandths(value? - of(awake?)?))
        };
        let [p50_us, p99_us] = [0.5, 0.99].map(|at| quantile(&outcome.latency, at));
        let [late_p50_us, late_p99_us] = [0.5, 0.99].map(|at| quantile(&outcome.lateness, at));
        Ok(IdleRow {
            peer: peer.name().into(),
            device: peer.device().into(),
            polling: peer.polling().into(),
            connections: self.connections,
            offered_per_second: rate,
            server_cpu: share(used.server),
            machine_cpu: share(used.cpu.busy),
            p50_us,
            p99_us,
            late_p50_us,
            late_p99_us,
            added_p50_us: added(p50_us, |row| row.p50_us),
            added_p99_us: added(p99_us, |row| row.p99_us),
        })
    }
}

impl TableRow for IdleRow {
    const COLUMNS: &'static [Column<IdleRow>] = &[
        Column::name("peer", 6, |row| &row.peer),
        Column::name("device", 8, |row| &row.device),
        Column::name("polling", 10, |row| &row.polling),
        Column::count("request/s", 9, |row| row.offered_per_second.into()),
        Column::number("server cpu", 10, 3, |row| row.server_cpu),
        Column::number("machine cpu", 11, 3, |row| row.machine_cpu),
        Column::known("p50 us", 8, 1, |row| row.p50_us),
        Column::known("p99 us", 8, 1, |row| row.p99_us),
        Column::known("late p50", 8, 1, |row| row.late_p50_us),
        Column::known("late p99", 8, 1, |row| row.late_p99_us),
        Column::known("added p50", 9, 1, |row| row.added_p50_us),
        Column::known("added p99", 9, 1, |row| row.added_p99_us),
    ];
}
