//! Measures costs on this machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::{LaneId, QueueId, ShardId};
use rheostat_measure::quantiles::median;
use rheostat_measure::record::{Build, Header};
use rheostat_packet::BURST;
use rheostat_run::Move;

use super::fixture::{BUCKETS, Fixture, Running, SHARDS};
use super::{ChainCosts, Costs, Distribution, SetCosts};
use crate::error::BenchError;
use crate::noise::Noise;
use crate::testbed::Cores;

/// Flows among which packets are looked up.
const SETS: [u32; 5] = [1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
/// How long each kind of poll is measured.
const WINDOW: Duration = Duration::from_millis(300);
/// How long lanes run before that, and how much longer for each flow.
const WARM_UP: Duration = Duration::from_millis(200);
const PER_FLOW: Duration = Duration::from_nanos(1_500);
/// How long each core is listened to.
const LISTENED: Duration = Duration::from_secs(3);
/// Polls whose times are taken together where a poll takes from others as much as it gives them only on average.
const TOGETHER: usize = 64;
/// Rounds of moves, each of half the shards; of fences; of a sleeper that is woken.
const ROUNDS: usize = 60;
const FENCES: usize = 500;
const WAKES: usize = 200;
/// A round of moves that takes longer than this never ends.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The migrator is looked after this often.
const STEP: Duration = Duration::from_micros(50);

/// Measures costs, in some 30 seconds; `say` is called with what comes next.
///
/// # Errors
/// [`BenchError`] when there are not two cores, or a run was not sound.
pub fn measure(build: &Build, mut say: impl FnMut(&str)) -> Result<Costs, BenchError> {
    Cores::available()?.require(2)?;
    let Header { command, commit, profile, machine, started } = Header::new(build);
    let debug = cfg!(debug_assertions);
    let about = format!("measured by rheo {commit} ({profile}) on {machine}, {started}");
    say("pauses of the machine");
    let noise = Noise::measure(LISTENED)?;
    let mut chains = Vec::new();
    for chain in ["firewall", "empty"] {
        let mut sets = Vec::new();
        for flows in SETS {
            say(&format!("{chain}, {flows} flows"));
            let fixture = Fixture { lanes: 1, flows, busy: true, crossed: false };
            sets.push(match chain {
                "firewall" => polls(fixture.firewall()?, flows)?,
                _ => polls(fixture.bounce()?, flows)?,
            });
        }
        chains.push(chain_costs(chain, sets));
    }
    say("packets that change lanes");
    let handoff_ns = handoff()?;
    say("shards that change lanes");
    let (release_ns, install_ns, fence_ns) = moves()?;
    say("workers that sleep");
    let wake_ns = wakes();
    Ok(Costs {
        about,
        command,
        commit,
        profile,
        debug,
        machine,
        started,
        chains,
        handoff_ns,
        release_ns,
        install_ns,
        wake_ns,
        fence_ns,
        noise,
    })
}

/// Times of polls.
struct Polls {
    flows: u32,
    /// That find a single packet.
    single: Vec<f64>,
    /// That find a burst.
    full: Vec<f64>,
}

fn polls(running: Running, flows: u32) -> Result<Polls, BenchError> {
    thread::sleep(WARM_UP + PER_FLOW * flows);
    let full = running.meters[0].measure(BURST, WINDOW);
    let single = running.meters[0].measure(1, WINDOW);
    running.stop()?;
    Ok(Polls { flows, single, full })
}

/// What a poll costs however many packets it finds is told by the smallest set: a single packet's time less its part of
/// a burst's growth. What is left of a burst belongs to its packets.
fn chain_costs(chain: &str, polls: Vec<Polls>) -> ChainCosts {
    let burst = BURST as f64;
    let (single, full) =
        (median(polls[0].single.iter().copied()), median(polls[0].full.iter().copied()));
    let poll_ns = (single - (full - single) / (burst - 1.0)).max(0.0);
    let set = |polls: Polls| SetCosts {
        flows: polls.flows,
        packet_ns: Distribution::of(&per(&polls.full, |time| (time - poll_ns).max(0.0), burst)),
        single_ns: Distribution::of(&per(&polls.single, |time| time, 1.0)),
    };
    ChainCosts { chain: chain.to_owned(), poll_ns, sets: polls.into_iter().map(set).collect() }
}

fn per(times: &[f64], of: impl Fn(f64) -> f64, packets: f64) -> Vec<(f64, f64)> {
    times.iter().map(|time| (of(*time), packets)).collect()
}

/// What packets cost more if every one arrives at a lane that it does not belong to: then each lane hands over as
/// many as it takes.
fn handoff() -> Result<Distribution, BenchError> {
    let measure = |crossed| {
        let fixture = Fixture { lanes: 2, flows: 1 << 14, busy: true, crossed };
        let running = fixture.bounce()?;
        thread::sleep(WARM_UP);
        running.meters.iter().for_each(|meter| meter.start(BURST));
        thread::sleep(WINDOW);
        let times: Vec<f64> = running.meters.iter().flat_map(|meter| meter.stop()).collect();
        running.stop()?;
        Ok::<_, BenchError>(times)
    };
    let at_home = median(measure(false)?);
    let crossed = measure(true)?;
    let together = |times: &[f64]| {
        let more = times.iter().map(|time| time - at_home).sum::<f64>().max(0.0);
        (more, (times.len() * BURST) as f64)
    };
    Ok(Distribution::of(&crossed.chunks(TOGETHER).map(together).collect::<Vec<_>>()))
}

/// What it costs to give a shard away and to take it in, and how long a table takes to be in force.
fn moves() -> Result<(Distribution, Distribution, Distribution), BenchError> {
    let running = Fixture { lanes: 2, flows: 1 << 10, busy: false, crossed: false }.firewall()?;
    thread::sleep(WARM_UP);
    let idle: Vec<f64> =
        running.meters.iter().map(|meter| median(meter.measure(0, WARM_UP))).collect();
    let (mut releases, mut installs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (from, to) = (round % 2, 1 - round % 2);
        let owners = running.runtime.migrator().owners().to_vec();
        let shards = (0..).map(ShardId).zip(owners);
        let there = shards.filter(|(_, owner)| owner.index() == from).take(SHARDS / 2);
        let shift = |(shard, from)| Move { shard, from, to: LaneId(to as u16) };
        let moves: Vec<Move> = there.map(shift).collect();
        running.meters.iter().for_each(|meter| meter.start(0));
        running.runtime.migrate(&moves).expect("a plan with the present owners");
        let last = Instant::now() + TIMEOUT;
        while !running.runtime.migrator().is_idle() {
            if Instant::now() > last {
                let (done, asked) = (running.runtime.migrator().moved(), moves.len() as u64);
                return Err(BenchError::Slow { done, asked, limit: TIMEOUT });
            }
            running.runtime.step_migrator();
            thread::sleep(STEP);
        }
        for (lane, meter) in running.meters.iter().enumerate() {
            // Polls in which something was done beside looking round.
            let more = meter.stop().into_iter().map(|time| time - idle[lane]);
            let work = more.filter(|more| (2.0 * idle[lane]..20_000.0).contains(more));
            let side = if lane == from { &mut releases } else { &mut installs };
            side.push((work.sum::<f64>(), moves.len() as f64));
        }
    }
    let fences: Vec<(f64, f64)> = (0..FENCES).map(|round| (fence(&running, round), 1.0)).collect();
    running.stop()?;
    Ok((Distribution::of(&releases), Distribution::of(&installs), Distribution::of(&fences)))
}

/// Nanoseconds from the rewriting of the table until no packet is placed by the old one.
fn fence(running: &Running, round: usize) -> f64 {
    let owners = running.runtime.migrator().owners().to_vec();
    // The same lanes' queues: nothing is led astray.
    let entries: Vec<QueueId> = (0..BUCKETS).map(|b| QueueId(owners[b % SHARDS].0)).collect();
    // Not in step with the lanes' polls.
    thread::sleep(Duration::from_micros(50 + round as u64 % 7));
    let start = Instant::now();
    let fence = running.table.rewrite(&entries).expect("one entry per bucket");
    while !fence.passed() {
        std::hint::spin_loop();
    }
    start.elapsed().as_nanos() as f64
}

/// How long a sleeping thread takes to run once it is called.
pub(crate) fn wakes() -> Distribution {
    let (called, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (sender, receiver) = std::sync::mpsc::channel();
    let times = thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                thread::park();
                if called.swap(false, Ordering::AcqRel) && sender.send(Instant::now()).is_err() {
                    return;
                }
            }
        });
        let times: Vec<(f64, f64)> = (0..WAKES)
            .filter_map(|_| {
                thread::sleep(Duration::from_millis(1));
                let start = Instant::now();
                called.store(true, Ordering::Release);
                sleeper.thread().unpark();
                let woken = receiver.recv().ok()?;
                Some((woken.saturating_duration_since(start).as_nanos() as f64, 1.0))
            })
            .collect();
        over.store(true, Ordering::Release);
        sleeper.thread().unpark();
        times
    });
    Distribution::of(&times)
}
