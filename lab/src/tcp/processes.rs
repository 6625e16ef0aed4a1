//! Rows as processes of their own, and as many processes as lanes beside a row on several lanes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rheostat_measure::confidence::Median;

use super::{Load, TcpRow};
use crate::error::BenchError;
use crate::testbed::Process;

/// How often a row on several lanes and its processes are measured, in turn: a processor that others slow down for a second
/// makes one round wrong by up to half.
const ROUNDS: usize = 9;
/// The same with more than this many connections, which take seconds to open.
const ROUNDS_OF_MANY: usize = 3;
const MANY: u32 = 10_000;

/// Runs rows as processes.
#[derive(Clone, Debug)]
pub struct TcpProcesses {
    /// The command `rheo`.
    pub rheo: PathBuf,
    /// Arguments of each: those of the effort.
    pub arguments: Vec<String>,
}

impl TcpProcesses {
    /// Measures a row: on several lanes, beside as many processes with a lane and a share of the connections each.
    ///
    /// # Errors
    /// [`BenchError`] when a process cannot be started, or its run was not sound.
    pub fn measure(&self, load: &Load) -> Result<TcpRow, BenchError> {
        if load.lanes == 1 {
            return self.wait(self.start(load, 0)?);
        }
        let mut rows = Vec::new();
        let mut ratios = Vec::new();
        let rounds = if load.connections > MANY { ROUNDS_OF_MANY } else { ROUNDS };
        for _ in 0..rounds {
            let row = self.wait(self.start(load, 0)?)?;
            let share = load.connections / load.lanes as u32;
            let part = Load { lanes: 1, connections: share, ..*load };
            let processes: Vec<_> =
                (0..load.lanes).map(|core| self.start(&part, core)).collect::<Result<_, _>>()?;
            let mut sum = 0.0;
            for process in processes {
                sum += self.wait(process)?.requests_per_second;
            }
            ratios.push(row.requests_per_second / sum);
            rows.push(row);
        }
        rows.sort_by(|a, b| a.process_ns.total_cmp(&b.process_ns));
        let row = rows.swap_remove(rounds / 2);
        let Median { value, low, high } = Median::of(ratios);
        Ok(TcpRow { of_processes: Some(value), of_processes_range: Some([low, high]), ..row })
    }

    fn start(&self, load: &Load, core: usize) -> Result<Process, BenchError> {
        let mut command = Command::new(&self.rheo);
        command.args(["bench", "tcp", "--row", load.kind.name(), "--json"]);
        command.args(["--connections", &load.connections.to_string()]);
        command.args(["--lanes", &load.lanes.to_string(), "--core", &core.to_string()]);
        let ack_delay = format!("{}us", load.ack_delay.as_micros());
        command.args(["--under-way", &load.under_way.to_string(), "--ack-delay", &ack_delay]);
        command.args(&self.arguments);
        Ok(Process::start(command.stdout(Stdio::piped()))?)
    }

    fn wait(&self, process: Process) -> Result<TcpRow, BenchError> {
        let (status, text) = process.finish()?;
        let row = text.lines().next().and_then(|line| serde_json::from_str(line).ok());
        row.filter(|_| status.success()).ok_or_else(|| BenchError::Process {
            command: format!("{} bench tcp", self.rheo.display()),
            problem: format!("{status}, and it printed `{}`", text.trim()),
        })
    }
}
