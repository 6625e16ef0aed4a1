//! Runs the endpoints of a wire against each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::{Headers, LinkType, Network};
use thiserror::Error;

use super::endpoint::{Endpoint, Side};
use super::link::{Link, LinkConfig, LinkCounts, Passage};
use super::observer::Observer;

/// Frames that an endpoint may send at one instant to each of its peers. More would mean that it never stops.
const BURST: u64 = 4_000;

/// How a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All endpoints are done.
    Done,
    /// Nothing is under way, and no endpoint waits for a time.
    Silent,
    /// The time is up.
    TimeUp,
}

/// An endpoint has broken the rules of [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// It asked to be called at a time that is not later.
    #[error("{0:?} has a deadline that does not pass")]
    Deadline(Side),
    /// It sent frames without end at one instant.
    #[error("{0:?} sends without end")]
    Endless(Side),
    /// More instants than allowed: the exchange does not end.
    #[error("{0} instants and no end")]
    Instants(u64),
}

struct SessionClient<'a> {
    endpoint: &'a mut dyn Endpoint,
    to_stack: Link,
    from_stack: Link,
}

/// A frame under way.
struct Flight {
    to: Side,
    client: usize,
    frame: Vec<u8>,
}

/// A stack, its clients, and what lies between them.
///
/// An event costs a logarithm of the frames under way and of the clients.
pub struct Wire<'a> {
    stack: &'a mut dyn Endpoint,
    clients: Vec<SessionClient<'a>>,
    places: HashMap<IpAddr, usize>,
    under_way: BTreeMap<(Time, u64), Flight>,
    flights: u64,
    /// Deadlines of endpoints, and the same by endpoint.
    deadlines: BTreeSet<(Time, Side)>,
    deadline_of: BTreeMap<Side, Time>,
    /// Endpoints at which something has happened at this instant.
    touched: BTreeSet<Side>,
    now: Time,
    frames: u64,
    unroutable: u64,
    max_instants: u64,
    seed: u64,
}

impl<'a> Wire<'a> {
    /// A stack without clients. What links do follows from `seed`.
    pub fn new(stack: &'a mut dyn Endpoint, seed: u64) -> Wire<'a> {
        Wire {
            stack,
            clients: Vec::new(),
            places: HashMap::new(),
            under_way: BTreeMap::new(),
            flights: 0,
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
            touched: BTreeSet::from([Side::Stack]),
            now: Time::ZERO,
            frames: 0,
            unroutable: 0,
            max_instants: u64::MAX,
            seed,
        }
    }

    /// Two stacks face to face: `client` is the only one, so all frames of `stack` go to it.
    pub fn between(
        client: &'a mut dyn Endpoint,
        stack: &'a mut dyn Endpoint,
        [to_stack, from_stack]: [LinkConfig; 2],
        seed: u64,
    ) -> Wire<'a> {
        let mut wire = Wire::new(stack, seed);
        wire.push(client, to_stack, from_stack);
        wire
    }

    fn push(
        &mut self,
        endpoint: &'a mut dyn Endpoint,
        to_stack: LinkConfig,
        from_stack: LinkConfig,
    ) {
        let client = self.clients.len();
        let seed =
            |way: u64| self.seed ^ (2 * client as u64 + way).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (to_stack, from_stack) = (Link::new(to_stack, seed(0)), Link::new(from_stack, seed(1)));
        self.touched.insert(Side::Client(client));
        self.clients.push(SessionClient { endpoint, to_stack, from_stack });
    }

    /// Adds a client, which gets the frames to this address.
    pub fn attach(
        &mut self,
        address: IpAddr,
        client: &'a mut dyn Endpoint,
        [to_stack, from_stack]: [LinkConfig; 2],
    ) {
        self.places.insert(address, self.clients.len());
        self.push(client, to_stack, from_stack);
    }

    /// Ends runs after so many instants, for endpoints that may exchange frames for ever.
    pub fn limit_instants(&mut self, most: u64) {
        self.max_instants = most;
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Frames sent.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames of the stack to addresses that no client has.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Frames that have been passed on and have not arrived.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// What the links of a client have done: to the stack, and from it.
    pub fn counts(&self, client: usize) -> Option<[LinkCounts; 2]> {
        self.clients.get(client).map(|c| [c.to_stack.counts(), c.from_stack.counts()])
    }

    /// Runs until all endpoints are done, or nothing more can happen, or so much time has passed.
    ///
    /// # Errors
    /// [`WireError`] when an endpoint would keep the wire busy for ever.
    pub fn run(
        &mut self,
        limit: Duration,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WireError> {
        let end = self.now + limit;
        let mut instants = 0;
        loop {
            instants += 1;
            if instants > self.max_instants {
                return Err(WireError::Instants(instants));
            }
            self.step(observer)?;
            if self.is_done() {
                return Ok(Outcome::Done);
            }
            let arrival = self.under_way.first_key_value().map(|((time, _), _)| *time);
            let deadline = self.deadlines.first().map(|(time, _)| *time);
            match arrival.into_iter().chain(deadline).min() {
                Some(next) if next <= end => self.now = next,
                Some(_) => return Ok(Outcome::TimeUp),
                None => return Ok(Outcome::Silent),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.stack.is_done() && self.clients.iter().all(|client| client.endpoint.is_done())
    }

    /// Does everything that is due now.
    fn step(&mut self, observer: &mut dyn Observer) -> Result<(), WireError> {
        self.deliver(observer);
        while let Some((time, side)) =
            self.deadlines.first().copied().filter(|(t, _)| *t <= self.now)
        {
            self.deadlines.remove(&(time, side));
            self.deadline_of.remove(&side);
            self.touched.insert(side);
        }
        for side in std::mem::take(&mut self.touched) {
            self.advance(side, observer)?;
        }
        Ok(())
    }

    fn deliver(&mut self, observer: &mut dyn Observer) {
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= self.now
        {
            let Flight { to, client, frame } = entry.remove();
            observer.on_delivered(to, client, &frame, self.now);
            self.touched.insert(to);
            let now = self.now;
            self.endpoint(to).handle_frame(&frame, now);
        }
    }

    fn endpoint(&mut self, side: Side) -> &mut dyn Endpoint {
        match side {
            Side::Stack => self.stack,
            Side::Client(client) => self.clients[client].endpoint,
        }
    }

    fn advance(&mut self, side: Side, observer: &mut dyn Observer) -> Result<(), WireError> {
        let now = self.now;
        let peers = if side == Side::Stack { self.clients.len() as u64 } else { 1 };
        self.endpoint(side).advance(now);
        let mut sent = 0;
        while let Some(frame) = self.endpoint(side).poll_frame(now) {
            sent += 1;
            if sent > BURST * peers {
                return Err(WireError::Endless(side));
            }
            self.send(side, frame, observer);
        }
        let deadline = self.endpoint(side).next_deadline(now);
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Err(WireError::Deadline(side));
        }
        if let Some(old) = self.deadline_of.remove(&side) {
            self.deadlines.remove(&(old, side));
        }
        if let Some(deadline) = deadline {
            self.deadline_of.insert(side, deadline);
            self.deadlines.insert((deadline, side));
        }
        Ok(())
    }

    fn send(&mut self, from: Side, mut frame: Vec<u8>, observer: &mut dyn Observer) {
        self.frames += 1;
        let (client, to) = match from {
            Side::Client(client) => (client, Side::Stack),
            Side::Stack => match self.client_for(&frame) {
                Some(client) => (client, Side::Client(client)),
                None => {
                    self.unroutable += 1;
                    return;
                }
            },
        };
        let links = &mut self.clients[client];
        let link = if to == Side::Stack { &mut links.to_stack } else { &mut links.from_stack };
        let sent = frame.clone();
        let passage = link.send(&mut frame, self.now);
        observer.on_sent(from, client, &sent, passage, self.now);
        if let Passage::Passes { arrivals, .. } = passage {
            for arrival in arrivals.into_iter().flatten() {
                self.flights += 1;
                let flight = Flight { to, client, frame: frame.clone() };
                self.under_way.insert((arrival, self.flights), flight);
            }
        }
    }

    /// The client for a frame of the stack: the one that has its destination, or the only one there is.
    fn client_for(&self, frame: &[u8]) -> Option<usize> {
        if self.places.is_empty() {
            return (!self.clients.is_empty()).then_some(0);
        }
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Raw).ok()?;
        let address = match headers.network {
            Network::Ipv4 => IpAddr::from(<[u8; 4]>::try_from(frame.get(16..20)?).ok()?),
            Network::Ipv6 => IpAddr::from(<[u8; 16]>::try_from(frame.get(24..40)?).ok()?),
            _ => return None,
        };
        self.places.get(&address).copied()
    }
}

#[cfg(test)]
mod tests;
