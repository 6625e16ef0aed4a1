//! A detector of port scans: it watches the outcome of the first connection of each host to each other host, and classifies hosts
//! whose attempts fail too often as scanners. Their further connections are counted, or dropped.
//!
//! The test is a threshold random walk ([`walk`]). A connection is a flow until its outcome is known; hosts, and the hosts they
//! have tried, are shared by all lanes.

pub mod host;
mod listing;
mod registration;
mod settings;
pub mod walk;

pub use host::{Host, Pair, Width};
pub use registration::PORTSCAN;
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

use crate::ageing_map::{AgeingMap, Entry};
use rheostat_nf::Cx;
use rheostat_nf::NetworkFunction;
use rheostat_nf::Packet;
use rheostat_nf::{Admission, Ending, FunctionSpec, Outcome, Verdict};

/// The settings of the detector.
#[derive(Clone, Debug, PartialEq)]
pub struct PortscanConfig {
    /// The side whose hosts are watched. Without it, those of both are.
    pub from: Option<Side>,
    /// How many leading bits of an address make a host.
    pub width: Width,
    /// The scores of hosts after their contacts.
    pub walk: Walk,
    /// How long a connection may take to be answered before it counts as failed.
    pub timeout: Duration,
    /// Hosts that are kept at most.
    pub hosts: usize,
    /// Pairs of a host and one that it has tried, that are kept at most.
    pub pairs: usize,
    /// How long a host is kept after its last contact, and a pair after its last connection.
    pub retention: Duration,
    /// How often contacts extend that time, at most; entries may expire earlier by as much.
    pub refresh: Duration,
    /// What is done with connections that scanners open.
    pub action: Action,
}

impl Default for PortscanConfig {
    /// Both sides, the walk of the paper, a timeout of five seconds, and a retention of half an hour.
    fn default() -> PortscanConfig {
        PortscanConfig {
            from: None,
            width: Width::default(),
            walk: Walk::default(),
            timeout: Duration::from_secs(5),
            hosts: 64_000,
            pairs: 256_000,
            retention: Duration::from_secs(30 * 60),
            refresh: Duration::from_secs(1),
            action: Action::default(),
        }
    }
}

/// What is done with connections that scanners open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// They are counted, and pass.
    #[default]
    Count,
    /// They are dropped.
    Drop,
}

/// The detector.
#[derive(Clone, Debug)]
pub struct Portscan {
    config: PortscanConfig,
    hosts: AgeingMap<Score>,
    pairs: AgeingMap<SeenPair>,
    counts: Distributed<Counts>,
}

/// The score of a host.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Score {
    host: Host,
    at: i32,
    /// Not zero once the host was classified as a scanner, which it stays until its entry expires.
    scans: u32,
}

impl Entry for Score {
    type Key = Host;

    fn key(&self) -> Host {
        self.host
    }
}

/// A host and another that it has tried.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[repr(C)]
struct SeenPair(Pair);

impl Entry for SeenPair {
    type Key = Pair;

    fn key(&self) -> Pair {
        self.0
    }
}

/// A first contact whose outcome is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt {
    opened_forward: bool,
    is_decided: bool,
}

/// Counters for the summary. No decision depends on them.
#[derive(Clone, Copy, Debug, Default, NoUninit, AnyBitPattern)]
#[repr(C)]
struct Counts {
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

impl Counts {
    fn merge(&mut self, other: &Counts) {
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
        let PortscanConfig { retention, refresh, .. } = config;
        let hosts = AgeingMap::new(objects, "portscan hosts", config.hosts, retention, refresh);
        hosts.set_by(objects, "function.portscan", "hosts", "refresh");
        let pairs = AgeingMap::new(objects, "portscan pairs", config.pairs, retention, refresh);
        pairs.set_by(objects, "function.portscan", "pairs", "refresh");
        let (zero, merge) = (Counts::default(), Counts::merge);
        let counts = Distributed::new(objects, "portscan counts", zero, merge, Duration::ZERO);
        Portscan { config, hosts, pairs, counts }
    }

    /// A detector with these settings that takes the place of `running`, with all that is known of hosts, and its room for them.
    pub fn next(config: PortscanConfig, running: &Portscan) -> Portscan {
        let Portscan { hosts, pairs, counts, .. } = running.clone();
        let (retention, refresh) = (config.retention, config.refresh);
        let (hosts, pairs) =
            (hosts.ageing_by(retention, refresh), pairs.ageing_by(retention, refresh));
        Portscan { config, hosts, pairs, counts }
    }

    /// Whether a packet opens a connection of a host that is watched.
    fn is_watched(&self, packet: &Packet<'_>) -> bool {
        self.config.from.is_none_or(|side| side == packet.side())
            && packet.tcp().is_some_and(|tcp| tcp.flags().opens())
    }

    /// Whether a host is a scanner; if so, its entry is refreshed.
    fn scans(&self, cx: &mut Cx<'_, ()>, host: Host) -> Outcome<bool> {
        match self.hosts.get(cx, &host)? {
            Some((lease, score)) if score.scans != 0 => {
                self.hosts.refresh(cx, lease)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a host has not tried another before. Enters the pair if so.
    fn is_first(&self, cx: &mut Cx<'_, ()>, pair: Pair) -> Outcome<bool> {
        if let Some((lease, _)) = self.pairs.get(cx, &pair)? {
            self.pairs.refresh(cx, lease)?;
            return Ok(false);
        }
        let has_room = self.pairs.enter(cx, SeenPair(pair))?.is_ok();
        self.counts.update(cx, |counts| {
            counts.contacts += u64::from(has_room);
            counts.unwatched += u64::from(!has_room);
        })?;
        // A contact without an entry cannot be distinguished from its repetitions, and does not count.
        Ok(has_room)
    }

    /// Changes a host's score by the outcome of a first contact.
    fn note_contact(&self, cx: &mut Cx<'_, ()>, host: Host, contact: Contact) -> Outcome<()> {
        let walk = &self.config.walk;
        let known = self.hosts.get(cx, &host)?;
        let before = known.map_or(Score { host, at: 0, scans: 0 }, |(_, score)| score);
        let at = walk.step(before.at, contact);
        let now = Score { host, at, scans: before.scans | u32::from(walk.is_scan(at)) };
        let is_kept = match known {
            Some((lease, _)) => {
                self.hosts.replace(cx, lease, now)?;
                true
            }
            // A score of zero is that of a host without an entry.
            None if at == 0 => true,
            None => self.hosts.enter(cx, now)?.is_ok(),
        };
        self.counts.update(cx, |counts| {
            match contact {
                Contact::Succeeded => counts.succeeded += 1,
                Contact::Failed => counts.failed += 1,
            }
            counts.scanners += u64::from(is_kept && now.scans > before.scans);
            counts.unwatched += u64::from(!is_kept);
        })
    }

    fn pair(&self, key: &FlowKey, opened_forward: bool) -> Pair {
        Pair::of(key, opened_forward, self.config.width)
    }
}

impl NetworkFunction for Portscan {
    type Flow = Attempt;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec {
            passes_without_entry: true,
            ..FunctionSpec::named_by(PacketSet::five_tuple().only(Protocols::TCP))
        }
    }

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<Attempt>> {
        if !self.is_watched(packet) {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        let opened_forward = packet.is_forward();
        let pair = self.pair(&packet.key(), opened_forward);
        if self.scans(cx, pair.host)? {
            let drops = self.config.action == Action::Drop;
            self.counts.update(cx, |counts| {
                counts.scanned += 1;
                counts.dropped += u64::from(drops);
            })?;
            return Ok(match drops {
                true => Admission::Refuse(DropReason::Scanner),
                false => Admission::Pass(Verdict::Forward),
            });
        }
        if !self.is_first(cx, pair)? {
            return Ok(Admission::Pass(Verdict::Forward));
        }
        cx.expire_in(self.config.timeout);
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
        let flags = packet.tcp().map_or(TcpFlags(0), |tcp| tcp.flags());
        let contact = match (flags.syn(), flags.rst()) {
            _ if packet.is_icmp_error() => Contact::Failed,
            (true, false) => Contact::Succeeded,
            (false, false) => return Ok(Verdict::Forward),
            (_, true) => Contact::Failed,
        };
        let pair = self.pair(&packet.arrival_key(), attempt.opened_forward);
        self.note_contact(cx, pair.host, contact)?;
        attempt.is_decided = true;
        // Other functions of a chain go on with the flow.
        cx.delete_state();
        Ok(Verdict::Forward)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        key: &FlowKey,
        attempt: &mut Attempt,
        why: Ending,
    ) -> Outcome<()> {
        // A flow that was evicted or cut off might still have been answered.
        if attempt.is_decided || why != Ending::Expired {
            return Ok(());
        }
        let pair = self.pair(key, attempt.opened_forward);
        self.note_contact(cx, pair.host, Contact::Failed)
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.hosts.reclaim(cx)?;
        self.pairs.reclaim(cx)
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        let counts = self.counts.total();
        for (name, count) in [
            ("portscan_contacts", counts.contacts),
            ("portscan_succeeded", counts.succeeded),
            ("portscan_failed", counts.failed),
            ("portscan_scanners", counts.scanners),
            ("portscan_scanned", counts.scanned),
            ("portscan_dropped", counts.dropped),
            ("portscan_unwatched", counts.unwatched),
        ] {
            metrics.add(name, count);
        }
    }
}
