//! The checks of all backends, as a local service of the network.
#![expect(
    clippy::disallowed_types,
    reason = "checks belong to no shard, and only answers to them take the lock"
)]

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_ip::{LocalPacket, LocalService, Outbox};
use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6, TCP};
use rheostat_packet::wire::tcp::TcpSegment;
use rheostat_packet::wire::{icmpv4, icmpv6};
use rheostat_packet::{Headers, LinkType, tuple};
use thiserror::Error;

use super::CheckKind;
use super::event::HealthEvent;
use super::probe::{Ends, Outcome, Probe};
use super::target::Target;
use crate::lb::config::LbConfig;
use crate::lb::numbering::ServiceIdentity;

/// Changes that may wait to be read. More cannot be: a reader that does not read for so long has gone.
const EVENTS: usize = 65_536;
/// The ports that checks are sent from (RFC 6335, section 6).
const PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// A backend cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "backend {backend} of service `{service}` cannot be checked: no interface has an address to ask from; \
     give the device to the backends an `address`, or remove `check`"
)]
pub struct NoSource {
    /// The service.
    pub service: String,
    /// The backend.
    pub backend: IpAddr,
}

/// Checks backends. Shared by all lanes, whose packets for this machine it is offered.
#[derive(Debug)]
pub struct HealthChecks {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    services: Vec<ServiceIdentity>,
    targets: Vec<Target>,
    /// When each target has something to do.
    agenda: BTreeSet<(Time, usize)>,
    /// The checks under way, by the address that is asked, its protocol and the check's own port.
    under_way: HashMap<(IpAddr, u8, u16), usize>,
    /// Whether the agenda still counts from zero, because no time was known when it was written.
    has_begun: bool,
    events: VecDeque<HealthEvent>,
    rng: StdRng,
}

impl HealthChecks {
    /// The checks that `config` asks for; `None` when it asks for none. `source` says which address a
    /// backend is asked from; `seed` decides when, and from which ports.
    ///
    /// # Errors
    /// [`NoSource`] when there is no address to ask a backend from.
    pub fn new(
        config: &LbConfig,
        source: impl Fn(IpAddr) -> Option<IpAddr>,
        seed: u64,
    ) -> Result<Option<HealthChecks>, NoSource> {
        let mut rng = StdRng::seed_from_u64(seed);
        let targets = targets_of(config, source, &mut rng)?;
        if targets.is_empty() {
            return Ok(None);
        }
        let mut inner = Inner {
            services: Vec::new(),
            targets: Vec::new(),
            agenda: BTreeSet::new(),
            under_way: HashMap::new(),
            has_begun: false,
            events: VecDeque::new(),
            rng,
        };
        inner.begin_anew(config, targets);
        Ok(Some(HealthChecks { inner: Mutex::new(inner) }))
    }

    /// Begins with what is known of backends by earlier checks, by service and backend in the order of the configuration: only a
    /// change of it is an event.
    pub fn assume(&self, is_dead: impl Fn(usize, usize) -> bool) {
        for target in &mut self.lock().targets {
            target.assume(is_dead(target.service, target.backend));
        }
    }

    /// Takes the changes so far, in order. To be read from time to time, and told to the
    /// [`HealthBoard`](crate::lb::HealthBoard), by a thread that no packet waits for.
    pub fn take_events(&self) -> Vec<HealthEvent> {
        self.lock().events.drain(..).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the outcome of the check of `target`, and when the next one is due.
    fn conclude(&self, inner: &mut Inner, target: usize, outcome: Outcome, now: Time) {
        let checked = &mut inner.targets[target];
        inner.agenda.remove(&(checked.next_deadline(), target));
        if let Some(probe) = checked.probe.take() {
            inner.under_way.remove(&place(checked, probe.ends().own));
        }
        inner.agenda.insert((checked.due, target));
        let Some(failure) = checked.note(outcome) else { return };
        let event = HealthEvent {
            time: now,
            service: checked.service,
            service_name: inner.services[checked.service].name().to_owned(),
            backend: checked.backend,
            address: checked.address,
            failure,
        };
        if inner.events.len() < EVENTS {
            inner.events.push_back(event);
        }
    }

    /// Does what is due for `target`.
    fn attend(&self, inner: &mut Inner, target: usize, now: Time, outbox: &mut Outbox) {
        let checked = &mut inner.targets[target];
        inner.agenda.remove(&(checked.next_deadline(), target));
        let Some(probe) = &mut checked.probe else {
            return inner.begin(target, now, outbox);
        };
        let outcome = probe.wake(now, outbox);
        inner.agenda.insert((checked.next_deadline(), target));
        if let Some(outcome) = outcome {
            self.conclude(inner, target, outcome, now);
        }
    }
}

/// The backends that `config` has checked; the checks of the first interval are spread over it.
fn targets_of(
    config: &LbConfig,
    source: impl Fn(IpAddr) -> Option<IpAddr>,
    rng: &mut StdRng,
) -> Result<Vec<Target>, NoSource> {
    let mut targets = Vec::new();
    for (number, service) in config.services.iter().enumerate() {
        let Some(check) = &service.check else { continue };
        let check = Arc::new(check.clone());
        for (place, backend) in service.backends.iter().enumerate() {
            let address = backend.address;
            let name = || service.name.clone();
            let source = source(address).filter(|own| own.is_ipv4() == address.is_ipv4());
            let source = source.ok_or_else(|| NoSource { service: name(), backend: address })?;
            let port = match check.kind {
                CheckKind::Icmp => 0,
                _ => service.checked_port(place).unwrap_or(0),
            };
            let due = Time::ZERO + check.interval.mul_f64(rng.random_range(0.0..1.0));
            let ends = (source, address, port);
            targets.push(Target::new((number, place), ends, check.clone(), due));
        }
    }
    Ok(targets)
}

impl Inner {
    /// Checks these backends, whose times count from zero until there is a time.
    fn begin_anew(&mut self, config: &LbConfig, mut targets: Vec<Target>) {
        let services: Vec<_> = config.services.iter().map(ServiceIdentity::of).collect();
        let known = std::mem::take(&mut self.targets);
        let is_same = |known: &Target, target: &Target| {
            self.services[known.service] == services[target.service]
                && (known.address, known.port) == (target.address, target.port)
        };
        for target in &mut targets {
            if let Some(known) = known.iter().find(|known| is_same(known, target)) {
                target.think_as(known);
            }
        }
        let places = config.services.iter().zip(&services).enumerate();
        let place_of = |event: &HealthEvent| {
            let (number, (service, _)) = places
                .clone()
                .find(|(_, (_, identity))| self.services.get(event.service) == Some(*identity))?;
            let backends = &service.backends;
            let backend = backends.iter().position(|backend| backend.address == event.address)?;
            Some((number, backend))
        };
        let events = std::mem::take(&mut self.events).into_iter().filter_map(|event| {
            let (service, backend) = place_of(&event)?;
            Some(HealthEvent { service, backend, ..event })
        });
        self.events = events.collect();
        self.agenda = targets.iter().enumerate().map(|(n, target)| (target.due, n)).collect();
        (self.services, self.targets) = (services, targets);
        self.under_way.clear();
        self.has_begun = false;
    }

    /// Begins the check of `target`, which is not on the agenda.
    fn begin(&mut self, target: usize, now: Time, outbox: &mut Outbox) {
        let Inner { targets, agenda, under_way, rng, .. } = self;
        let checked = &mut targets[target];
        let jitter = rng.random_range(0.9..1.1);
        checked.due = now + checked.config.interval.mul_f64(jitter).max(checked.config.timeout);
        // A target has one check at a time, so there is always a port left.
        let own = loop {
            let own = rng.random_range(PORTS);
            if !under_way.contains_key(&place(checked, own)) {
                break own;
            }
        };
        under_way.insert(place(checked, own), target);
        let Target { source, address, port, .. } = *checked;
        let ends = Ends { source, own, target: address, port };
        checked.probe = Some(Probe::start(&checked.config, ends, rng, now, outbox));
        agenda.insert((checked.next_deadline(), target));
    }
}

/// Where a check of `target` from the port `own` is found.
fn place(target: &Target, own: u16) -> (IpAddr, u8, u16) {
    let protocol = match target.config.kind {
        CheckKind::Icmp => ICMPV4,
        CheckKind::Tcp | CheckKind::Http(_) => TCP,
    };
    (target.address, protocol, own)
}

impl LocalService for HealthChecks {
    fn receive(&self, packet: &LocalPacket<'_>, now: Time, outbox: &mut Outbox) -> bool {
        let mut inner = self.lock();
        let found = match packet.protocol {
            TCP => receive_segment(&mut inner, packet, now, outbox),
            ICMPV4 | ICMPV6 => receive_icmp(&inner, packet),
            _ => None,
        };
        let Some((target, outcome)) = found else { return false };
        if let Some(outcome) = outcome {
            self.conclude(&mut inner, target, outcome, now);
        }
        true
    }

    fn tick(&self, now: Time, outbox: &mut Outbox) {
        let mut inner = self.lock();
        if !inner.has_begun {
            inner.has_begun = true;
            inner.start_at(now);
        }
        while let Some(&(due, target)) = inner.agenda.first()
            && due <= now
        {
            self.attend(&mut inner, target, now, outbox);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let inner = self.lock();
        if !inner.has_begun {
            return Some(Time::ZERO);
        }
        inner.agenda.first().map(|(due, _)| *due)
    }
}

impl Inner {
    /// Moves the first checks, which were due in a time that begins at zero, to one that begins now.
    fn start_at(&mut self, now: Time) {
        let since = Duration::from_nanos(now.as_nanos());
        self.agenda.clear();
        for (number, target) in self.targets.iter_mut().enumerate() {
            target.due += since;
            self.agenda.insert((target.due, number));
        }
    }
}

/// Gives a segment to the check it belongs to.
fn receive_segment(
    inner: &mut Inner,
    packet: &LocalPacket<'_>,
    now: Time,
    outbox: &mut Outbox,
) -> Option<(usize, Option<Outcome>)> {
    let segment = TcpSegment::new(packet.payload).ok()?;
    let target = *inner.under_way.get(&(packet.source, TCP, segment.destination_port()))?;
    let checked = &mut inner.targets[target];
    if segment.source_port() != checked.port || packet.destination != checked.source {
        return None;
    }
    let data = packet.payload.get(segment.header_len()..)?;
    let probe = checked.probe.as_mut()?;
    let before = probe.next_deadline();
    let outcome = probe.take_segment(&checked.config.kind, &segment, data, now, outbox);
    let after = probe.next_deadline();
    // What came may have changed when something is sent again.
    inner.agenda.remove(&(before, target));
    inner.agenda.insert((after, target));
    Some((target, outcome))
}

/// Gives an echo reply, or an error about a check, to the check it belongs to.
fn receive_icmp(inner: &Inner, packet: &LocalPacket<'_>) -> Option<(usize, Option<Outcome>)> {
    let [kind, code, _, _, rest @ ..] = packet.payload else { return None };
    let (reply, unreachable) = match packet.protocol {
        ICMPV4 => (icmpv4::ECHO_REPLY, icmpv4::UNREACHABLE),
        _ => (icmpv6::ECHO_REPLY, icmpv6::UNREACHABLE),
    };
    if *kind == reply {
        let (head, data) = rest.split_at_checked(4)?;
        let own = u16::from_be_bytes([head[0], head[1]]);
        let target = *inner.under_way.get(&(packet.source, ICMPV4, own))?;
        let probe = inner.targets[target].probe.as_ref()?;
        let sequence = u16::from_be_bytes([head[2], head[3]]);
        return Some((target, probe.take_echo(sequence, data)));
    }
    if *kind == unreachable {
        let quoted = rest.get(4..)?;
        // An error quotes as much as fits, so lengths say nothing.
        let headers = Headers::parse_bytes(quoted, usize::from(u16::MAX), LinkType::Raw).ok()?;
        let hosts = tuple::addresses(quoted, &headers)?;
        let transport = quoted.get(usize::from(headers.l4)..)?;
        let word = |at: usize| transport.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let (protocol, own) = match headers.protocol {
            TCP => (TCP, word(0)?),
            _ => (ICMPV4, word(4)?),
        };
        let target = *inner.under_way.get(&(hosts.second(), protocol, own))?;
        let checked = &inner.targets[target];
        if hosts.first() != checked.source {
            return None;
        }
        return Some((target, checked.probe.as_ref()?.take_error(*code, transport)));
    }
    None
}
