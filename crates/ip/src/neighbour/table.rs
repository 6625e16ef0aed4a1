//! The table of neighbours that all lanes share.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::wire::MacAddress;

use super::NeighbourKey;
use super::entry::{KnownNeighbour, NeighbourEntry, NeighbourState, Visible};
use crate::rate_limit::RateLimit;

/// Between two questions (RFC 4861, section 10: RETRANS_TIMER).
const RETRANS: Duration = Duration::from_secs(1);
/// Questions before a neighbour is given up (MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT).
const SOLICITS: u8 = 3;
/// How long an answer counts (REACHABLE_TIME; not spread at random, as section 6.3.4 has it for hosts
/// that start together).
const REACHABLE: Duration = Duration::from_secs(30);
/// How long a packet may show by itself that the neighbour is there (DELAY_FIRST_PROBE_TIME).
const DELAY: Duration = Duration::from_secs(5);
/// How long a neighbour is kept to which nothing is sent.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Changes that lanes can catch up with one by one; a lane that is further behind reads the whole table.
const LOG: usize = 1_024;

/// How much is kept and requested, so that a sender that makes up addresses cannot fill the table or the link (RFC 6583,
/// section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourLimits {
    /// Neighbours at most.
    pub entries: usize,
    /// Neighbours per device that have not answered yet, at most; gateways do not count.
    pub incomplete: usize,
    /// New addresses that are requested per second, all devices together; gateways do not count.
    pub questions_per_second: u32,
}

impl Default for NeighbourLimits {
    fn default() -> NeighbourLimits {
        NeighbourLimits { entries: 4_096, incomplete: 256, questions_per_second: 500 }
    }
}

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solicitation {
    /// On which link.
    pub device: DeviceId,
    /// Whose link address is requested.
    pub target: IpAddr,
    /// The receiver: the neighbour whose address it was; without one, all.
    pub to: Option<MacAddress>,
}

/// What comes of asking the table for a link address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// There it is.
    Known(MacAddress),
    /// The neighbour has been asked.
    Asked,
    /// Too many are being asked already.
    Refused,
}

/// What an answer states about a neighbour (RFC 4861, section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement {
    /// Its link address, where the answer names one.
    pub mac: Option<MacAddress>,
    /// Whether it answers a question.
    pub solicited: bool,
    /// Whether it takes the place of another link address.
    pub overrides: bool,
}

/// How long after its last change something is to be done about an entry in this state; `None` for never.
fn period_of(state: NeighbourState) -> Option<Duration> {
    match state {
        NeighbourState::Incomplete | NeighbourState::Probe => Some(RETRANS),
        NeighbourState::Reachable => Some(REACHABLE),
        NeighbourState::Stale => Some(FORGOTTEN),
        NeighbourState::Delay => Some(DELAY),
        NeighbourState::Permanent => None,
    }
}

/// All neighbours of all interfaces.
#[derive(Debug)]
pub struct Neighbours {
    limits: NeighbourLimits,
    entries: HashMap<NeighbourKey, NeighbourEntry>,
    /// Those whose timers run, and those that are stale, each by deadline.
    due: BTreeSet<(Time, NeighbourKey)>,
    stale: BTreeSet<(Time, NeighbourKey)>,
    /// Neighbours that have not answered yet, by device, gateways apart.
    incomplete: [usize; 256],
    /// Routers: always asked for, and never forgotten to make room for others.
    gateways: HashSet<NeighbourKey>,
    questions: RateLimit,
    /// The keys that changed last, the latest of them as number `version`.
    log: VecDeque<NeighbourKey>,
    version: u64,
}

impl Neighbours {
    /// An empty table.
    pub fn new(limits: NeighbourLimits) -> Neighbours {
        let rate = limits.questions_per_second;
        Neighbours {
            limits,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            stale: BTreeSet::new(),
            incomplete: [0; 256],
            gateways: HashSet::new(),
            questions: RateLimit::new(rate, rate / 2),
            log: VecDeque::new(),
            version: 0,
        }
    }

    /// Other bounds of the table. Where it has more entries than that, those that are stale make room for new ones.
    pub fn set_limits(&mut self, limits: NeighbourLimits) {
        if limits.questions_per_second != self.limits.questions_per_second {
            let rate = limits.questions_per_second;
            self.questions = RateLimit::new(rate, rate / 2);
        }
        self.limits = limits;
    }

    /// Sets which neighbours are routers.
    pub fn set_gateways(&mut self, gateways: impl IntoIterator<Item = NeighbourKey>) {
        let gateways = gateways.into_iter().collect();
        for (key, entry) in &self.entries {
            if entry.state == NeighbourState::Incomplete {
                let device = key.device().index();
                let counted = |set: &HashSet<_>| usize::from(!set.contains(key));
                self.incomplete[device] += counted(&gateways);
                self.incomplete[device] -= counted(&self.gateways);
            }
        }
        self.gateways = gateways;
    }

    /// Enters a neighbour that stays as it is.
    pub fn set_permanent(&mut self, key: NeighbourKey, mac: MacAddress) {
        let state = NeighbourState::Permanent;
        self.put(key, Some(NeighbourEntry { state, mac, asked: 0, deadline: Time::NEVER }));
    }

    /// Takes a neighbour out that was entered to stay.
    pub fn unset_permanent(&mut self, key: NeighbourKey) {
        let is_permanent = |entry: &NeighbourEntry| entry.state == NeighbourState::Permanent;
        if self.entries.get(&key).is_some_and(is_permanent) {
            self.put(key, None);
        }
    }

    /// Forgets what was learned of the neighbours of a device, whose link is another one now. Those that are
    /// being asked are asked on, and permanent ones stay.
    pub fn forget(&mut self, device: DeviceId) {
        let is_learned = |entry: &NeighbourEntry| {
            !matches!(entry.state, NeighbourState::Incomplete | NeighbourState::Permanent)
        };
        let learned = self.entries.iter().filter(|(_, entry)| is_learned(entry));
        let keys: Vec<_> =
            learned.map(|(key, _)| *key).filter(|key| key.device() == device).collect();
        for key in keys {
            self.put(key, None);
        }
    }

    /// The link address of a neighbour that there is a packet for. When it is not known, the neighbour
    /// is asked, unless too many are.
    pub fn resolve(
        &mut self,
        key: NeighbourKey,
        now: Time,
        questions: &mut Vec<Solicitation>,
    ) -> Resolution {
        match self.entries.get(&key).map(NeighbourEntry::visible) {
            Some(Visible::Known { mac, .. }) => return Resolution::Known(mac),
            Some(_) => return Resolution::Asked,
            None => {}
        }
        let is_gateway = self.gateways.contains(&key);
        let full = self.incomplete[key.device().index()] >= self.limits.incomplete;
        if !is_gateway && (full || !self.questions.allow(now)) || !self.make_room(is_gateway) {
            return Resolution::Refused;
        }
        let (state, deadline) = (NeighbourState::Incomplete, now + RETRANS);
        self.put(key, Some(NeighbourEntry { state, mac: [0; 6], asked: 1, deadline }));
        questions.push(ask(key, None));
        Resolution::Asked
    }

    /// Notes that a packet was sent to a neighbour of which it is not sure that it is there.
    pub fn note_use(&mut self, key: NeighbourKey, now: Time) {
        if let Some(entry) = self.entries.get(&key)
            && entry.state == NeighbourState::Stale
        {
            let deadline = now + DELAY;
            self.put(
                key,
                Some(NeighbourEntry { state: NeighbourState::Delay, deadline, ..*entry }),
            );
        }
    }

    /// A neighbour has told its link address by asking for this machine's (RFC 826; RFC 4861, section
    /// 7.2.3).
    pub fn learn(&mut self, key: NeighbourKey, mac: MacAddress, now: Time) {
        if is_group(mac) || (!self.entries.contains_key(&key) && !self.make_room(false)) {
            return;
        }
        match self.entries.get(&key) {
            Some(entry) if entry.state == NeighbourState::Permanent => {}
            Some(entry) if entry.state != NeighbourState::Incomplete && entry.mac == mac => {}
            _ => self.put(key, Some(stale(mac, now))),
        }
    }

    /// Handles a packet that contains a neighbour's link address. The address is taken over if the neighbour is known (RFC 826:
    /// the merge); an unknown neighbour is not entered.
    pub fn merge(&mut self, key: NeighbourKey, mac: MacAddress, now: Time) {
        if self.entries.contains_key(&key) {
            self.learn(key, mac, now);
        }
    }

    /// A neighbour has answered, whether or not it was asked (RFC 4861, section 7.2.5).
    pub fn advertise(&mut self, key: NeighbourKey, advertised: Advertisement, now: Time) {
        let Some(&entry) = self.entries.get(&key) else { return };
        let Advertisement { mac, solicited, overrides } = advertised;
        if entry.state == NeighbourState::Permanent || mac.is_some_and(is_group) {
            return;
        }
        let reachable = |mac| NeighbourEntry {
            state: NeighbourState::Reachable,
            mac,
            asked: 0,
            deadline: now + REACHABLE,
        };
        if entry.state == NeighbourState::Incomplete {
            let Some(mac) = mac else { return };
            self.put(key, Some(if solicited { reachable(mac) } else { stale(mac, now) }));
            return;
        }
        let other = mac.filter(|mac| *mac != entry.mac);
        match other {
            Some(_) if !overrides && entry.state == NeighbourState::Reachable => {
                self.put(key, Some(stale(entry.mac, now)));
            }
            Some(_) if !overrides => {}
            _ if solicited => self.put(key, Some(reachable(mac.unwrap_or(entry.mac)))),
            Some(mac) => self.put(key, Some(stale(mac, now))),
            None => {}
        }
    }

    /// As [`Neighbours::advertise`] for ARP, which does not say whether it answers: it does when the
    /// neighbour was asked.
    pub fn reply(&mut self, key: NeighbourKey, mac: MacAddress, now: Time) {
        let asked = |entry: &NeighbourEntry| {
            matches!(entry.state, NeighbourState::Incomplete | NeighbourState::Probe)
        };
        let solicited = self.entries.get(&key).is_some_and(asked);
        self.advertise(key, Advertisement { mac: Some(mac), solicited, overrides: true }, now);
    }

    /// Does what is due at `now`.
    pub fn advance(&mut self, now: Time, questions: &mut Vec<Solicitation>) {
        while let Some(&(deadline, key)) = self.due.first()
            && deadline <= now
        {
            let Some(&entry) = self.entries.get(&key) else { break };
            let again = |state| NeighbourEntry { state, deadline: now + RETRANS, ..entry };
            let next = match entry.state {
                NeighbourState::Incomplete | NeighbourState::Probe if entry.asked < SOLICITS => {
                    let to = Some(entry.mac).filter(|_| entry.state == NeighbourState::Probe);
                    questions.push(ask(key, to));
                    Some(NeighbourEntry { asked: entry.asked + 1, ..again(entry.state) })
                }
                // No host has the address, or no longer.
                NeighbourState::Incomplete | NeighbourState::Probe => None,
                NeighbourState::Delay => {
                    questions.push(ask(key, Some(entry.mac)));
                    Some(NeighbourEntry { asked: 1, ..again(NeighbourState::Probe) })
                }
                _ => Some(stale(entry.mac, now)),
            };
            self.put(key, next);
        }
        while let Some(&(deadline, key)) = self.stale.first()
            && deadline <= now
        {
            self.put(key, None);
        }
    }

    /// When [`Neighbours::advance`] has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        let first = |set: &BTreeSet<(Time, NeighbourKey)>| set.first().map(|(time, _)| *time);
        [first(&self.due), first(&self.stale)].into_iter().flatten().min()
    }

    /// All neighbours with their states, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (NeighbourKey, NeighbourState, MacAddress)> {
        self.entries.iter().map(|(key, entry)| (*key, entry.state, entry.mac))
    }

    /// All neighbours as listings show them, in no order.
    pub fn known(&self) -> impl Iterator<Item = KnownNeighbour> {
        self.entries.iter().map(|(key, entry)| {
            let nanos = |period: Duration| {
                let period = period.as_nanos() as u64;
                Time::from_nanos(entry.deadline.as_nanos().saturating_sub(period))
            };
            let is_known = entry.state != NeighbourState::Incomplete;
            KnownNeighbour {
                device: key.device(),
                address: key.address(),
                state: entry.state,
                mac: is_known.then_some(entry.mac),
                since: period_of(entry.state).map(nanos),
            }
        })
    }

    /// Whether a neighbour has been asked and has not answered yet.
    pub(crate) fn is_asked(&self, key: &NeighbourKey) -> bool {
        self.visible(key) == Visible::Asked
    }

    /// A number that grows with each change that lanes can see.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The keys that changed after `version`, some perhaps more than once; `None` when that is too long
    /// ago to report.
    pub(super) fn changes_since(
        &self,
        version: u64,
    ) -> Option<impl Iterator<Item = NeighbourKey> + '_> {
        let behind = usize::try_from(self.version - version).ok()?;
        let start = self.log.len().checked_sub(behind)?;
        Some(self.log.range(start..).copied())
    }

    /// What lanes see of a neighbour.
    pub(super) fn visible(&self, key: &NeighbourKey) -> Visible {
        self.entries.get(key).map_or(Visible::Nothing, NeighbourEntry::visible)
    }

    /// Makes room for one more entry; `false` when there is none. The neighbour goes that has been stale
    /// for longest, and for a gateway even one that is not.
    fn make_room(&mut self, for_gateway: bool) -> bool {
        if self.entries.len() < self.limits.entries {
            return true;
        }
        let is_other = |(_, key): &&(Time, NeighbourKey)| !self.gateways.contains(key);
        let mut victim = self.stale.iter().find(is_other);
        if for_gateway {
            victim = victim.or_else(|| self.due.iter().find(is_other));
        }
        let victim = victim.map(|(_, key)| *key);
        if let Some(key) = victim {
            self.put(key, None);
        }
        victim.is_some()
    }

    /// Panics unless every entry has its timer, and the counts are those of the entries.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut incomplete = [0; 256];
        let mut timers = 0;
        for (key, entry) in &self.entries {
            let place = (entry.deadline, *key);
            match entry.state {
                NeighbourState::Permanent => continue,
                NeighbourState::Stale => assert!(self.stale.contains(&place)),
                _ => assert!(self.due.contains(&place)),
            }
            timers += 1;
            let counts = !self.gateways.contains(key);
            incomplete[key.device().index()] +=
                usize::from(entry.state == NeighbourState::Incomplete && counts);
        }
        assert_eq!(timers, self.stale.len() + self.due.len());
        assert_eq!(incomplete, self.incomplete);
    }

    /// Gives a key another entry, or none.
    fn put(&mut self, key: NeighbourKey, new: Option<NeighbourEntry>) {
        let old = match new {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(&key),
        };
        let counts = !self.gateways.contains(&key);
        for (entry, enters) in [(old, false), (new, true)] {
            let Some(entry) = entry else { continue };
            if entry.state == NeighbourState::Incomplete && counts {
                let count = &mut self.incomplete[key.device().index()];
                if enters { *count += 1 } else { *count -= 1 }
            }
            let timers = match entry.state {
                NeighbourState::Permanent => continue,
                NeighbourState::Stale => &mut self.stale,
                _ => &mut self.due,
            };
            match enters {
                true => timers.insert((entry.deadline, key)),
                false => timers.remove(&(entry.deadline, key)),
            };
        }
        let visible =
            |entry: Option<NeighbourEntry>| entry.map_or(Visible::Nothing, |e| e.visible());
        if visible(old) != visible(new) {
            self.version += 1;
            self.log.push_back(key);
            if self.log.len() > LOG {
                self.log.pop_front();
            }
        }
    }
}

fn stale(mac: MacAddress, now: Time) -> NeighbourEntry {
    NeighbourEntry { state: NeighbourState::Stale, mac, asked: 0, deadline: now + FORGOTTEN }
}

fn ask(key: NeighbourKey, to: Option<MacAddress>) -> Solicitation {
    Solicitation { device: key.device(), target: key.address(), to }
}

/// Whether a link address is that of many, which no neighbour may claim to have (RFC 1812, section
/// 3.3.2).
fn is_group(mac: MacAddress) -> bool {
    mac[0] & 1 != 0
}
