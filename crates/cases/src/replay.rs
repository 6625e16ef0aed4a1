//! A capture before the chain of a configuration: packet by packet, in virtual time, with the decision about each.

mod effect;

use std::collections::HashMap;
use std::sync::Arc;

use rheostat_base::{DropReason, Time};
use rheostat_control::config::DeviceConfig;
use rheostat_control::{Config, Registry};
use rheostat_nf::registry::{RuleList, Tally};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_steer::{Orientation, Side};
use thiserror::Error;

use crate::chain;
use crate::port::CasePort;
use crate::rig::{Rig, RigLayout};
use crate::script::Script;
use crate::way;

pub use effect::Effect;

/// The longest packet that is replayed, in bytes: longer ones are those that an interface has put together.
pub const LONGEST_PACKET: usize = 16_384;
/// Buffers of a replay: one packet is under way at a time, and fragments are held.
const BUFFERS: u32 = 512;

/// Why a configuration is not replayed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// Its functions do not distinguish an inside and an outside.
    #[error(
        "its devices are ports of a bridge, without an inside and an outside: only chains between two sides are compared"
    )]
    Bridge,
    /// It has other devices than one for both sides, or one for each.
    #[error(
        "it has other devices than one inside and one outside, or one for both: only such configurations are compared"
    )]
    Devices,
    /// It has a service in place of a chain.
    #[error("it has a service over TCP in place of a chain: only chains are compared")]
    Service,
    /// The chain cannot be made.
    #[error("{0}")]
    Chain(String),
}

/// What became of a packet, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketDecision {
    /// What became of it.
    pub effect: Effect,
    /// The rule that decided about it, or about its flow; none where no rule did.
    pub rule: Option<Arc<str>>,
}

/// A chain that packets are put before, on one lane, with network functions alone: neither routes nor neighbours decide.
///
/// Its state follows from the packets so far. A packet takes some microseconds; memory is that of the configured flow tables and
/// one entry of a hundred bytes per flow of the capture.
pub struct Replay {
    rig: Rig,
    /// The sides of the two devices, in the order of the configuration.
    sides: [Side; 2],
    /// The rules of each function that has some.
    rules: Vec<FunctionRules>,
    dropped: [u64; DropReason::COUNT],
    created: u64,
    /// The rules that let flows in, by their keys on both sides.
    admitted: HashMap<FlowKey, Arc<str>>,
    now: Time,
}

struct FunctionRules {
    /// In front of its rules' names, where several functions have rules.
    prefix: String,
    list: Arc<dyn RuleList>,
    hits: Vec<u64>,
}

impl Replay {
    /// A chain without state, as `config` has it.
    ///
    /// # Errors
    /// [`ReplayError`] when it has none between two sides, or it cannot be made.
    pub fn new(registry: &Registry, config: &Config) -> Result<Replay, ReplayError> {
        let sides = sides(config)?;
        let script = Script::default();
        let tested = chain::build(registry, &script, config, 1).map_err(ReplayError::Chain)?;
        let layout = RigLayout {
            orientations: sides.map(|side| match side {
                Side::Inside => Orientation::Inside,
                Side::Outside => Orientation::Outside,
            }),
            buffers: BUFFERS,
            data_room: LONGEST_PACKET as u16,
        };
        let [way, ..] = way::all();
        let rig = Rig::new(&tested, way, None, &layout).map_err(ReplayError::Chain)?;
        let several = tested.rules.len() > 1;
        let rules = tested.rules.into_iter().map(|(function, list)| {
            let prefix = if several { format!("{function}/") } else { String::new() };
            FunctionRules { prefix, hits: hits(&*list).collect(), list }
        });
        Ok(Replay {
            sides,
            rules: rules.collect(),
            dropped: rig.dropped(),
            created: 0,
            admitted: HashMap::new(),
            now: Time::ZERO,
            rig,
        })
    }

    /// Lets an Ethernet frame of [`LONGEST_PACKET`] bytes at most arrive from `side`, and returns what became of it. Its time is
    /// that of the packet before if it is earlier.
    pub fn packet(&mut self, side: Side, frame: &[u8], time: Time) -> PacketDecision {
        // Packets of one time are kept apart.
        self.now = time.max(Time::from_nanos(self.now.as_nanos() + 1));
        let port = self.port(side);
        let sent = self.rig.step(Some((port, frame.to_vec())), self.now);
        let dropped = self.newly_dropped();
        let effect = Effect::of((port, frame), &sent, dropped);
        let sample = self.rig.sample();
        let is_new =
            sample.flows_created != std::mem::replace(&mut self.created, sample.flows_created);
        let flow = flow(frame, side);
        let rule = match is_new || dropped.is_some() || sent.is_empty() {
            true => self.rule_hit(),
            false => None,
        };
        if is_new && let Some(rule) = &rule {
            self.admitted.extend(flow.map(|flow| (flow, rule.clone())));
            // Translated, it has another key beyond the chain.
            let beyond = sent.iter().filter(|(other, _)| *other != port);
            let key = |(_, frame): &(CasePort, Vec<u8>)| self::flow(frame, side);
            self.admitted.extend(beyond.filter_map(key).map(|flow| (flow, rule.clone())));
        }
        let rule = rule.or_else(|| self.admitted.get(&flow?).cloned());
        PacketDecision { effect, rule }
    }

    fn port(&self, side: Side) -> CasePort {
        if self.sides[0] == side { CasePort::Lan } else { CasePort::Wan }
    }

    /// The reason for which the packet was dropped, if it was.
    fn newly_dropped(&mut self) -> Option<DropReason> {
        let before = std::mem::replace(&mut self.dropped, self.rig.dropped());
        DropReason::all().find(|reason| {
            let index = *reason as usize;
            self.dropped[index] > before[index]
        })
    }

    /// The rule that has decided since the last call; the last one where several functions have.
    fn rule_hit(&mut self) -> Option<Arc<str>> {
        let mut hit = None;
        for FunctionRules { prefix, list, hits } in &mut self.rules {
            for (known, used) in hits.iter_mut().zip(list.rules()) {
                let Tally::Counted(count) = used.tally else { continue };
                if std::mem::replace(known, count.hits) != count.hits {
                    hit = Some(format!("{prefix}{}", used.rule.name).into());
                }
            }
        }
        hit
    }
}

fn hits(list: &dyn RuleList) -> impl Iterator<Item = u64> {
    list.rules().into_iter().map(|used| match used.tally {
        Tally::Counted(count) => count.hits,
        Tally::Metric(_) => 0,
    })
}

/// The flow of a frame that comes from `side`, inside first.
pub fn flow(frame: &[u8], side: Side) -> Option<FlowKey> {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).ok()?;
    let key = match Tuple::of_bytes(frame, &headers) {
        Tuple::Flow(key) | Tuple::IcmpError(key) | Tuple::Fragment(key, _) => key,
        Tuple::None => return None,
    };
    Some(if side == Side::Inside { key } else { key.reversed() })
}

/// The sides of the devices of a case, in the order of the configuration.
fn sides(config: &Config) -> Result<[Side; 2], ReplayError> {
    if config.serve.is_some() {
        return Err(ReplayError::Service);
    }
    if config.chain.iter().any(|function| function.facts().without_sides) {
        return Err(ReplayError::Bridge);
    }
    let orientation = |device: &DeviceConfig| device.orientation.clone();
    let orientations: Vec<_> = config.devices.iter().map(orientation).collect();
    match &orientations[..] {
        [Orientation::ByPrefix(_)] | [Orientation::Inside, Orientation::Outside] => {
            Ok([Side::Inside, Side::Outside])
        }
        [Orientation::Outside, Orientation::Inside] => Ok([Side::Outside, Side::Inside]),
        _ => Err(ReplayError::Devices),
    }
}

#[cfg(test)]
mod tests;
