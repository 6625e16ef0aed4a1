//! The control of a row on several lanes: as many processes of one lane each, at the same time, beside it.
//!
//! A process has the packets, and so the flows, of one of the lanes, and its core. What lanes of one process lose against
//! processes is what they share there: memory, lines, locks. What both lose against a lane by itself is the machine's:
//! processors that are threads of one core share it either way.
//!
//! The row runs in a process of its own, too. Short windows of it and of the control are taken in turn, each of the two being
//! stopped while the other is measured, so that both meet the same moments of a machine whose speed changes. Processes
//! are started anew some times, since where their memory comes to lie makes a difference of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::measurement::{Effort, Figure, MeasurementWindow, of_windows};
use super::requests::{READY, Requested};
use super::row::Ratio;
use super::{Measuring, Part, Spec};
use crate::confidence::Median;
use crate::error::MeasureError;

/// How often processes are started. As many windows of the row, and of its control, are taken in each start as other rows have in
/// all.
const STARTS: usize = 5;
/// Of what part of other rows' windows these windows are.
const PART: u32 = 4;
/// From when a process goes on to its window: its caches are those of the other side by then.
const SETTLE: Duration = Duration::from_millis(20);

/// Runs rows on several lanes beside as many processes.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The command `rheo` that runs as these processes.
    pub rheo: PathBuf,
}

/// What a row came to beside its control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// Of the processes, their rates added.
    pub(super) control: Figure,
    /// The row's rate by that of the processes.
    pub(super) ratio: Ratio,
}

/// What one of some groups of processes came to that were measured in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessSide {
    pub(super) figure: Figure,
    /// Its rate by that of the first group.
    pub(super) ratio: Ratio,
}

/// Windows of a group, so far.
#[derive(Default)]
struct Taken {
    /// A median for each start.
    ratios: Vec<f64>,
    windows: Vec<MeasurementWindow>,
    allocations: u64,
    packets: u64,
}

impl Processes {
    /// Measures a row on several lanes, and its control.
    ///
    /// # Errors
    /// [`MeasureError`] when a process cannot be started, or its run was not sound.
    pub(super) fn measure(&self, spec: &Spec, effort: &Effort) -> Result<Beside, MeasureError> {
        let of = spec.lanes;
        let alone = (0..of).map(|lane| Spec { lanes: 1, part: Some(Part { lane, of }), ..*spec });
        let sides = self.in_turn([alone.collect(), vec![*spec]], effort)?;
        let [control, lanes] = sides;
        Ok(Beside { control: control.figure, ratio: lanes.ratio })
    }

    /// Measures a row with lanes that measure classes of traffic, beside lanes that do not, each by name.
    ///
    /// # Errors
    /// As [`Processes::measure`].
    pub(super) fn measured(
        &self,
        spec: &Spec,
        effort: &Effort,
    ) -> Result<Vec<(&'static str, ProcessSide)>, MeasureError> {
        let [nothing, objectives, classes, heavy] =
            Measuring::ALL.map(|measuring| vec![spec.measuring(measuring)]);
        let groups = [nothing.clone(), nothing, objectives, classes, heavy];
        let sides = self.in_turn(groups, effort)?;
        let names = Measuring::ALL.map(Measuring::name);
        Ok(["again"]
            .into_iter()
            .chain(names.into_iter().skip(1))
            .zip(sides.into_iter().skip(1))
            .collect())
    }

    /// Measures groups of processes in turn. The processes of a group run at the same time.
    fn in_turn<const N: usize>(
        &self,
        groups: [Vec<Spec>; N],
        effort: &Effort,
    ) -> Result<[ProcessSide; N], MeasureError> {
        let effort = Effort { window: effort.window / PART, ..*effort };
        let mut taken = [(); N].map(|()| Taken::default());
        for _ in 0..STARTS {
            self.start(&groups, &effort, &mut taken)?;
        }
        Ok(taken.map(|taken| taken.side(STARTS * effort.windows)))
    }

    /// Starts the processes, and takes their windows.
    fn start(
        &self,
        groups: &[Vec<Spec>],
        effort: &Effort,
        taken: &mut [Taken],
    ) -> Result<(), MeasureError> {
        let started = groups.iter().map(|specs| Group::start(&self.rheo, specs, effort));
        let mut started = started.collect::<Result<Vec<_>, _>>()?;
        let mut ratios = vec![Vec::new(); started.len()];
        for round in 0..effort.windows {
            let mut windows = vec![None; started.len()];
            // None is always the first.
            for place in 0..started.len() {
                let place = (place + round) % started.len();
                windows[place] = Some(started[place].window()?);
            }
            let windows: Vec<Requested> = windows.into_iter().flatten().collect();
            for ((ratios, taken), window) in ratios.iter_mut().zip(&mut *taken).zip(&windows) {
                ratios.push(window.mpps / windows[0].mpps);
                taken.add(window);
            }
        }
        started.into_iter().try_for_each(Group::end)?;
        for (taken, ratios) in taken.iter_mut().zip(ratios) {
            taken.ratios.push(Median::of(ratios).value);
        }
        Ok(())
    }
}

impl Taken {
    fn add(&mut self, window: &Requested) {
        let Requested { mpps, seconds, speed, switches, .. } = *window;
        self.windows.push(MeasurementWindow { mpps, seconds, speed, switches });
        self.allocations += window.allocations;
        self.packets += window.packets;
    }

    fn side(self, wanted: usize) -> ProcessSide {
        let Taken { mut ratios, windows, allocations, packets } = self;
        let allocations_per_packet = allocations as f64 / packets.max(1) as f64;
        let figure = Figure { allocations_per_packet, ..of_windows(windows, wanted) };
        ratios.sort_by(f64::total_cmp);
        let [low, median, high] = [0, STARTS / 2, STARTS - 1].map(|rank| ratios[rank]);
        ProcessSide { figure, ratio: Ratio { median, low, high } }
    }
}

/// Processes that run at the same time.
struct Group(Vec<Process>);

impl Group {
    /// Starts a process for each row, and stops them all once the flows of all are open.
    fn start(rheo: &Path, specs: &[Spec], effort: &Effort) -> Result<Group, MeasureError> {
        let started = specs.iter().map(|spec| Process::start(rheo, spec, effort));
        let mut group = Group(started.collect::<Result<_, _>>()?);
        group.each(|process| match process.line()?.trim() {
            READY => Ok(()),
            other => Err(process.failed(format!("it should be ready, and says `{other}`"))),
        })?;
        group.each(|process| process.signal(Signal::STOP))?;
        Ok(group)
    }

    /// A window of all of them, while nothing else of the benchmark runs.
    fn window(&mut self) -> Result<Requested, MeasureError> {
        self.each(|process| process.signal(Signal::CONT))?;
        thread::sleep(SETTLE);
        self.each(Process::request)?;
        let windows = self.each(Process::window)?;
        self.each(|process| process.signal(Signal::STOP))?;
        Ok(added(&windows))
    }

    /// Has all of them end, and check their runs.
    fn end(mut self) -> Result<(), MeasureError> {
        self.each(|process| process.signal(Signal::CONT))?;
        // All at once, so that none takes the others' time to end.
        self.each(|process| {
            process.requests = None;
            Ok(())
        })?;
        self.each(Process::end)?;
        Ok(())
    }

    fn each<T>(
        &mut self,
        act: impl FnMut(&mut Process) -> Result<T, MeasureError>,
    ) -> Result<Vec<T>, MeasureError> {
        self.0.iter_mut().map(act).collect()
    }
}

/// Windows taken at the same time as one: at the mean speed of their processors.
fn added(windows: &[Requested]) -> Requested {
    let mean =
        |of: fn(&Requested) -> f64| windows.iter().map(of).sum::<f64>() / windows.len() as f64;
    Requested {
        mpps: windows.iter().map(|window| window.mpps).sum(),
        seconds: mean(|window| window.seconds),
        speed: mean(|window| window.speed),
        switches: windows.iter().map(|window| window.switches).sum(),
        allocations: windows.iter().map(|window| window.allocations).sum(),
        packets: windows.iter().map(|window| window.packets).sum(),
    }
}

/// A process that measures a row when it is requested to.
struct Process {
    command: String,
    child: Child,
    /// `None` once no more windows are requested.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(rheo: &Path, spec: &Spec, effort: &Effort) -> Result<Process, MeasureError> {
        let mut arguments = spec.arguments();
        let window = format!("{}ns", effort.window.as_nanos());
        arguments.extend(["--requested".into(), "--window".into(), window]);
        let mut command = Command::new(rheo);
        command.args(&arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let requests = child.stdin.take();
        let command = format!("{} {}", rheo.display(), arguments.join(" "));
        Ok(Process { command, child, requests, answers })
    }

    fn signal(&mut self, signal: Signal) -> Result<(), MeasureError> {
        Ok(kill_process(Pid::from_child(&self.child), signal).map_err(std::io::Error::from)?)
    }

    fn request(&mut self) -> Result<(), MeasureError> {
        let sent = self.requests.as_mut().is_some_and(|requests| requests.write_all(b"\n").is_ok());
        if sent { Ok(()) } else { Err(self.failed("it takes no requests".into())) }
    }

    fn window(&mut self) -> Result<Requested, MeasureError> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| self.failed(format!("{error}, in: {line}")))
    }

    /// What it says next.
    fn line(&mut self) -> Result<String, MeasureError> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(length) if length > 0 => Ok(line),
            _ => Err(self.failed("it has ended".into())),
        }
    }

    /// To be called when no more requests come.
    fn end(&mut self) -> Result<(), MeasureError> {
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(self.failed(status.to_string())) }
    }

    /// Ends it, and adds what it has said about why.
    fn failed(&mut self, problem: String) -> MeasureError {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let problem = format!("{problem}\n{}", said.trim());
        MeasureError::Process { command: self.command.clone(), problem: problem.trim().into() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is stopped ends so, too; one that has ended is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    //! Timed: sleep, processes.

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rheostat_traffic::Distribution;

    use super::*;
    use crate::memory::{FrameSize, SourceKind};
    use crate::nf::{ChainKind, SHARDS, Selection};

    fn spec() -> Spec {
        let selection = Selection {
            chains: vec![ChainKind::Firewall],
            flows: vec![1_000],
            distributions: vec![Distribution::Uniform],
            sizes: vec![FrameSize::Smallest],
            sources: vec![SourceKind::Replay],
            new_flow_shares: vec![0.0],
            lanes: vec![3],
            shards: vec![SHARDS],
            seed: 1,
        };
        selection.specs()[0]
    }

    fn effort() -> Effort {
        Effort { windows: 1, window: Duration::from_micros(1_500), ..Effort::default() }
    }

    /// In place of rheo: a script, which has its arguments in `$*`.
    fn instead_of_rheo(folder: &Path, script: &str) -> Processes {
        let rheo = folder.join("rheo");
        fs::write(&rheo, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&rheo, fs::Permissions::from_mode(0o755)).unwrap();
        Processes { rheo }
    }

    /// Answers each request with a rate, which is another one for lanes and for processes.
    const ANSWERS: &str = "case \"$*\" in *--part*) mpps=4 speed=0.5;; *) mpps=9 speed=1;; esac\n\
        echo ready\n\
        while read -r request; do\n\
        echo \"{\\\"mpps\\\":$mpps,\\\"seconds\\\":0.1,\\\"speed\\\":$speed,\\\"switches\\\":0,\\\"allocations\\\":1,\\\"packets\\\":100}\"\n\
        done\n";

    #[test]
    fn rates_of_processes_are_added_and_compared_with_that_of_the_lanes() {
        let folder = tempfile::tempdir().unwrap();
        let log = format!("echo \"$*\" >> {}/log\n", folder.path().display());
        let processes = instead_of_rheo(folder.path(), &(log + ANSWERS));
        let Beside { control, ratio } = processes.measure(&spec(), &effort()).unwrap();
        assert_eq!([ratio.low, ratio.median, ratio.high], [0.75; 3]);
        // Three times 4, at half the speed.
        assert_eq!((control.mpps, control.mpps_at_full_speed), (12.0, 24.0));
        assert_eq!(control.allocations_per_packet, 0.01);
        let log = fs::read_to_string(folder.path().join("log")).unwrap();
        let mut started: Vec<&str> = log.lines().collect();
        started.sort_unstable();
        assert_eq!(started.len(), STARTS * 4);
        started.dedup();
        let words = |lanes| {
            format!(
                "bench nf --chain firewall --flows 1000 --spread uniform --size 64 --source replay --new 0 --lanes {lanes} \
                 --requested --window 375000ns"
            )
        };
        let expected = ["1 --part 0/3", "1 --part 1/3", "1 --part 2/3", "3"].map(words);
        assert_eq!(started, expected);
    }

    #[test]
    fn processes_are_stopped_while_they_are_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        let processes = instead_of_rheo(folder.path(), ANSWERS);
        let mut group = Group::start(&processes.rheo, &[spec()], &effort()).unwrap();
        let pid = group.0[0].child.id();
        let is_stopped = || {
            // A signal takes its time to arrive.
            (0..1_000).any(|_| {
                thread::sleep(Duration::from_millis(1));
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
                status.contains("State:\tT")
            })
        };
        assert!(is_stopped(), "before its first window");
        assert_eq!(group.window().unwrap().mpps, 9.0);
        assert!(is_stopped(), "behind a window");
        group.end().unwrap();
        // One that is dropped without an end does not stay behind.
        let group = Group::start(&processes.rheo, &[spec()], &effort()).unwrap();
        let pid = group.0[0].child.id();
        drop(group);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn lanes_that_measure_classes_are_compared_with_lanes_that_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let rates = ANSWERS.lines().next().unwrap();
        let own = "case \"$*\" in *classes*) mpps=8 speed=1;; *heavy-flows*) mpps=6 speed=1;; \
            *--measured*) mpps=10 speed=1;; esac";
        let processes = instead_of_rheo(folder.path(), &ANSWERS.replace(rates, own));
        let spec = Spec { lanes: 1, ..spec() };
        let sides = processes.measured(&spec, &effort()).unwrap();
        let found: Vec<_> = sides.iter().map(|(name, side)| (*name, side.ratio.median)).collect();
        let expected =
            [("again", 1.0), ("objectives", 1.0), ("classes", 0.8), ("heavy-flows", 0.6)];
        assert_eq!(found, expected);
        assert_eq!(sides[2].1.figure.mpps, 8.0);
    }

    #[test]
    fn a_process_that_fails_gives_no_figure_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let unsound = format!("{ANSWERS}echo 'broken invariant' >&2; exit 3");
        for (script, problem) in [
            ("echo 'no cores' >&2; exit 1", "it has ended\nno cores"),
            ("echo hello; read -r request", "it should be ready, and says `hello`"),
            ("echo ready; read -r request; echo fast", "expected ident"),
            (&unsound, "exit status: 3\nbroken invariant"),
        ] {
            let processes = instead_of_rheo(folder.path(), script);
            let error = processes.measure(&spec(), &effort()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(error.contains("rheo bench nf --chain firewall"), "{error}");
        }
    }
}
