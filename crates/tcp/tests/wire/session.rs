//! Runs two hosts until both are done.

use std::time::Duration;

use rheostat_base::Time;

use super::frame;
use super::host::Host;
use super::link::{Link, LinkConfig};
use super::observer::Observer;

/// Frames that a host may send at one instant. More would mean that it never stops.
const BURST: usize = 4_000;

/// Frames and instants of a session. More would mean that it never ends.
const MOST: u64 = 200_000;

/// Two hosts and what lies between them.
pub(crate) struct Session<'a> {
    hosts: [&'a mut dyn Host; 2],
    /// The link from each host.
    links: [Link; 2],
    observer: Observer,
    pub(crate) now: Time,
    pub(crate) frames: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        hosts: [&'a mut dyn Host; 2],
        links: [LinkConfig; 2],
        seed: u64,
    ) -> Session<'a> {
        let [there, back] = links;
        Session {
            hosts,
            links: [Link::new(there, seed), Link::new(back, seed ^ 0x5eed)],
            observer: Observer::default(),
            now: Time::ZERO,
            frames: 0,
        }
    }

    /// Runs until both hosts are done, or nothing more can happen, or so much time has passed. Returns whether both are done.
    ///
    /// # Panics
    /// When a window is not honoured, or a host sends without end or wants to be called at once without end.
    pub(crate) fn run(&mut self, limit: Duration) -> bool {
        let end = self.now + limit;
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < MOST, "calls without end");
            self.step();
            if self.hosts.iter().all(|host| host.is_done()) {
                return true;
            }
            let now = self.now;
            let deadlines = self.hosts.iter_mut().filter_map(|host| host.next_deadline(now));
            let deadline = deadlines.min();
            assert!(deadline.is_none_or(|deadline| deadline > now), "a deadline does not pass");
            let arrivals = self.links.iter().filter_map(Link::next_arrival);
            match arrivals.chain(deadline).min() {
                Some(next) if next <= end => self.now = next,
                _ => return false,
            }
        }
    }

    fn step(&mut self) {
        for to in 0..2 {
            while let Some(frame) = self.links[1 - to].receive(self.now) {
                let host = &mut self.hosts[to];
                if let Some(segment) = frame::read(&frame, host.address()) {
                    self.observer.on_delivered(to, &segment);
                }
                host.handle_frame(&frame, self.now);
            }
        }
        for from in 0..2 {
            self.hosts[from].advance(self.now);
            let peer = self.hosts[1 - from].address();
            let mut sent = 0;
            while let Some(frame) = self.hosts[from].poll_frame(self.now) {
                sent += 1;
                assert!(sent <= BURST, "a host sends without end");
                let segment = frame::read(&frame, peer).expect("hosts send whole segments");
                self.observer.on_sent(from, &segment);
                self.links[from].send(frame, self.now);
            }
            self.frames += sent as u64;
            assert!(self.frames < MOST, "an exchange without end");
        }
    }
}
