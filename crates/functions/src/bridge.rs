//! A learning bridge between any number of ports: it learns behind which port each station is from the frames that
//! the station sends, sends frames for it there, and frames for unknown stations out of every other port (IEEE 802.1D,
//! 7.7 to 7.9; of 802.1Q, that each VLAN learns separately).
//!
//! It reads link headers and no more. A port is a device.

pub mod frame;
pub mod membership;
mod registration;
mod settings;

pub use frame::{Ends, Station};
pub use membership::Membership;
pub use registration::BRIDGE;

use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::{Counter, DeviceId, DropReason};
use rheostat_run::Metrics;
use rheostat_state::object::{Distributed, Hashed};
use rheostat_state::txn::{Objects, Txn};

use crate::ageing_map::{AgeingMap, Entry};
use rheostat_nf::Cx;
use rheostat_nf::DeviceSet;
use rheostat_nf::Packet;
use rheostat_nf::Reading;
use rheostat_nf::{Ahead, NetworkFunction};
use rheostat_nf::{FunctionSpec, General, Outcome, Prefetch, Steady, Verdict};

/// The settings of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Its ports, and the VLANs each carries.
    pub membership: Membership,
    /// Stations it remembers at most. Frames for others are flooded.
    pub stations: usize,
    /// How long a station is remembered that sends nothing.
    pub ageing: Duration,
    /// A station that sends all the time is refreshed this often; so much earlier it may be forgotten. Zero: with each
    /// frame.
    pub refresh: Duration,
}

impl BridgeConfig {
    /// As 802.1D has it by default (table 7-5: 300 s), refreshed every 10 s: the paper relaxes it to 1 s (NFOS, 5.4), but
    /// of a million stations each sends less than once a second, so that nearly every frame would refresh its sender.
    pub fn new(ports: DeviceSet) -> BridgeConfig {
        BridgeConfig {
            membership: Membership::new(ports),
            stations: 8_192,
            ageing: Duration::from_secs(300),
            refresh: Duration::from_secs(10),
        }
    }
}

/// The bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    membership: Membership,
    stations: AgeingMap<Place>,
    counts: Distributed<Counts>,
}

/// Where a station is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Place {
    station: Station,
    port: u16,
}

impl Entry for Place {
    type Key = Station;

    fn key(&self) -> Station {
        self.station
    }
}

/// What the bridge counts for the summary. Nothing is decided by it.
#[derive(Clone, Copy, Debug, Default, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Counts {
    /// Stations learned, and seen on another port than before.
    learned: u64,
    moved: u64,
    /// Frames of stations for which there was no room.
    unlearned: u64,
    /// Frames flooded, those for groups included.
    flooded: u64,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.learned += other.learned;
        self.moved += other.moved;
        self.unlearned += other.unlearned;
        self.flooded += other.flooded;
    }
}

impl Bridge {
    /// A bridge with these settings.
    pub fn new(config: BridgeConfig, objects: &Objects) -> Bridge {
        let BridgeConfig { membership, stations, ageing, refresh } = config;
        let stations = AgeingMap::new(objects, "bridge stations", stations, ageing, refresh);
        stations.set_by(objects, "function.bridge", "stations", "refresh");
        let (zero, merge) = (Counts::default(), Counts::merge);
        let counts = Distributed::new(objects, "bridge counts", zero, merge, Duration::ZERO);
        Bridge { membership, stations, counts }
    }

    /// A bridge with these settings that takes the place of `running`, with all that this has learned, and its room for stations.
    pub fn next(config: BridgeConfig, running: &Bridge) -> Bridge {
        let Bridge { stations, counts, .. } = running.clone();
        let stations = stations.ageing_by(config.ageing, config.refresh);
        Bridge { membership: config.membership, stations, counts }
    }

    /// Notes that `station` is behind `port`.
    fn learn(&self, cx: &mut Cx<'_, ()>, station: Station, port: DeviceId) -> Outcome<()> {
        if !station.can_send() {
            return Ok(());
        }
        let place = Place { station, port: u16::from(port.0) };
        match self.stations.get(cx, &station)? {
            Some((lease, known)) if known == place => self.stations.refresh(cx, lease),
            Some((lease, _)) => {
                self.stations.replace(cx, lease, place)?;
                self.counts.update(cx, |counts| counts.moved += 1)
            }
            None => match self.stations.enter(cx, place)? {
                Ok(()) => self.counts.update(cx, |counts| counts.learned += 1),
                Err(_) => self.counts.update(cx, |counts| counts.unlearned += 1),
            },
        }
    }

    /// The port behind which a station was last seen.
    fn port_of(&self, cx: &mut Cx<'_, ()>, station: Station) -> Outcome<Option<DeviceId>> {
        if station.is_group() {
            return Ok(None);
        }
        let known = self.stations.get(cx, &station)?;
        Ok(known.map(|(_, place)| DeviceId(place.port as u8)))
    }
}

/// Frames between two stations that the bridge knows, of which the one that sends was refreshed a moment ago.
impl Reading for &Bridge {
    type Clue = Between;

    #[inline(always)]
    fn clue(&self, packet: &Packet<'_>) -> Option<Between> {
        let Ends { from, to } = Ends::of(packet.data(), packet.mbuf().link())?;
        let port = packet.device();
        let is_plain =
            from.can_send() && !to.is_group() && self.membership.of(from.vlan).contains(port);
        is_plain.then(|| Between {
            from: self.stations.hashed(from),
            to: self.stations.hashed(to),
            port,
        })
    }

    #[inline(always)]
    fn prefetch(&self, Between { from, to, .. }: &Between, what: Ahead) {
        self.stations.prefetch_hashed(from, what);
        self.stations.prefetch_hashed(to, what);
    }

    #[inline(always)]
    fn decide(&self, txn: &mut Txn, clue: &Between) -> Outcome<Option<DeviceId>> {
        let Some((place, true)) = self.stations.get_fresh(txn, &clue.from)? else {
            return Ok(None);
        };
        let is_known = place == Place { station: *clue.from.key(), port: clue.port.0.into() };
        let Some((Place { port, .. }, _)) = self.stations.get_fresh(txn, &clue.to)? else {
            return Ok(None);
        };
        Ok((is_known && port != u16::from(clue.port.0)).then_some(DeviceId(port as u8)))
    }
}

/// Between which stations a frame goes, and from which port it came.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    from: Hashed<Station>,
    to: Hashed<Station>,
    port: DeviceId,
}

impl NetworkFunction for Bridge {
    type Flow = ();
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::without_flows()
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        self.non_flow(cx, packet)
    }

    #[inline(always)]
    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<()> {
        General(self)
    }

    #[inline]
    fn prefetch(&self, stage: Prefetch<'_, Bridge>) {
        if let Prefetch::Packet(packet, ahead) = stage
            && let Some(Ends { from, to }) = Ends::of(packet.data(), packet.mbuf().link())
        {
            self.stations.prefetch(&from, ahead);
            self.stations.prefetch(&to, ahead);
        }
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let Some(Ends { from, to }) = Ends::of(packet.data(), packet.mbuf().link()) else {
            return Ok(Verdict::Drop(DropReason::NoRoute));
        };
        let (port, members) = (packet.device(), self.membership.of(from.vlan));
        if !members.contains(port) {
            return Ok(Verdict::Drop(DropReason::NotOurs));
        }
        self.learn(cx, from, port)?;
        if to.is_reserved() {
            return Ok(Verdict::Drop(DropReason::NotRouted));
        }
        match self.port_of(cx, to)? {
            Some(known) if known == port => Ok(Verdict::Drop(DropReason::SamePort)),
            Some(known) => Ok(Verdict::Send(known)),
            None => {
                self.counts.update(cx, |counts| counts.flooded += 1)?;
                Ok(Verdict::Flood(members.without(port)))
            }
        }
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.stations.reclaim(cx)
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        let counts = self.counts.total();
        for (name, count) in [
            ("bridge_learned", counts.learned),
            ("bridge_moved", counts.moved),
            ("bridge_unlearned", counts.unlearned),
            ("bridge_flooded", counts.flooded),
        ] {
            metrics.add(name, count);
        }
    }
}
