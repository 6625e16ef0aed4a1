//! What the client reaches by itself: the same load on a sink in its own process.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::classes::ClassMix;
use crate::error::LoadError;
use crate::protocol::Protocol;
use crate::session::{LoadPlan, RunPlan, Session};
use crate::sink::Sink;
use crate::spread::Spread;

/// Connections to the sink at most.
const CONNECTIONS: usize = 64;
/// Bytes of its requests at most.
const SIZE: u32 = 16 << 10;
/// A part of the requests that may be missing.
pub(crate) const MISSING: f64 = 0.01;

/// The least that the client would measure of any server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Requests a second that it sent.
    pub offered: f64,
    /// Nanoseconds that half of them did not exceed.
    pub p50: u64,
    /// That 99.9 % of them did not exceed.
    pub p999: u64,
}

/// Measures the client for a second with the load of a plan.
///
/// # Errors
/// [`LoadError::Floor`] when it cannot offer the rate, another when there is no sink, as in a namespace without a loopback.
pub fn self_check(
    plan: &LoadPlan,
    run: &RunPlan,
    size: u32,
    stop: &AtomicBool,
) -> Result<Floor, LoadError> {
    let none = |source| LoadError::Socket { task: "start a sink in this process", source };
    let sink = Sink::start().map_err(none)?;
    let none =
        |error: crate::protocol::ProtocolError| none(std::io::Error::other(error.to_string()));
    let size = size.clamp(8, SIZE);
    let protocol =
        Protocol::new("echo", size, &ClassMix::default(), sink.address()).map_err(none)?;
    let plan = LoadPlan {
        server: sink.address(),
        protocol,
        connections: plan.connections.min(CONNECTIONS),
        outstanding: 1_024,
        spread: Spread::Random,
        hash: None,
        ..plan.clone()
    };
    let run = RunPlan {
        duration: Duration::from_millis(1_250),
        warm_up: Duration::from_millis(250),
        mix: ClassMix::default(),
        ..run.clone()
    };
    let asked = run.rate;
    let result = Session::open(plan)?.run(&run, stop);
    let offered = result.sent.sent as f64 / result.ledger.window().seconds().max(1e-9);
    let latency = result.ledger.latency();
    let (p50, p999) = (latency.quantile(0.5).unwrap_or(0), latency.quantile(0.999).unwrap_or(0));
    // Few requests a second come in clumps: those that were due count, not those that were asked for.
    let due = result.sent.due.max(1) as f64;
    match result.sent.not_sent as f64 / due > MISSING && !result.is_early {
        true => Err(LoadError::Floor { asked, offered }),
        false => Ok(Floor { offered, p50, p999 }),
    }
}
