//! A detector of port scans: it watches what comes of the first connection of each host to each other host, and takes
//! those for scanners whose attempts fail too often. Their further connections are counted, or dropped.
//!
//! The test is a threshold random walk ([`walk`]). A connection is a flow, until it is known what came of it; hosts,
//! and whom they have tried, are shared by all lanes.

pub mod host;
pub mod walk;

pub use host::{Host, Pair, Width};
pub use walk::{Contact, Likelihoods, Walk, WalkError};

use std::time::Duration;

use bytemuck::{AnyBitPattern, NoUninit};
use rheostat_base::DropReason;
use rheostat_packet::FlowKey;
use rheostat_packet::wire::tcp::TcpFlags;
use rheostat_run::Metrics;
use rheostat_state::object::Distributed;
use rheostat_state::txn::Objects;
use rheostat_steer::{PacketSet, Protocols, Side};

use super::ageing_map::{AgeingMap, Entry};
use crate::cx::Cx;
use crate::function::{NetworkFunction, ShardInfo};
use crate::packet::Packet;
use crate::verdict::{Admission, Ending, Outcome, Verdict};

/// The settings of the detector.
#[derive(Clone, Debug, PartialEq)]
pub struct PortscanConfig {
    /// The side whose hosts are watched. Without it, those of both are.
    pub from: Option<Side>,
    /// How many leading bits of an address make a host.
    pub width: Width,
    /// Where hosts stand after which contacts.
    pub walk: Walk,
    /// How long an answer is waited for.
    pub patience: Duration,
    /// Hosts that are remembered at most.
    pub hosts: usize,
    /// Pairs of a host and one that it has tried, that are remembered at most.
    pub pairs: usize,
    /// How long a host is remembered that tries nobody new, and a pair that does not meet again.
    pub memory: Duration,
    /// How often it is noted that they do, at most; so much earlier they may be forgotten.
    pub refresh: Duration,
    /// What becomes of connections that scanners open.
    pub action: Action,
}

impl Default for PortscanConfig {
    /// Both sides, the walk of the paper, five seconds for an answer, and half an hour of memory.
    fn default() -> PortscanConfig {
        PortscanConfig {
            from: None,
            width: Width::default(),
            walk: Walk::default(),
            patience: Duration::from_secs(5),
            hosts: 64_000,
            pairs: 256_000,
            memory: Duration::from_secs(30 * 60),
            refresh: Duration::from_secs(1),
            action: Action::default(),
        }
    }
}

/// What becomes of connections that scanners open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// They are counted, and pass.
    #[default]
    Count,
    /// They are dropped.
    Drop,
}

/// The detector.
#[derive(Debug)]
pub struct Portscan {
    config: PortscanConfig,
    hosts: AgeingMap<Standing>,
    pairs: AgeingMap<Met>,
    tally: Distributed<Tally>,
}

/// Where a host stands.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Standing {
    host: Host,
    at: i32,
    /// Whether it has been found to scan: once and for all, until it is forgotten. Not zero, if so.
    scans: u32,
}

impl Entry for Standing {
    type Key = Host;

    fn key(&self) -> Host {
        self.host
    }
}

/// That a host has tried another.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Met(Pair);

impl Entry for Met {
    type Key = Pair;

    fn key(&self) -> Pair {
        self.0
    }
}

/// A first contact of which it is not known yet what will come.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    opened_forward: bool,
    is_decided: bool,
}

/// What the detector counts for the summary. Nothing is decided by it.
#[derive(Clone, Copy, Debug, Default, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Tally {
    /// First contacts, and what came of them.
    contacts: u64,
    succeeded: u64,
    failed: u64,
    /// Hosts found to scan, the connections they opened from then on, and those of them that were dropped.
    scanners: u64,
    scanned: u64,
    dropped: u64,
    /// Hosts and pairs for which there was no room.
    unwatched: u64,
}

impl Tally {
    fn merge(&mut self, other: &Tally) {
        self.contacts += other.contacts;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.scanners += other.scanners;
        self.scanned += other.scanned;
        self.dropped += other.dropped;
        self.unwatched += other.unwatched;
    }
}

impl Portscan {
    /// A detector with these settings.
    pub fn new(config: PortscanConfig, objects: &Objects) -> Portscan {
        let PortscanConfig { memory, refresh, .. } = config;
        let hosts = AgeingMap::new(objects, "portscan hosts", config.hosts, memory, refresh);
        hosts.set_by(objects, "function.portscan", "hosts", "refresh");
        let pairs = AgeingMap::new(objects, "portscan pairs", config.pairs, memory, refresh);
        pairs.set_by(objects, "function.portscan", "pairs", "refresh");
        let (zero, merge) = (Tally::default(), Tally::merge);
        let tally = Distributed::new(objects, "portscan tally", zero, merge, Duration::ZERO);
        Portscan { config, hosts, pairs, tally }
    }

    /// Whether a packet opens a connection of a host that is watched.
    fn is_watched(&self, packet: &Packet<'_>) -> bool {
        let opens = |tcp: rheostat_packet::wire::TcpSegment<'_>| {
            tcp.flags().0 & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST) == TcpFlags::SYN
        };
        self.config.from.is_none_or(|side| side == packet.side()) && packet.tcp().is_some_and(opens)
    }

    /// Whether a host has been found to scan; if so, it is not forgotten while it goes on.
    fn scans(&self, cx: &mut Cx<'_, ()>, host: Host) -> Outcome<bool> {
        match self.hosts.get(cx, &host)? {
            Some((lease, standing)) if standing.scans != 0 => {
                self.hosts.refresh(cx, lease)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a host has not tried another before. If so, it has now.
    fn is_first(&self, cx: &mut Cx<'_, ()>, pair: Pair) -> Outcome<bool> {
        if let Some((lease, _)) = self.pairs.get(cx, &pair)? {
            self.pairs.refresh(cx, lease)?;
            return Ok(false);
        }
        let has_room = self.pairs.enter(cx, Met(pair))?.is_ok();
        self.tally.update(cx, |tally| {
            tally.contacts += u64::from(has_room);
            tally.unwatched += u64::from(!has_room);
        })?;
        // One that cannot be told from its repetitions does not count.
        Ok(has_room)
    }

    /// Moves a host by what came of a first contact.
    fn judge(&self, cx: &mut Cx<'_, ()>, host: Host, contact: Contact) -> Outcome<()> {
        let walk = &self.config.walk;
        let known = self.hosts.get(cx, &host)?;
        let before = known.map_or(Standing { host, at: 0, scans: 0 }, |(_, standing)| standing);
        let at = walk.step(before.at, contact);
        let now = Standing { host, at, scans: before.scans | u32::from(walk.is_scan(at)) };
        let is_kept = match known {
            Some((lease, _)) => {
                self.hosts.replace(cx, lease, now)?;
                true
            }
            // Nothing is known of most hosts but good, and that is no more than what is known of any.
            None if at == 0 => true,
            None => self.hosts.enter(cx, now)?.is_ok(),
        };
        self.tally.update(cx, |tally| {
            match contact {
                Contact::Succeeded => tally.succeeded += 1,
                Contact::Failed => tally.failed += 1,
            }
            tally.scanners += u64::from(is_kept && now.scans > before.scans);
            tally.unwatched += u64::from(!is_kept);
        })
    }

    fn pair(&self, key: &FlowKey, opened_forward: bool) -> Pair {
        Pair::of(key, opened_forward, self.config.width)
    }
}

impl NetworkFunction for Portscan {
    type Flow = Attempt;
    type Shard = ();

    fn packet_set(&self) -> PacketSet {
        PacketSet::five_tuple().only(Protocols::TCP)
    }

    fn local(&self, _: ShardInfo) {}

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<Attempt>> {
        if !self.is_watched(packet) {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        let opened_forward = packet.is_forward();
        let pair = self.pair(&packet.key(), opened_forward);
        if self.scans(cx, pair.host)? {
            let drops = self.config.action == Action::Drop;
            self.tally.update(cx, |tally| {
                tally.scanned += 1;
                tally.dropped += u64::from(drops);
            })?;
            return Ok(match drops {
                true => Admission::Refuse(DropReason::Scanner),
                false => Admission::Pass(Verdict::Forward),
            });
        }
        if !self.is_first(cx, pair)? {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        cx.expire_in(self.config.patience);
        cx.set_evictable(true);
        Ok(Admission::Admit(Attempt { opened_forward, is_decided: false }, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        attempt: &mut Attempt,
    ) -> Outcome<Verdict> {
        if packet.is_forward() == attempt.opened_forward {
            return Ok(Verdict::Forward);
        }
        let flags = packet.tcp().map_or(0, |tcp| tcp.flags().0);
        let contact = match flags & (TcpFlags::SYN | TcpFlags::RST) {
            _ if packet.is_icmp_error() => Contact::Failed,
            TcpFlags::SYN => Contact::Succeeded,
            0 => return Ok(Verdict::Forward),
            _ => Contact::Failed,
        };
        let pair = self.pair(&packet.arrival_key(), attempt.opened_forward);
        self.judge(cx, pair.host, contact)?;
        attempt.is_decided = true;
        cx.close();
        Ok(Verdict::Forward)
    }

    fn ended(
        &self,
        cx: &mut Cx<'_, ()>,
        key: &FlowKey,
        attempt: &mut Attempt,
        ending: Ending,
    ) -> Outcome<()> {
        // What was pushed out or cut off might still have been answered.
        if attempt.is_decided || ending != Ending::Expired {
            return Ok(());
        }
        let pair = self.pair(key, attempt.opened_forward);
        self.judge(cx, pair.host, Contact::Failed)
    }

    fn passes_without_entry(&self) -> bool {
        true
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.hosts.reclaim(cx)?;
        self.pairs.reclaim(cx)
    }

    fn totals(&self, metrics: &mut Metrics) {
        let tally = self.tally.total();
        for (name, count) in [
            ("portscan_contacts", tally.contacts),
            ("portscan_succeeded", tally.succeeded),
            ("portscan_failed", tally.failed),
            ("portscan_scanners", tally.scanners),
            ("portscan_scanned", tally.scanned),
            ("portscan_dropped", tally.dropped),
            ("portscan_unwatched", tally.unwatched),
        ] {
            metrics.add(name, count);
        }
    }
}
