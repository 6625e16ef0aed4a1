//! Settings of `service = "work"`, and its registration.

use rheostat_base::Clock;
use rheostat_kernel::Topology;
use rheostat_settings::declared::kind::parsed;

use super::buffer::{BufferError, BufferSize};
use super::calibration::calibrate;
use super::{Computation, Operations, ServiceTimes, Work, WorkKind};
use crate::registry::{
    ApplicationError, ApplicationFacts, ApplicationKind, ApplicationMemory, MadeApplication,
    Making, Program,
};

rheostat_settings::settings! {
    /// What requests do, and for how long.
    pub struct WorkConfig: Default {
        /// What the time is spent on: roots (square roots), strided (reads 63 bytes apart), random, stream, chase (reads that wait
        /// for each other) or null.
        work: WorkKind = parsed("\"roots\", \"strided\", \"random\", \"stream\", \"chase\" or \"null\""),
            value("NAME"), default(WorkKind::Roots);
        /// How long requests take: 10us, bimodal-1 (99.5 % 1us, 0.5 % 100us), bimodal-2 (half each), exponential:MEAN,
        /// lognormal:MEAN, lognormal:MEAN:SIGMA, or SHARE:TIME,...
        service_time: ServiceTimes = parsed("\"10us\", \"bimodal-1\", \"exponential:10us\" or \"0.9:1us,0.1:50us\""),
            value("TIMES"), flag("service"), default(ServiceTimes::constant(1_000));
        /// The private buffer of each worker that work reads: a share of the last-level cache, or a size.
        buffer: BufferSize = parsed("\"80%\" or \"32MiB\""), value("SHARE|SIZE"), example("\"80%\""), default(BufferSize::Share(0.8));
    }
}

impl WorkConfig {
    fn describe(&self) -> String {
        match self.work.reads_memory() {
            true => format!(", {} in {}, {}", self.work, self.buffer, self.service_time),
            false => format!(", {}, {}", self.work, self.service_time),
        }
    }

    fn facts(&self) -> ApplicationFacts {
        let bytes = buffer_bytes(self).unwrap_or(0);
        let buffers = (bytes > 0).then(|| ApplicationMemory {
            purpose: "buffers of workers",
            bytes,
            is_per_lane: true,
            from: self.buffer.to_string(),
            setting: "[serve] buffer",
        });
        ApplicationFacts { memory: buffers.into_iter().collect(), ..ApplicationFacts::default() }
    }
}

/// Bytes of a worker's buffer; none for work that reads none.
///
/// # Errors
/// [`BufferError`] when the buffer is impossible on this machine.
pub fn buffer_bytes(config: &WorkConfig) -> Result<u64, BufferError> {
    if !config.work.reads_memory() {
        return Ok(0);
    }
    let cache = match config.buffer {
        BufferSize::Share(_) => Topology::of_this_machine().last_level_cache(),
        BufferSize::Bytes(_) => None,
    };
    config.buffer.bytes(cache)
}

/// `work`, made by `make`: of counts of operations that are kept, or by [`calibrated`].
pub fn application(
    make: impl Fn(&WorkConfig, &Making) -> Result<MadeApplication, ApplicationError>
    + Send
    + Sync
    + 'static,
) -> ApplicationKind<WorkConfig> {
    let summary =
        "Requests take as long as is wanted, with square roots or reads of memory; for `rheo load`";
    ApplicationKind::new("work", summary, make)
        .describing(WorkConfig::describe)
        .with_facts(WorkConfig::facts)
        .checking(|config| buffer_bytes(config).map(drop).map_err(wrong_buffer))
}

/// Work whose operations are counted now, on the thread that asks.
///
/// # Errors
/// [`ApplicationError`] when the buffer is impossible on this machine.
pub fn calibrated(
    config: &WorkConfig,
    making: &Making,
) -> Result<MadeApplication, ApplicationError> {
    let buffer = buffer_bytes(config).map_err(wrong_buffer)?;
    let mut computation = Computation::new(config.work, buffer as usize, 1);
    let clock = Clock::new();
    let targets = match config.work {
        WorkKind::Null => Vec::new(),
        _ => config.service_time.targets(),
    };
    let counts = targets.into_iter().map(|target| calibrate(&mut computation, &clock, target));
    let pairs: Vec<_> = counts.map(|found| (found.target_ns, found.operations)).collect();
    let cores = making.cores.clone();
    let work = Work::new(config, Operations::new(pairs), buffer as usize, cores);
    Ok(program(work).into())
}

/// The program that serves `work`, compiled here once for all that make it.
pub fn program(work: Work) -> Program {
    Program::requests(work)
}

/// The error of a buffer, with its flag.
pub fn wrong_buffer(error: BufferError) -> ApplicationError {
    ApplicationError(format!("--buffer: {error}"))
}
