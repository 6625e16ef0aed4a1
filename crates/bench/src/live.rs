//! `rheo bench live`: what forwarding a packet costs on real interfaces, for the whole machine.
//!
//! Three namespaces stand in a row: source, middle, sink. The kernel repeats frames at the source
//! (`BPF_PROG_TEST_RUN` with live frames), a BPF program makes flows of them, and another counts and
//! drops what reaches the sink. In the middle stands what is measured: rheo, the kernel with nftables,
//! or a bare redirect. On virtual interfaces most of the work is done by whoever sends, in softirq, so
//! figures of one process say little: counted is what all processors do, less what the same frames
//! cost when they are dropped as they reach the middle.

mod cpu;
mod error;
mod generator;
mod limits;
mod middle;
mod namespace;
mod path;
mod programs;
mod row;
mod wires;

pub use error::LiveError;
pub use path::Path;
pub use row::{Row, Table};

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use generator::{Generator, Window};
use limits::ConntrackLimits;
use middle::Middle;
use row::Figure;
use wires::Wires;

/// Runs rows one after the other.
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
    /// Measures each path with each number of flows (a power of two), and calls `done` after each row.
    ///
    /// # Errors
    /// [`LiveError`] when the machine lacks something, or a path does not forward.
    pub fn run(
        &self,
        paths: &[Path],
        flows: &[u32],
        mut done: impl FnMut(&Row),
    ) -> Result<Vec<Row>, LiveError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LiveError::NotRoot);
        }
        let mut rows = Vec::new();
        for &flows in flows {
            let _limits = ConntrackLimits::raise_for(flows)?;
            for &path in paths {
                let baseline = self.measure(Path::Nothing, flows)?;
                let figure = self.measure(path, flows)?;
                let row = Row::new(path, flows, &figure, &baseline);
                done(&row);
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Builds everything anew, sends every flow twice, and measures.
    fn measure(&self, path: Path, flows: u32) -> Result<Figure, LiveError> {
        let wires = Wires::build()?;
        let middle = Middle::start(path, &wires, flows, &self.rheo)?;
        // In a thread of its own, since it keeps to one core and what is started must not.
        let windows = thread::scope(|scope| {
            let running = scope.spawn(|| self.windows(path, &wires, flows, &middle));
            running.join().expect("a generator that fails says so")
        });
        let said = middle.stop()?;
        windows.map(Figure::of).map_err(|error| error.of(path, &said))
    }

    fn windows(
        &self,
        path: Path,
        wires: &Wires,
        flows: u32,
        middle: &Middle,
    ) -> Result<Vec<Window>, LiveError> {
        let mut generator = Generator::new(wires, path.sink(), flows, middle::RING)?;
        generator.warm_up(flows, generator::WARM_UP_PATIENCE)?;
        (0..self.windows).map(|_| generator.measure(self.window, &middle.tasks())).collect()
    }
}
