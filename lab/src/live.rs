//! `rheo bench live`: what forwarding a packet costs on real interfaces, for the whole machine.
//!
//! Three namespaces stand in a row: source, middle, sink. The kernel repeats frames at the source
//! (`BPF_PROG_TEST_RUN` with live frames), a BPF program makes flows of them, and another counts and
//! drops what reaches the sink. In the middle stands what is measured: rheo, the kernel with nftables,
//! or a bare redirect. On virtual interfaces most of the work is done by the sending process, in softirq, so
//! figures of one process say little: counted is what all processors do, less what the same frames
//! cost when they are dropped as they reach the middle.

mod error;
mod generator;
mod limits;
mod middle;
mod path;
mod programs;
mod row;
mod wires;

pub use error::LiveError;
pub use path::LivePath;
pub use row::LiveRow;

use std::path::PathBuf;
use std::time::Duration;
use std::{iter, thread};

use generator::{Generator, GeneratorWindow};
use limits::ConntrackLimits;
use middle::Middle;
use wires::Wires;

/// Measures paths side by side.
#[derive(Clone, Debug)]
pub struct LiveBench {
    /// The command `rheo` that is measured.
    pub rheo: PathBuf,
    /// Windows measured in each row; the median counts.
    pub windows: usize,
    /// The length of a window.
    pub window: Duration,
}

impl LiveBench {
    /// Measures all paths with each number of flows (a power of two), and calls `done` for each row.
    ///
    /// # Errors
    /// [`LiveError`] when something is missing on the machine, or a path does not forward.
    pub fn run(
        &self,
        paths: &[LivePath],
        flows: &[u32],
        mut done: impl FnMut(&LiveRow),
    ) -> Result<Vec<LiveRow>, LiveError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LiveError::NotRoot);
        }
        let mut rows = Vec::new();
        for &flows in flows {
            let _limits = ConntrackLimits::raise_for(flows)?;
            let stations: Vec<Station> = iter::once(&LivePath::Nothing)
                .chain(paths)
                .map(|&path| Station::build(path, flows, &self.rheo))
                .collect::<Result<_, _>>()?;
            // In a thread of its own, since it keeps to one core and what is started must not.
            let windows = thread::scope(|scope| {
                let running = scope.spawn(|| self.windows(&stations, flows));
                running.join().expect("a generator that fails says so")
            });
            let mut said = Vec::new();
            for station in stations {
                said.push((station.path, station.middle.stop()?));
            }
            let windows = windows.map_err(|(station, error)| {
                let (path, said) = &said[station];
                error.of(*path, said)
            })?;
            for ((path, _), measured) in said.iter().zip(&windows).skip(1) {
                let row = LiveRow::new(*path, flows, measured, &windows[0]);
                done(&row);
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Sends every flow twice to each station, and then measures them in turn, so that whatever else the
    /// machine does, and how fast it is at the moment, is the same for all. With an error comes the number
    /// of the station.
    fn windows(
        &self,
        stations: &[Station],
        flows: u32,
    ) -> Result<Vec<Vec<GeneratorWindow>>, (usize, LiveError)> {
        let mut generators = Vec::new();
        for (number, station) in stations.iter().enumerate() {
            let generator =
                Generator::new(&station.wires, station.path.sink(), flows, middle::RING).and_then(
                    |mut generator| {
                        generator.warm_up(flows, generator::WARM_UP_TIMEOUT)?;
                        Ok(generator)
                    },
                );
            generators.push(generator.map_err(|error| (number, error))?);
        }
        let mut windows = vec![Vec::with_capacity(self.windows); stations.len()];
        for _ in 0..self.windows {
            for (number, generator) in generators.iter_mut().enumerate() {
                let measured = generator.measure(self.window, &stations[number].middle.tasks());
                windows[number].push(measured.map_err(|error| (number, error))?);
            }
        }
        Ok(windows)
    }
}

/// A path with everything around it, waiting for packets.
struct Station {
    path: LivePath,
    // Before what it stands on.
    middle: Middle,
    wires: Wires,
}

impl Station {
    fn build(path: LivePath, flows: u32, rheo: &std::path::Path) -> Result<Station, LiveError> {
        let wires = Wires::build()?;
        let middle = Middle::start(path, &wires, flows, rheo)?;
        Ok(Station { path, middle, wires })
    }
}
