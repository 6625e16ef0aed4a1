//! Clients on the link of a simulated interface. They ask at random, remember what they asked, and know
//! what each answer must be.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat::service::{Ethernet, FrameBuilder, LinkType, Mbuf, Payload, Sink, Transport, Tuple};
use rheostat::wire::udp;
use rheostat::{Arrival, Headers, Source, Time};

use super::request::{Command, Request};
use super::service::{PORT, digest};

/// One client, by its port.
type Client = u16;

/// How many there are, and what they do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) seed: u64,
    pub(crate) clients: u16,
    /// Requests of all of them together.
    pub(crate) requests: u32,
    /// From one request to the next.
    pub(crate) gap: Duration,
}

/// What clients know of their requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// What each client has asked and was not answered, oldest first.
    asked: HashMap<Client, VecDeque<String>>,
    /// What each client has set: the value of each key.
    values: HashMap<Client, BTreeMap<String, String>>,
    observed: Observed,
}

/// What came of all requests so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) asked: u64,
    /// Answered as they must be, in the order they were asked.
    pub(crate) answered: u64,
    /// The first answers that were wrong, out of order, or not asked for.
    pub(crate) wrong: Vec<String>,
}

/// The source of requests.
pub(crate) struct Clients {
    load: Load,
    rng: StdRng,
    number: u32,
    book: Book,
}

/// The sink of answers.
pub(crate) struct Answers(Book);

impl Book {
    /// Clients that write into this book, and one sink of answers per queue.
    pub(crate) fn clients(&self, load: Load) -> Clients {
        Clients { load, rng: StdRng::seed_from_u64(load.seed), number: 0, book: self.clone() }
    }

    pub(crate) fn sink(&self) -> Box<dyn Sink> {
        Box::new(Answers(self.clone()))
    }

    pub(crate) fn observed(&self) -> Observed {
        self.write(|entries| entries.observed.clone())
    }

    fn write<T>(&self, f: impl FnOnce(&mut Entries) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    /// Looks at an answer. What was asked before and not answered was dropped on the way, and not done.
    fn check(&mut self, client: Client, answer: &str) {
        let number = |line: &str| line.split(' ').next().map(str::to_owned);
        let asked = self.asked.entry(client).or_default();
        let place = asked.iter().position(|asked| number(asked) == number(answer));
        let request = place.and_then(|place| asked.drain(..=place).next_back());
        let expected = request.map(|request| self.expected(client, &request));
        match expected {
            Some(expected) if expected == answer => self.observed.answered += 1,
            // Enough to see what is wrong.
            _ if self.observed.wrong.len() > 8 => {}
            expected => {
                let expected =
                    expected.unwrap_or_else(|| "nothing: it was not asked, or is late".into());
                self.observed
                    .wrong
                    .push(format!("client {client} got {answer}, expected {expected}"));
            }
        }
    }

    /// The answer to a request that is done now.
    fn expected(&mut self, client: Client, request: &str) -> String {
        let Request { number, key, command } = match Request::parse(request.as_bytes()) {
            Ok(request) => request,
            Err(refusal) => return refusal.to_string(),
        };
        let values = self.values.entry(client).or_default();
        match command {
            Command::Set(value) => {
                let digest = digest(&value);
                values.insert(key, value);
                format!("{number} STORED {digest:016x}")
            }
            Command::Get => match values.get(&key) {
                Some(value) => format!("{number} VALUE {:016x} {value}", digest(value)),
                None => format!("{number} NONE"),
            },
            Command::Delete => match values.remove(&key) {
                Some(_) => format!("{number} DELETED"),
                None => format!("{number} NONE"),
            },
        }
    }
}

impl Clients {
    fn request(&mut self) -> String {
        let (number, rng) = (self.number, &mut self.rng);
        let key = format!("key-{}", rng.random_range(0..4));
        match rng.random_range(0..100) {
            0..45 => format!("{number} SET {key} {}", "x".repeat(rng.random_range(0..64))),
            45..85 => format!("{number} GET {key}"),
            85..98 => format!("{number} DEL {key}"),
            _ => format!("{number} SET {key}"),
        }
    }
}

impl Source for Clients {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.number == self.load.requests {
            return None;
        }
        self.number += 1;
        let request = self.request();
        let client = 1_024 + self.rng.random_range(0..self.load.clients);
        let (from, to): (IpAddr, IpAddr) = match client % 2 {
            0 => (Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into()),
            _ => {
                let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
                (address(2).into(), address(1).into())
            }
        };
        let link =
            Ethernet { source: [2, 0, 0, 0, 0, 2], destination: [2, 0, 0, 0, 0, 1], vlan: None };
        let udp = Transport::Udp { ports: (client, PORT) };
        let packet = FrameBuilder::new(from, to, udp, Payload::Bytes(request.as_bytes()));
        *frame = packet.with_ethernet(link).to_vec();
        self.book.write(|entries| {
            entries.observed.asked += 1;
            entries.asked.entry(client).or_default().push_back(request);
        });
        let (len, time) = (frame.len(), Time::ZERO + self.load.gap * self.number);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

impl Sink for Answers {
    fn take(&mut self, packets: &[Mbuf]) {
        self.0.write(|entries| {
            for packet in packets {
                let bytes = packet.to_vec();
                let headers = Headers::parse_bytes(&bytes, bytes.len(), LinkType::Ethernet);
                let headers = headers.expect("an answer has headers");
                let Tuple::Flow(key) = Tuple::of_bytes(&bytes, &headers) else {
                    panic!("an answer is a datagram");
                };
                let data = &bytes[usize::from(headers.l4) + udp::HEADER..headers.end as usize];
                entries.check(key.second_port(), &String::from_utf8_lossy(data));
            }
        });
    }
}
