//! Workers that share lanes as Metronome decides: any number of them, any number of lanes, and modes that change under
//! traffic.
//!
//! Timed: threads, sleep, clock.

use std::time::{Duration, Instant};

use rheostat_base::{Clock, DeviceId, Time};
use rheostat_io::{Arrival, Device, NullSink, Pacing, SimConfig, SimNic, Source};
use rheostat_run::poll::StepSleep;
use rheostat_run::poll::metronome::{Binding, Goal, MetronomeSettings, Mode, ModeRules, Timeouts};
use rheostat_run::{LaneSample, Polling, Runtime, RuntimeConfig, Sample};
use rheostat_testkit::datagrams::Datagrams;
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::{note_order, per_packet};

const SHARDS: usize = 64;
const FLOWS: u16 = 256;
/// How long to wait for what takes milliseconds where nothing else keeps the workers from their cores.
const LIMIT: Duration = Duration::from_secs(120);

/// Bursts of datagrams with a pause after each.
struct Bursts(Datagrams, u64);

impl Bursts {
    const LENGTH: u64 = 20;
    const PAUSE: Duration = Duration::from_millis(5);
}

impl Source for Bursts {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let arrival = self.0.next(frame)?;
        let time = Time::ZERO + Bursts::PAUSE * (self.1 / Bursts::LENGTH) as u32;
        self.1 += 1;
        Some(Arrival { time, ..arrival })
    }
}

/// A run of `lanes` lanes and `workers` workers over a device that brings what `source` gives, and sends everything on.
fn start(
    settings: MetronomeSettings,
    crew: (usize, usize),
    source: impl Source + 'static,
    pacing: Pacing,
) -> Runtime {
    start_polling(settings.polling(), crew, source, pacing)
}

fn start_polling(
    polling: Polling,
    (workers, lanes): (usize, usize),
    source: impl Source + 'static,
    pacing: Pacing,
) -> Runtime {
    let pool = pool(4_096);
    let config = RuntimeConfig {
        polling,
        workers: vec![None; workers],
        ..config(lanes, SHARDS, pool.clone())
    };
    let mut nic = SimConfig::new("nic", lanes as u16, config.steering.clone());
    nic.pacing = pacing;
    let nic = SimNic::open(nic, Box::new(source), |_| Box::new(NullSink), &pool).unwrap();
    let device: Box<dyn Device> = Box::new(nic);
    let service = |_| {
        per_packet(|packet, info, shards, out| {
            note_order(&packet, info, shards, out);
            out.send(DeviceId(0), packet);
        })
    };
    let shards = shards(SHARDS, usize::from(FLOWS), ());
    Runtime::start(config, vec![device], Clock::new(), service, shards).unwrap()
}

fn wait(until: impl Fn() -> bool, what: &str) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a run, which must be sound and have lost nothing.
fn end(runtime: Runtime) -> Sample {
    let report = runtime.join().unwrap();
    assert_eq!(report.violations, []);
    let sum = LaneSample::sum(&report.last.lanes);
    assert_eq!((sum.sent, sum.dropped_total(), sum.reordered), (sum.received, 0, 0));
    report.last
}

#[test]
fn any_number_of_workers_runs_any_number_of_lanes() {
    const COUNT: u64 = 20_000;
    let random = MetronomeSettings::default();
    let bound = MetronomeSettings { binding: Binding::Static, ..random };
    let equal = MetronomeSettings { timeouts: Timeouts::Equal, ..random };
    let runs = [
        (random, (1, 1)),
        (random, (1, 3)),
        (random, (2, 3)),
        (random, (5, 2)),
        (random, (2, SHARDS)),
        (bound, (2, 2)),
        (bound, (5, 2)),
        (bound, (2, 5)),
        (equal, (3, 2)),
    ];
    for (settings, (workers, lanes)) in runs {
        let source = Datagrams::new(FLOWS, COUNT);
        let runtime = start(settings, (workers, lanes), source, Pacing::Lossless);
        wait(|| runtime.is_finished(), "packets do not come through");
        let Sample { lanes: samples, polling, .. } = end(runtime);
        assert_eq!(LaneSample::sum(&samples).received, COUNT, "{workers} workers, {lanes} lanes");
        assert_eq!((polling.policy, polling.lanes.len()), ("metronome", lanes));
        // A try is one of a lane and one of a worker, and so is one that was lost.
        let of_lanes = polling.lanes.iter().map(|lane| (lane.tries, lane.lost));
        let of_workers = polling.workers.iter().map(|worker| (worker.tries, worker.lost));
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        assert_eq!(of_lanes.reduce(sum), of_workers.reduce(sum));
    }
}

#[test]
fn a_change_of_mode_loses_and_reorders_nothing() {
    let rules = ModeRules { idle_after: Some(Duration::from_millis(1)), ..ModeRules::default() };
    let settings = MetronomeSettings { rules, ..MetronomeSettings::default() };
    for (workers, lanes) in [(1, 2), (3, 2)] {
        let source = Bursts(Datagrams::endless(FLOWS), 0);
        let pacing = Pacing::OpenLoop { origin: None };
        let runtime = start(settings, (workers, lanes), source, pacing);
        let polling = || runtime.view().sample().polling;
        let blocks = || polling().workers.iter().map(|worker| worker.blocks).sum::<u64>();
        let received = || LaneSample::sum(&runtime.view().sample().lanes).received;
        let spent = |mode: Mode| {
            let of_lane = |lane: &rheostat_run::LanePolling| lane.spent[mode as usize];
            polling().lanes.iter().map(of_lane).min().unwrap_or_default()
        };
        wait(
            || {
                blocks() > 20
                    && received() > 50 * Bursts::LENGTH
                    && spent(Mode::Interrupt) > Duration::ZERO
                    && spent(Mode::Metronome) > Duration::ZERO
            },
            "lanes do not change their modes",
        );
        end(runtime);
    }
}

#[test]
fn workers_without_exact_sleeps_say_so_once_and_lose_nothing() {
    const COUNT: u64 = 2_000;
    let policies =
        [MetronomeSettings::default().polling(), StepSleep::polling(Duration::from_micros(20))];
    for polling in policies {
        let workers = 2;
        // The filter is the thread's, and that of workers which it starts.
        let run = std::thread::spawn(move || {
            rheostat_kernel::refuse_timer_slack();
            let source = Datagrams::new(FLOWS, COUNT);
            let runtime = start_polling(polling, (workers, 2), source, Pacing::Lossless);
            // A warning is there once a worker has slept.
            let told = || !runtime.view().sample().polling.warnings.is_empty();
            wait(|| runtime.is_finished() && told(), "packets or warnings do not come");
            end(runtime)
        });
        let Sample { lanes, polling: seen, .. } = run.join().unwrap();
        assert_eq!(LaneSample::sum(&lanes).received, COUNT);
        // Another one may say that the target is too short for such sleeps.
        let told = "the kernel refused a timer slack of 1 ns (not permitted)";
        let times = seen.warnings.iter().filter(|warning| warning.contains(told)).count();
        assert_eq!(times, 1, "{:?}", seen.warnings);
    }
}

#[test]
fn a_target_below_what_the_machine_can_is_told_and_met_by_spinning() {
    const COUNT: u64 = 20_000;
    let goal = Goal::Vacation(Duration::from_nanos(100));
    for (workers, lanes) in [(1, 1), (2, SHARDS)] {
        let settings = MetronomeSettings { goal, ..MetronomeSettings::default() };
        let source = Datagrams::new(FLOWS, COUNT);
        let runtime = start(settings, (workers, lanes), source, Pacing::Lossless);
        wait(|| runtime.is_finished(), "packets do not come through");
        let Sample { lanes: samples, polling, .. } = end(runtime);
        assert_eq!(LaneSample::sum(&samples).received, COUNT);
        let told =
            |warning: &String| warning.contains("0.1 us is shorter than sleeps of this machine");
        assert_eq!(
            polling.warnings.iter().filter(|warning| told(warning)).count(),
            1,
            "{polling:?}"
        );
    }
}
