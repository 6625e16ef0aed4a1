//! A program that computes on the cores of workers: what it loses by them, and they by it.

use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::CoreId;
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_kernel::priority::{Priority, RaisedPriority};

use crate::error::BenchError;
use crate::real::busy_work::run;
use crate::testbed::Process;

/// The name of the subcommand that a competitor is started by.
pub const COMPETITOR: &str = "competitor";
/// Rounds of arithmetic between two looks at the counter: some ten microseconds.
const ROUNDS: u32 = 10_000;

/// How far the program has come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CompetitorProgress {
    /// Nanoseconds since it was started.
    nanos: u64,
    /// Pieces of work done.
    pieces: u64,
}

impl CompetitorProgress {
    pub(super) fn since(self, earlier: CompetitorProgress) -> CompetitorProgress {
        CompetitorProgress {
            nanos: self.nanos - earlier.nanos,
            pieces: self.pieces - earlier.pieces,
        }
    }

    /// Both together.
    pub(super) fn with(self, other: CompetitorProgress) -> CompetitorProgress {
        CompetitorProgress { nanos: self.nanos + other.nanos, pieces: self.pieces + other.pieces }
    }

    /// Pieces per second.
    pub(super) fn rate(self) -> f64 {
        self.pieces as f64 * 1e9 / self.nanos.max(1) as f64
    }
}

/// The program, at work in a process of its own; killed when dropped.
pub(super) struct Competitor {
    _process: Process,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Competitor {
    /// Starts a thread on each of these cores, at this nice value.
    pub(super) fn start(cores: &[CoreId], nice: i8) -> Result<Competitor, BenchError> {
        let cores: Vec<_> = cores.iter().map(|core| core.0.to_string()).collect();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", COMPETITOR, "--cores", &cores.join(",")]);
        command.arg(format!("--nice={nice}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let piped = || BenchError::Io(io::Error::from(io::ErrorKind::BrokenPipe));
        let ask = process.child().stdin.take().ok_or_else(piped)?;
        let answers = BufReader::new(process.child().stdout.take().ok_or_else(piped)?);
        Ok(Competitor { _process: process, ask, answers })
    }

    /// How far it is.
    pub(super) fn progress(&mut self) -> Result<CompetitorProgress, BenchError> {
        self.ask.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut numbers = line.split_whitespace().map_while(|word| word.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(nanos), Some(pieces)) => Ok(CompetitorProgress { nanos, pieces }),
            _ => Err(BenchError::Competitor(line.trim().to_owned())),
        }
    }

    /// What it does in a second while nothing is beside it.
    pub(super) fn rate_alone(&mut self, time: Duration) -> Result<f64, BenchError> {
        let first = self.progress()?;
        std::thread::sleep(time);
        Ok(self.progress()?.since(first).rate())
    }
}

/// The program itself: computes on these cores until standard input ends, and answers every line of it with the
/// nanoseconds since the start and the pieces of work done.
///
/// # Errors
/// What the operating system said of a core, the nice value, or a pipe.
pub fn compete(cores: &[CoreId], nice: i8) -> Result<(), BenchError> {
    let refused = |error: rheostat_kernel::priority::PriorityRefused| BenchError::Io(error.source);
    // Kept until the end: threads inherit it.
    let _priority = RaisedPriority::new(Priority::Nice(nice)).map_err(refused)?;
    let start = Instant::now();
    let pieces: &'static AtomicU64 = Box::leak(Box::default());
    for &core in cores {
        std::thread::spawn(move || {
            // Where a core is not to be had, it works on another one.
            let _ = pin_current_thread(core);
            let mut number = 1;
            loop {
                number = black_box(run(number, ROUNDS));
                // Relaxed: a count.
                pieces.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        line?;
        let nanos = start.elapsed().as_nanos();
        writeln!(answers, "{nanos} {}", pieces.load(Ordering::Relaxed))?;
        answers.flush()?;
    }
    Ok(())
}
