//! `rheo sim queues`: k queues with a server each (k x M/G/1) beside one queue of k servers (M/G/k).
//!
//! What lanes gain by sharing a receive queue when claims cost nothing: Figures 6.1 and 6.2 of the dissertation on the
//! non-blocking driver. Packets arrive one by one at random (Poisson). Each server is a lane of the simulator that takes a packet
//! per poll; nothing else takes time. Both kinds of queues are fed by the same arrivals with the same service times. Times are
//! in mean service times. What is known exactly stands beside ([`model`], [`deterministic`]).

pub mod deterministic;
pub mod model;
mod page;
mod placing;
mod row;
mod service;
mod trial;

use std::thread;

use thiserror::Error;

pub use self::page::page;
pub use self::placing::QueueSystem;
pub use self::row::{QueueEstimate, QueuesRow};
pub use self::service::Service;
#[cfg(test)]
pub(super) use self::trial::{Sojourn, Trial};
#[cfg(not(test))]
use self::trial::{Sojourn, Trial};

/// Servers at most: lanes of the simulator.
pub const MOST_SERVERS: u16 = 256;
/// The highest load: how long a queue remembers grows with 1 ÷ (1 - load)², so runs beyond would take hours.
pub const HIGHEST_LOAD: f64 = 0.99;
/// Independent runs for each row.
pub const RUNS: u16 = 20;

/// Why there is no simulation.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum QueuesError {
    /// No servers, or more than the simulator has lanes.
    #[error("{0} servers: between 1 and {MOST_SERVERS} are simulated")]
    Servers(u16),
    /// No packets, or more than servers can process.
    #[error(
        "load {0}: above 0 and at most {HIGHEST_LOAD}; at 1 and beyond a queue grows without end"
    )]
    Load(f64),
    /// No packet is measured.
    #[error("0 packets for each server: at least 1 is measured")]
    Packets,
}

/// What is simulated: every combination.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuesBench {
    /// Numbers of servers.
    pub servers: Vec<u16>,
    /// Distributions of service times.
    pub services: Vec<Service>,
    /// Shares of the time in which servers are busy.
    pub loads: Vec<f64>,
    /// Packets measured in each run, for each server.
    pub packets: u64,
    /// Runs at the same time.
    pub threads: usize,
    /// Decides about arrivals and service times.
    pub seed: u64,
}

impl QueuesBench {
    /// Simulates; `each` is told every row, that of separate queues before that of the shared one.
    ///
    /// Bounds: a packet takes 0.1 to 0.2 us of a core in a release build; a row has [`RUNS`] runs of `packets` for each server and
    /// a warm-up of a quarter as many, or of 10 ÷ (1 - load)² if that is more. Memory: a bit for each packet of a run.
    ///
    /// # Errors
    /// [`QueuesError`], before anything is simulated.
    pub fn run(&self, mut each: impl FnMut(&QueuesRow)) -> Result<(), QueuesError> {
        self.check()?;
        for &service in &self.services {
            for &servers in &self.servers {
                for &load in &self.loads {
                    let of = |system| self.sojourns(system, service, servers, load);
                    let (separate, shared) = (of(QueueSystem::Separate), of(QueueSystem::Shared));
                    for (system, own) in
                        [(QueueSystem::Separate, &separate), (QueueSystem::Shared, &shared)]
                    {
                        each(&QueuesRow::of(system, service, (servers, load), own, &separate));
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), QueuesError> {
        let wrong = |servers: &&u16| !(1..=MOST_SERVERS).contains(*servers);
        if let Some(servers) = self.servers.iter().find(wrong) {
            return Err(QueuesError::Servers(*servers));
        }
        let wrong = |load: &&f64| !(**load > 0.0 && **load <= HIGHEST_LOAD);
        if let Some(load) = self.loads.iter().find(wrong) {
            return Err(QueuesError::Load(*load));
        }
        if self.packets == 0 { Err(QueuesError::Packets) } else { Ok(()) }
    }

    fn sojourns(
        &self,
        system: QueueSystem,
        service: Service,
        servers: u16,
        load: f64,
    ) -> Vec<Sojourn> {
        let all = u64::from(servers);
        let settling = (10.0 / (1.0 - load).powi(2)) as u64;
        let trial = Trial {
            system,
            service,
            servers,
            load,
            burst: 1,
            warm_up: all * settling.max(self.packets / 4),
            packets: all * self.packets,
        };
        let seeds: Vec<u64> = (0..RUNS).map(|run| (self.seed << 8) ^ u64::from(run)).collect();
        let part = seeds.len().div_ceil(self.threads.max(1));
        thread::scope(|scope| {
            let trial = &trial;
            let parts = seeds.chunks(part).map(|seeds| {
                scope.spawn(move || seeds.iter().map(|seed| trial.run(*seed)).collect::<Vec<_>>())
            });
            let parts: Vec<_> = parts.collect();
            let join = |part: thread::ScopedJoinHandle<'_, Vec<Sojourn>>| {
                part.join().expect("a simulation does not panic")
            };
            parts.into_iter().flat_map(join).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench() -> QueuesBench {
        QueuesBench {
            servers: vec![4],
            services: vec![Service::Markov, Service::Deterministic],
            loads: vec![0.5, 0.9],
            packets: 2_000,
            threads: 2,
            seed: 1,
        }
    }

    fn rows(bench: &QueuesBench) -> Vec<QueuesRow> {
        let mut rows = Vec::new();
        bench.run(|row| rows.push(row.clone())).unwrap();
        rows
    }

    #[test]
    fn one_queue_is_shorter_and_most_so_at_high_load() {
        let rows = rows(&bench());
        let models: Vec<_> = rows.iter().map(|row| row.model.as_str()).collect();
        assert_eq!(models[..2], ["4 x M/M/1", "M/M/4"]);
        assert_eq!(models[6..], ["4 x M/D/1", "M/D/4"]);
        for pair in rows.chunks(2) {
            assert!(pair[0].mean_by_separate.value == 1.0 && pair[1].mean_by_separate.value < 0.9);
            assert!(pair[1].p99_by_separate.value < 0.9, "{:?}", pair[1]);
        }
        assert!(rows[3].mean_by_separate.value < rows[1].mean_by_separate.value);
    }

    #[test]
    fn rows_do_not_depend_on_threads_and_do_on_the_seed() {
        let first = rows(&bench());
        assert_eq!(first, rows(&QueuesBench { threads: 3, ..bench() }));
        assert_ne!(first, rows(&QueuesBench { seed: 2, ..bench() }));
    }

    #[test]
    fn nonsense_is_refused_by_what_it_is() {
        let error = |bench: QueuesBench| bench.run(|row| panic!("{row:?}")).unwrap_err();
        for servers in [0, 257] {
            let wrong = QueuesBench { servers: vec![4, servers], ..bench() };
            assert_eq!(error(wrong), QueuesError::Servers(servers));
        }
        for load in [0.0, -0.1, 0.995, 1.0, 1.5] {
            let wrong = QueuesBench { loads: vec![load], ..bench() };
            assert_eq!(error(wrong), QueuesError::Load(load));
        }
        assert!(matches!(
            error(QueuesBench { loads: vec![f64::NAN], ..bench() }),
            QueuesError::Load(_)
        ));
        assert_eq!(error(QueuesBench { packets: 0, ..bench() }), QueuesError::Packets);
    }

    #[test]
    fn the_page_has_a_chart_for_each_figure() {
        let page = page("rheo sim queues", &rows(&bench()));
        assert_eq!(page.matches("<figure>").count(), 4);
        assert!(page.contains("At load 0.90, M/M/4 has"), "{page}");
    }
}
