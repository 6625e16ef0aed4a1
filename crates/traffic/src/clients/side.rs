//! The clients of one queue, as its lane sees them: who sends next, and what becomes of what they are sent.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Exp};
use rheostat_base::Time;
use rheostat_io::Rest;
use rheostat_packet::{Burst, Mbuf, PoolCache};

use super::client::{ExchangeClient, ExchangePhase};
use super::frame::{Received, SYN};
use super::population::{Population, PopulationPlace};
use super::{ClientsConfig, Pace, Reply};

/// Connections that are opened at a time before requests are made.
const OPENING: i64 = 256;
/// In this time, every client is looked at once, whether it waits for something too long.
const ROUND: Duration = Duration::from_millis(250);
/// Connections drawn for a request until one is found that waits for nothing.
const DRAWS: usize = 8;

/// What the lane of a queue works with.
#[derive(Default)]
pub(super) struct ClientSide {
    queue: usize,
    random: Option<SmallRng>,
    /// The clients of the queue, by the table of this generation.
    clients: Vec<PopulationPlace>,
    generation: u64,
    /// The client whose segments are being sent.
    sending: Option<PopulationPlace>,
    /// Those that have something to say, from when on.
    ready: VecDeque<(Time, PopulationPlace)>,
    /// Those that have something to acknowledge: when at the latest, and how far.
    unsaid: VecDeque<(Time, PopulationPlace, u32)>,
    /// As far as clients have begun to open their connections; all have without.
    opening: Option<usize>,
    /// As far as clients were looked at, and when that was.
    looked: (usize, Time),
    /// When the next request is due, if requests have a pace.
    next_due: Option<Time>,
    /// When requests were due that have found no client yet.
    late: VecDeque<Time>,
    /// For frames in several buffers.
    joined: Vec<u8>,
    stamp: u32,
}

impl ClientSide {
    pub(super) fn new(config: &ClientsConfig, queue: usize) -> ClientSide {
        let seed = config.seed ^ (queue as u64 + 1) << 32;
        ClientSide {
            queue,
            random: Some(SmallRng::seed_from_u64(seed)),
            opening: config.requests_per_connection.is_none().then_some(0),
            ..ClientSide::default()
        }
    }

    /// Appends frames of clients until the burst is full or there is nothing more to say by `now`.
    pub(super) fn receive(
        &mut self,
        all: &Population,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) {
        // Acquire: pairs with the Release of the rewrite.
        let generation = all.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.clients = all.of_queue(self.queue);
            self.generation = generation;
            self.opening = self.opening.map(|_| 0);
        }
        self.look_round(all, now);
        while !burst.is_full()
            && let Some(place) = self.next_sender(all, now)
        {
            self.sending = Some(place);
            self.send(all, place, burst, pool, now);
        }
    }

    /// The client that is to send next.
    fn next_sender(&mut self, all: &Population, now: Time) -> Option<PopulationPlace> {
        if let Some(place) = self.sending.take() {
            return Some(place);
        }
        let share = &all.queues[self.queue];
        // Relaxed: what has come is behind a lock.
        if share.has_come.load(Ordering::Relaxed) {
            let mut came = share.came.lock().unwrap_or_else(PoisonError::into_inner);
            share.has_come.store(false, Ordering::Relaxed);
            self.ready.extend(came.drain(..));
        }
        while let Some((_, place)) = self.ready.pop_front_if(|(due, _)| *due <= now) {
            if self.is_own(all, place, now) {
                return Some(place);
            }
        }
        while let Some((_, place, expected)) = self.unsaid.pop_front_if(|(due, ..)| *due <= now) {
            let is_late = client(&mut all.bucket(place.bucket), place).acknowledge(expected);
            if is_late && self.is_own(all, place, now) {
                return Some(place);
            }
        }
        match self.opening {
            Some(next) => self.next_to_open(all, next, now),
            None => self.next_request(all, now),
        }
    }

    /// Whether a client's bucket still leads here; if not, its queue gets it.
    fn is_own(&self, all: &Population, place: PopulationPlace, now: Time) -> bool {
        let queue = all.queue_of(place.bucket);
        if queue != self.queue {
            let share = &all.queues[queue];
            share.came.lock().unwrap_or_else(PoisonError::into_inner).push((now, place));
            share.has_come.store(true, Ordering::Relaxed);
        }
        queue == self.queue
    }

    fn next_to_open(
        &mut self,
        all: &Population,
        from: usize,
        now: Time,
    ) -> Option<PopulationPlace> {
        let half_open = &all.queues[self.queue].half_open;
        if half_open.load(Ordering::Relaxed) >= OPENING {
            return None;
        }
        for (at, &place) in self.clients.iter().enumerate().skip(from) {
            let mut bucket = all.bucket(place.bucket);
            let client = client(&mut bucket, place);
            if client.phase == ExchangePhase::Closed {
                self.opening = Some(at + 1);
                client.by = self.queue as u16;
                client.open(now);
                half_open.fetch_add(1, Ordering::Relaxed);
                return Some(place);
            }
        }
        self.opening = Some(self.clients.len());
        if half_open.load(Ordering::Relaxed) == 0 {
            self.opening = None;
        }
        None
    }

    fn next_request(&mut self, all: &Population, now: Time) -> Option<PopulationPlace> {
        let due = match all.config.pace {
            Pace::Saturated { under_way } => {
                let made = all.queues[self.queue].under_way.load(Ordering::Relaxed);
                if made >= under_way.into() {
                    return None;
                }
                now
            }
            Pace::Poisson { per_second } => {
                self.draw_due(per_second, now);
                *self.late.front()?
            }
        };
        let place = self.begin_request(all, due, now)?;
        self.late.pop_front();
        Some(place)
    }

    /// Draws when requests are due, until one is due later than `now`.
    fn draw_due(&mut self, per_second: f64, now: Time) {
        let Some(random) = &mut self.random else { return };
        let Ok(gaps) = Exp::new(per_second) else { return };
        let mut next = *self.next_due.get_or_insert(now);
        while next <= now {
            self.late.push_back(next);
            next += Duration::from_secs_f64(gaps.sample(random).min(3_600.0));
        }
        self.next_due = Some(next);
    }

    fn begin_request(&mut self, all: &Population, due: Time, now: Time) -> Option<PopulationPlace> {
        let random = self.random.as_mut()?;
        for _ in 0..DRAWS {
            if self.clients.is_empty() {
                return None;
            }
            let place = self.clients[random.random_range(0..self.clients.len())];
            let mut bucket = all.bucket(place.bucket);
            let client = client(&mut bucket, place);
            if client.is_busy
                || matches!(client.phase, ExchangePhase::Opening | ExchangePhase::Closing)
            {
                continue;
            }
            if client.phase == ExchangePhase::Closed {
                client.open(now);
            }
            client.request((all.config.request, all.config.reply), due, self.queue as u16, now);
            let share = &all.queues[self.queue];
            share.under_way.fetch_add(1, Ordering::Relaxed);
            share.counters.requests.increment();
            return Some(place);
        }
        None
    }

    /// Sends what a client has to say; of what there is no room for, the rest next time.
    fn send(
        &mut self,
        all: &Population,
        place: PopulationPlace,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) {
        let counters = &*all.queues[self.queue].counters;
        let mut bucket = all.bucket(place.bucket);
        let client = client(&mut bucket, place);
        while !burst.is_full() {
            let Some(sent) = client.poll(now) else {
                self.sending = None;
                return;
            };
            counters.arrived.increment();
            let len = sent.frame_len();
            counters.arrived_bytes.add(len as u64);
            if sent.len == 0 && sent.flags & SYN == 0 {
                counters.acknowledgements.increment();
            }
            let Ok(mut packet) = pool.alloc(len) else {
                // It is as if the network had lost it.
                counters.no_buffer.increment();
                continue;
            };
            let ends = all.ends(client.number);
            sent.write(&ends, packet.data_mut(), |data| client.write(sent.sequence, data));
            packet.set_wire_len(len as u32);
            packet.set_timestamp(now);
            packet.set_device(all.config.device);
            packet.set_hash(client.hash, all.covered);
            packet.set_stamp(self.stamp);
            self.stamp = self.stamp.wrapping_add(1);
            burst.push(packet);
        }
    }

    /// Looks at some clients, whether they wait for something too long.
    fn look_round(&mut self, all: &Population, now: Time) {
        let (from, before) = self.looked;
        let share = now.since(before).as_nanos() as f64 / ROUND.as_nanos() as f64;
        let count = (self.clients.len() as f64 * share.min(1.0)) as usize;
        if count == 0 {
            return;
        }
        let counters = &all.queues[self.queue].counters;
        let places = self.clients.iter().cycle().skip(from % self.clients.len()).take(count);
        for &place in places {
            if client(&mut all.bucket(place.bucket), place).retry(now) {
                counters.sent_again.increment();
                self.ready.push_back((now, place));
            }
        }
        self.looked = ((from + count) % self.clients.len(), now);
    }

    /// Takes a packet that the lane has sent.
    pub(super) fn take(&mut self, all: &Population, packet: &Mbuf, now: Time) {
        let counters = &*all.queues[self.queue].counters;
        let frame = if packet.is_chained() {
            self.joined.clear();
            packet.segments().for_each(|part| self.joined.extend_from_slice(part));
            &self.joined
        } else {
            packet.data()
        };
        let found = Received::parse(frame)
            .and_then(|segment| Some((all.find(segment.client, segment.server)?, segment)));
        let Some((place, segment)) = found else {
            counters.stray.increment();
            return;
        };
        let config = &all.config;
        let mut bucket = all.bucket(place.bucket);
        let client = client(&mut bucket, place);
        let (by, was_busy) = (usize::from(client.by), client.is_busy);
        let checks = config.reply == Reply::Same;
        let outcome = client.handle(&segment, checks, config.ack_delay.is_zero(), now);
        counters.data_segments.add(outcome.data.into());
        counters.damaged.add(outcome.damaged.into());
        counters.repeated.add(outcome.repeated.into());
        counters.reset.add(outcome.reset.into());
        counters.finished_first.add(outcome.finished_first.into());
        counters.closed.add(outcome.closed.into());
        counters.opened.add(outcome.opened.into());
        if outcome.opened && self.opening.is_some() {
            all.queues[by].half_open.fetch_sub(1, Ordering::Relaxed);
        }
        let (mut sends, is_short) = (outcome.sends, config.requests_per_connection);
        if outcome.replied {
            counters.replies.increment();
            counters.latency.record(now.since(client.due()).as_nanos() as u64);
            if is_short.is_some_and(|most| client.requests() >= most) {
                client.close();
                sends = true;
            }
        }
        let is_over = match client.phase {
            ExchangePhase::Closed if outcome.reset => was_busy || is_short.is_some(),
            ExchangePhase::Closed => outcome.closed && (was_busy || is_short.is_some()),
            ExchangePhase::Closing => false,
            ExchangePhase::Opening | ExchangePhase::Open => outcome.replied,
        };
        if is_over {
            client.is_busy = false;
            all.queues[by].under_way.fetch_sub(1, Ordering::Relaxed);
        }
        if sends {
            self.ready.push_back((now + config.delay, place));
        }
        if outcome.acknowledges {
            self.unsaid.push_back((now + config.ack_delay, place, client.expected()));
        }
    }

    /// Whether all connections of the queue were opened that are to be before requests are made.
    pub(super) fn is_open(&self) -> bool {
        self.opening.is_none()
    }

    /// What the lane may do meanwhile.
    pub(super) fn rest(&self, pace: Pace, has_come: bool) -> Rest {
        let saturates = matches!(pace, Pace::Saturated { .. });
        if saturates || has_come || self.sending.is_some() || !self.is_open() {
            return Rest::Awake;
        }
        let late = self.late.front().copied();
        let ready = self.ready.front().map(|(due, _)| *due);
        let unsaid = self.unsaid.front().map(|(due, ..)| *due);
        let next = [late, ready, unsaid, self.next_due].into_iter().flatten().min();
        next.map_or(Rest::Awake, Rest::Until)
    }
}

fn client<'a>(
    bucket: &'a mut MutexGuard<'_, Vec<ExchangeClient>>,
    place: PopulationPlace,
) -> &'a mut ExchangeClient {
    &mut bucket[place.index as usize]
}
