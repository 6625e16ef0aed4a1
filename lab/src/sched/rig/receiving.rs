//! The end of a queue that lanes receive from.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rheostat_base::{Clock, Time};
use rheostat_io::{ArrivalOrder, Rest, RxQueue, Stamping};
use rheostat_packet::{Burst, PoolCache};

use super::client::RigRequest;
use super::poll::{Poll, millis};
use super::population::{Population, QueueShare, lock};
use super::schedule::{Plan, Schedule, ScheduledArrival, draw_of};

/// Connections of a queue that are being opened at a time.
const OPENING: usize = 128;
/// Milliseconds that a reply waits for a request that acknowledges it.
const ACK_DELAY: u32 = 40;
/// In this time each client is looked at once, whether it has something to acknowledge.
const ROUND: Duration = Duration::from_millis(20);

/// A receive queue. What is due is put into it when it is polled, from the moment on at which it was due.
pub(super) struct Receiving {
    all: Arc<Population>,
    ticks: Clock,
    plan: Arc<Plan>,
    generation: u64,
    /// The time of the last poll. Lanes that read the queue in turn poll by times of their own, of which a later one may be older:
    /// moments of requests and time stamps would go back.
    polled: Time,
    side: ReceivingSide,
}

/// The clients of a queue, as the lane that polls it sees them.
struct ReceivingSide {
    queue: usize,
    /// How many arrivals of the plan were received.
    received: usize,
    clients: Vec<u32>,
    /// How many of them have begun to open their connection.
    opening: usize,
    /// Whose turn it is to make a request in a closed loop.
    turn: usize,
    /// As far as clients were looked at, and when that was.
    looked: (usize, Time),
    /// Clients that have something to send, taken from where others put them.
    ready: Vec<u32>,
    stamp: u32,
}

impl Receiving {
    pub(super) fn new(all: &Arc<Population>, queue: usize, ticks: &Clock) -> Receiving {
        let clients = all.of_queue(queue);
        // Room for each client a few times: nothing is allocated for a request.
        let room = 4 * clients.len() + 64;
        lock(&all.queues[queue].ready).reserve(room);
        let side = ReceivingSide {
            queue,
            received: 0,
            clients,
            opening: 0,
            turn: 0,
            looked: (0, Time::ZERO),
            ready: Vec::with_capacity(room),
            stamp: 0,
        };
        Receiving {
            all: all.clone(),
            ticks: ticks.clone(),
            plan: all.plan(),
            generation: 0,
            polled: Time::ZERO,
            side,
        }
    }

    fn share(&self) -> &QueueShare {
        &self.all.queues[self.side.queue]
    }
}

impl ReceivingSide {
    /// Opens connections, a few at a time.
    fn open(&mut self, poll: &mut Poll<'_>) {
        let opened = poll.share.opened.load(Ordering::Relaxed);
        while self.opening < self.clients.len()
            && self.opening < opened + OPENING
            && !poll.burst.is_full()
        {
            let number = self.clients[self.opening];
            self.opening += 1;
            let mut client = poll.all.client(number);
            let sent = client.open(millis(poll.now));
            poll.put_sent(&client, sent);
        }
    }

    /// What clients send in answer to what they were sent.
    fn answer(&mut self, poll: &mut Poll<'_>) {
        // Relaxed: what is ready is behind the lock.
        if self.ready.is_empty() && poll.share.is_ready.load(Ordering::Relaxed) {
            let mut ready = lock(&poll.share.ready);
            std::mem::swap(&mut *ready, &mut self.ready);
            poll.share.is_ready.store(false, Ordering::Relaxed);
        }
        while !poll.burst.is_full()
            && let Some(number) = self.ready.pop()
        {
            let mut client = poll.all.client(number);
            while !poll.burst.is_full()
                && let Some(varying) = client.next_waiting(millis(poll.now))
            {
                poll.put_request(&client, &varying);
            }
            if poll.burst.is_full() {
                // It may have more; there is room for it, as it was taken from there.
                self.ready.push(number);
                return;
            }
            if let Some(sent) = client.owed(millis(poll.now)) {
                poll.put_acknowledgement(&client, sent);
            }
        }
    }

    /// Looks at some clients, whether they have something to acknowledge.
    fn look_round(&mut self, poll: &mut Poll<'_>) {
        let (from, before) = self.looked;
        let share = poll.now.since(before).as_nanos() as f64 / ROUND.as_nanos() as f64;
        let count = (self.clients.len() as f64 * share.min(1.0)) as usize;
        for place in from..from + count {
            if poll.burst.is_full() {
                return;
            }
            let mut client = poll.all.client(self.clients[place % self.clients.len()]);
            if let Some(sent) = client.overdue(ACK_DELAY, millis(poll.now)) {
                poll.put_acknowledgement(&client, sent);
            }
            self.looked = ((place + 1) % self.clients.len(), poll.now);
        }
    }

    /// Requests that are due.
    fn request(&mut self, plan: &Plan, poll: &mut Poll<'_>) {
        match plan {
            Plan::Idle => {}
            Plan::Closed { under_way } => {
                let most = i64::from(*under_way);
                while !poll.burst.is_full()
                    && poll.share.under_way.load(Ordering::Relaxed) < most
                    && let Some(&number) = self.clients.get(self.turn)
                {
                    self.turn = (self.turn + 1) % self.clients.len();
                    let due = poll.now.as_nanos();
                    begin(poll, number, RigRequest { number: due, draw: draw_of(0, due, number) });
                }
            }
            Plan::Open(schedule) => {
                let Some(now) = poll.now.as_nanos().checked_sub(schedule.start) else { return };
                while !poll.burst.is_full()
                    && let Some(arrival) = schedule.queues[self.queue].get(self.received)
                    && arrival.due <= now
                {
                    self.received += 1;
                    let ScheduledArrival { due, client } = *arrival;
                    let draw = draw_of(schedule.seed, due, client);
                    begin(poll, client, RigRequest { number: schedule.start + due, draw });
                }
            }
        }
    }
}

/// A request of a client becomes due.
fn begin(poll: &mut Poll<'_>, number: u32, request: RigRequest) {
    let mut client = poll.all.client(number);
    // Relaxed: a number alone.
    poll.share.under_way.fetch_add(1, Ordering::Relaxed);
    match client.request(request, millis(poll.now)) {
        Some(varying) => poll.put_request(&client, &varying),
        None => poll.share.receiving.waited.increment(),
    }
}

impl RxQueue for Receiving {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, now: Time) -> usize {
        // Relaxed: neither flag nor generation publishes anything.
        if self.all.is_stopped.load(Ordering::Relaxed) {
            return 0;
        }
        let from = self.ticks.cycles();
        let now = now.max(self.polled);
        self.polled = now;
        let before = burst.len();
        let generation = self.all.generation.load(Ordering::Relaxed);
        if generation != self.generation {
            (self.plan, self.generation) = (self.all.plan(), generation);
            self.side.received = 0;
        }
        let Receiving { all, plan, side, .. } = self;
        let share = &all.queues[side.queue];
        let mut stamp = side.stamp;
        let mut poll = Poll { all, share, burst, pool, now, stamp: &mut stamp };
        if side.opening < side.clients.len() {
            side.open(&mut poll);
        }
        side.answer(&mut poll);
        side.look_round(&mut poll);
        side.request(plan, &mut poll);
        side.stamp = stamp;
        let received = burst.len() - before;
        if received > 0 {
            let to = self.ticks.cycles();
            self.share().receiving.ticks.add(to.0.wrapping_sub(from.0));
            if self.all.config.records_stages {
                // Relaxed: read by the lane itself.
                self.share().received_at.store(to.0, Ordering::Relaxed);
            }
        }
        received
    }

    fn backlog(&self) -> usize {
        match &*self.plan {
            Plan::Open(schedule) => {
                let ReceivingSide { queue, received, .. } = self.side;
                due(schedule, queue, received, self.all.clock.now().as_nanos())
            }
            Plan::Idle | Plan::Closed { .. } => 0,
        }
    }

    fn order(&self) -> ArrivalOrder<'_> {
        ArrivalOrder { stamping: Stamping::Arrival, rings: None }
    }

    fn rest(&mut self, _: &mut PoolCache, now: Time) -> Rest {
        // Relaxed: see above.
        if self.all.is_stopped.load(Ordering::Relaxed) {
            return Rest::Nap;
        }
        let is_open = self.side.opening == self.side.clients.len();
        let is_idle = is_open && matches!(*self.plan, Plan::Idle);
        match is_idle && !self.share().is_ready.load(Ordering::Relaxed) {
            true => Rest::Until(now + Duration::from_millis(1)),
            false => Rest::Awake,
        }
    }
}

/// Requests that are due at `now` behind the first `received`.
fn due(schedule: &Schedule, queue: usize, received: usize, now: u64) -> usize {
    let Some(now) = now.checked_sub(schedule.start) else { return 0 };
    let arrivals = schedule.queues[queue].get(received..).unwrap_or_default();
    arrivals.partition_point(|arrival| arrival.due <= now)
}
