//! Schedulers with network workers that give requests to application workers.

use std::collections::VecDeque;

use rheostat_tcp::sched::{
    Dispatcher as Kind, Outstanding, Queueing, choose_theft, least_loaded_member,
    member_of_connection, members_to_wake,
};

use super::lock::Lock;
use super::receivers::{ReceivedRequest, Receivers};
use super::source::RequestArrival;
use super::system::{System, SystemState, hash_of};
use super::trial::Setting;
use crate::event_queue::NextEvent;

/// A network worker.
#[derive(Debug, Default)]
struct Dispatcher {
    /// Requests that wait for a member.
    central: VecDeque<u32>,
    /// Replies: when they can be seen, the member, the request.
    replies: VecDeque<(u64, usize, u32)>,
    /// Requests that are given at the end of the present work.
    giving: VecDeque<(usize, u32)>,
    activity: Activity,
    /// Members that look for something to steal.
    looking: u32,
}

/// What a network worker does until it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Activity {
    /// It looks at queues that are empty.
    #[default]
    Idle,
    /// TCP in or out, and hand-offs; or nothing, until a reply can be seen.
    Work,
    /// It looks for a queue to steal packets from.
    Look,
    /// It takes packets from a queue, under the queue's lock.
    Take,
    /// It waits until the ticket of its packet is due.
    Wait,
}

/// An application worker.
#[derive(Debug)]
struct Member {
    /// Requests that wait, and when they can be seen.
    inbox: VecDeque<(u64, u32)>,
    lock: Lock,
    step: DispatcherStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DispatcherStep {
    Idle,
    /// It looks for a queue to steal from.
    Look,
    /// It waits until a request can be seen, and takes it.
    Take,
    /// The application.
    Work(u32),
}

/// Network workers with their members.
#[derive(Debug)]
pub(super) struct Dispatchers {
    state: SystemState,
    receivers: Receivers,
    queueing: Queueing,
    dispatchers: Vec<Dispatcher>,
    members: Vec<Member>,
    /// Of each dispatcher.
    each: usize,
    /// What each member of a central queue holds, as its dispatcher knows.
    held: Vec<u32>,
    /// The lengths of the members' queues.
    lengths: Vec<u32>,
    outstanding: Outstanding,
    burst: u32,
    connections: u32,
}

impl Dispatchers {
    pub(super) fn new(setting: &Setting<'_>, kind: Kind) -> Dispatchers {
        let split = kind.split();
        let members = usize::from(split.members());
        let member =
            || Member { inbox: VecDeque::new(), lock: Lock::new(), step: DispatcherStep::Idle };
        Dispatchers {
            state: SystemState::new(setting),
            receivers: Receivers::new(setting),
            queueing: kind.queueing(),
            dispatchers: (0..split.dispatchers()).map(|_| Dispatcher::default()).collect(),
            members: (0..members).map(|_| member()).collect(),
            each: usize::from(split.members_each()),
            held: vec![0; members],
            lengths: vec![0; members],
            outstanding: setting.outstanding,
            burst: setting.burst.max(1),
            connections: setting.connections(),
        }
    }

    fn give_cost(&mut self) -> u64 {
        let is_one = self.outstanding == Outstanding::ONE;
        if is_one { self.state.costs.give_k1() } else { self.state.costs.give_k2() }
    }

    fn take_cost(&mut self) -> u64 {
        let is_one = self.outstanding == Outstanding::ONE;
        if is_one { self.state.costs.take_k1() } else { self.state.costs.take_k2() }
    }

    /// The member that a request goes to now, if any.
    fn member_for(&self, dispatcher: usize, number: u32) -> Option<usize> {
        let first = dispatcher * self.each;
        let own = &self.held[first..first + self.each];
        let member = match self.queueing {
            Queueing::Cfcfs => least_loaded_member(own.iter().copied(), self.outstanding)?,
            Queueing::Dfcfs | Queueing::Ws => {
                let hash = hash_of(self.state.requests.get(number).connection, self.connections);
                // The part of the hash that did not choose the dispatcher.
                let rest = hash.wrapping_mul(self.dispatchers.len() as u32);
                usize::from(member_of_connection(rest, self.each as u16))
            }
        };
        Some(first + member)
    }

    /// Gives a request to a member at the end of the dispatcher's present work: what that takes.
    fn plan_giving(&mut self, dispatcher: usize, member: usize, number: u32) -> u64 {
        if self.queueing == Queueing::Cfcfs {
            self.held[member] += 1;
        }
        self.dispatchers[dispatcher].giving.push_back((member, number));
        self.give_cost()
    }

    /// A dispatcher does the next thing there is to do at `now`: replies first, so that members get work again.
    fn dispatch(&mut self, dispatcher: usize, now: u64) {
        self.set_activity(dispatcher, Activity::Work);
        let reply = self.dispatchers[dispatcher].replies.front();
        let has_reply = reply.is_some_and(|(visible, ..)| *visible <= now);
        let is_ready = has_reply || self.receivers.finds(dispatcher);
        if !is_ready || !self.state.polls.goes_on(dispatcher) {
            let end = self.state.end_poll(dispatcher, now);
            self.state.polls.begin(dispatcher, u32::MAX);
            if end > now {
                self.state.events.set(dispatcher, end);
                return;
            }
        }
        if has_reply {
            let own = &mut self.dispatchers[dispatcher];
            let Some((_, member, number)) = own.replies.pop_front() else { return };
            if self.queueing == Queueing::Cfcfs {
                self.held[member] -= 1;
            }
            let cost = self.take_cost();
            let mut end = self.state.stalls.end(dispatcher, now, cost);
            // A place is free, the one that the reply has left: its member gets work before the reply is sent.
            if let Some(next) = self.dispatchers[dispatcher].central.pop_front() {
                match self.member_for(dispatcher, next) {
                    Some(member) => {
                        let cost = self.plan_giving(dispatcher, member, next);
                        end = self.state.stalls.end(dispatcher, end, cost);
                        self.deliver(dispatcher, end);
                    }
                    None => self.dispatchers[dispatcher].central.push_front(next),
                }
            }
            self.state.polls.note_request(dispatcher, now);
            end = self.state.reply(dispatcher, number, end);
            self.state.events.set(dispatcher, end);
        } else {
            let found = self.receivers.next(&mut self.state, dispatcher, now);
            self.begin_with(dispatcher, found, now);
        }
    }

    /// A dispatcher that has no reply to take goes on with what it has found in receive queues.
    fn begin_with(&mut self, dispatcher: usize, found: ReceivedRequest, now: u64) {
        match found {
            ReceivedRequest::Request(number) => self.enter(dispatcher, number, now),
            ReceivedRequest::Taking(end) => self.go_on_until(dispatcher, Activity::Take, end),
            ReceivedRequest::Looking(end) => self.go_on_until(dispatcher, Activity::Look, end),
            ReceivedRequest::Nothing => {
                self.set_activity(dispatcher, Activity::Idle);
                if let Some((visible, ..)) = self.dispatchers[dispatcher].replies.front() {
                    self.state.events.set(dispatcher, now.max(*visible));
                }
                self.state.rest(dispatcher, now);
            }
        }
    }

    fn set_activity(&mut self, dispatcher: usize, activity: Activity) {
        self.dispatchers[dispatcher].activity = activity;
        self.receivers.set_idle(dispatcher, activity == Activity::Idle);
    }

    fn go_on_until(&mut self, dispatcher: usize, activity: Activity, end: u64) {
        self.set_activity(dispatcher, activity);
        self.state.events.set(dispatcher, end);
    }

    /// A dispatcher enters TCP in with a request if its ticket is due, and waits otherwise.
    fn enter(&mut self, dispatcher: usize, number: u32, now: u64) {
        if !self.receivers.admits(&mut self.state, dispatcher, number) {
            return self.set_activity(dispatcher, Activity::Wait);
        }
        self.receive(dispatcher, number, now);
        while let Some((waiting, other)) = self.receivers.next_due(&mut self.state, number) {
            self.receive(waiting, other, now);
        }
    }

    /// A dispatcher does TCP in for a request, and gives it to a member or keeps it.
    fn receive(&mut self, dispatcher: usize, number: u32, now: u64) {
        let mut end = self.state.receive(dispatcher, number, now);
        match self.member_for(dispatcher, number) {
            Some(member) => {
                let cost = self.plan_giving(dispatcher, member, number);
                end = self.state.stalls.end(dispatcher, end, cost);
            }
            None => self.dispatchers[dispatcher].central.push_back(number),
        }
        self.go_on_until(dispatcher, Activity::Work, end);
    }

    /// A dispatcher that is idle begins at `at`.
    fn begin_at(&mut self, dispatcher: usize, at: u64, now: u64) {
        match at <= now {
            true => self.dispatch(dispatcher, now),
            false => self.go_on_until(dispatcher, Activity::Work, at),
        }
    }

    /// As many idle dispatchers look for packets to steal as packets wait.
    fn rouse_thieves(&mut self, now: u64) {
        while let Some(dispatcher) = self.receivers.thief() {
            let start = self.state.rouse(dispatcher, now);
            let found = self.receivers.look(&mut self.state, start);
            self.begin_with(dispatcher, found, start);
        }
    }

    /// Members get what the dispatcher has given until `now`.
    fn deliver(&mut self, dispatcher: usize, now: u64) {
        while let Some((member, number)) = self.dispatchers[dispatcher].giving.pop_front() {
            let visible = now + self.state.costs.latency();
            self.members[member].inbox.push_back((visible, number));
            self.lengths[member] += 1;
            if self.members[member].step == DispatcherStep::Idle {
                self.take(member, now);
            }
        }
        if self.queueing == Queueing::Ws {
            self.have_looked_at(dispatcher, now);
        }
    }

    fn worker_of(&self, member: usize) -> usize {
        self.dispatchers.len() + member
    }

    /// A member takes a request from its own queue, which is not empty, or rests.
    fn take(&mut self, member: usize, now: u64) {
        let worker = self.worker_of(member);
        let Some((visible, _)) = self.members[member].inbox.front() else {
            self.rest(member, now);
            return;
        };
        let mut start = now.max(*visible);
        if self.members[member].step == DispatcherStep::Idle {
            start = self.state.rouse(worker, start);
        }
        if start <= now {
            self.begin(member, member, now);
            return;
        }
        self.members[member].step = DispatcherStep::Take;
        self.state.events.set(worker, start);
    }

    fn rest(&mut self, member: usize, now: u64) {
        self.members[member].step = DispatcherStep::Idle;
        let worker = self.worker_of(member);
        self.state.rest(worker, now);
    }

    /// A member begins with the first request in the queue of `victim`, which it may steal from.
    fn begin(&mut self, member: usize, victim: usize, now: u64) {
        let worker = self.worker_of(member);
        let Some((visible, number)) = self.members[victim].inbox.pop_front() else {
            self.rest(member, now);
            return;
        };
        self.lengths[victim] -= 1;
        let mut start = now.max(visible);
        if self.queueing == Queueing::Ws {
            let (got_at, got) = self.members[victim].lock.take(worker, start);
            let cost = self.state.queue_lock(got);
            start = self.state.stalls.end(worker, got_at, cost);
            self.members[victim].lock.give_back(start);
        }
        let service = self.state.requests.get(number).service;
        let cost = self.state.costs.member() + service;
        let end = self.state.stalls.end(worker, start, cost);
        self.members[member].step = DispatcherStep::Work(number);
        self.state.events.set(worker, end);
    }

    /// As many idle members of a dispatcher look for something to steal as there is waiting.
    fn have_looked_at(&mut self, dispatcher: usize, now: u64) {
        let own = dispatcher * self.each..(dispatcher + 1) * self.each;
        let waits = |member: &usize| match self.members[*member].step {
            // These are about to take one.
            DispatcherStep::Take => self.lengths[*member].saturating_sub(1),
            _ => self.lengths[*member],
        };
        let waiting: u32 = own.clone().map(|member| waits(&member)).sum();
        if waiting == 0 {
            return;
        }
        let is_idle = |member: &usize| self.members[*member].step == DispatcherStep::Idle;
        let idle = own.clone().filter(is_idle).count() as u32;
        let woken = members_to_wake(waiting, self.dispatchers[dispatcher].looking, idle);
        for _ in 0..woken {
            let idle =
                own.clone().find(|member| self.members[*member].step == DispatcherStep::Idle);
            let Some(member) = idle else { return };
            let start = self.state.rouse(self.worker_of(member), now);
            self.look(member, start);
        }
    }

    fn look(&mut self, member: usize, start: u64) {
        let worker = self.worker_of(member);
        self.dispatchers[member / self.each].looking += 1;
        self.members[member].step = DispatcherStep::Look;
        let end = start + self.state.costs.steal();
        self.state.events.set(worker, end);
    }

    /// A member has nothing in work.
    fn go_on(&mut self, member: usize, now: u64) {
        let first = member / self.each * self.each;
        if !self.members[member].inbox.is_empty() {
            self.take(member, now);
        } else if self.queueing == Queueing::Ws
            && choose_theft(member - first, &self.lengths[first..first + self.each], self.burst)
                .is_some()
        {
            self.look(member, now);
        } else {
            self.rest(member, now);
        }
    }

    fn advance_member(&mut self, member: usize, now: u64) {
        let dispatcher = member / self.each;
        match self.members[member].step {
            DispatcherStep::Idle => {}
            DispatcherStep::Take => self.begin(member, member, now),
            DispatcherStep::Look => {
                self.dispatchers[dispatcher].looking -= 1;
                let first = dispatcher * self.each;
                let own = &self.lengths[first..first + self.each];
                let theft = choose_theft(member - first, own, self.burst);
                if !self.members[member].inbox.is_empty() {
                    self.take(member, now);
                } else if let Some(theft) = theft {
                    let victim = first + theft.victim;
                    // A burst is moved; its first request is begun with.
                    for _ in 1..theft.requests {
                        let moved = self.members[victim].inbox.remove(1);
                        self.members[member].inbox.extend(moved);
                        self.lengths[victim] -= 1;
                        self.lengths[member] += 1;
                    }
                    self.begin(member, victim, now);
                } else {
                    self.rest(member, now);
                }
                self.have_looked_at(dispatcher, now);
            }
            DispatcherStep::Work(number) => {
                let visible = now + self.state.costs.latency();
                let own = &mut self.dispatchers[dispatcher];
                let is_first = own.replies.is_empty();
                own.replies.push_back((visible, member, number));
                if own.activity == Activity::Idle && is_first {
                    let at = self.state.rouse(dispatcher, visible);
                    if at <= now {
                        self.dispatch(dispatcher, now);
                    } else {
                        self.state.events.set(dispatcher, at);
                    }
                }
                self.go_on(member, now);
            }
        }
    }
}

impl System for Dispatchers {
    fn arrive(&mut self, arrival: &RequestArrival) {
        let number = self.state.requests.insert(arrival);
        match self.receivers.arrive(number, arrival.connection) {
            Some(dispatcher) => {
                let at = self.state.rouse(dispatcher, arrival.at);
                self.begin_at(dispatcher, at, arrival.at);
            }
            None => self.rouse_thieves(arrival.at),
        }
    }

    fn advance(&mut self, next: NextEvent) {
        let (now, worker) = (next.time(), self.state.events.take(next));
        match worker.checked_sub(self.dispatchers.len()) {
            None if self.dispatchers[worker].activity == Activity::Look => {
                let found = self.receivers.end_look(&mut self.state, worker, now);
                match found {
                    // A reply may have come meanwhile.
                    ReceivedRequest::Nothing => self.dispatch(worker, now),
                    found => self.begin_with(worker, found, now),
                }
                self.rouse_thieves(now);
            }
            None => {
                self.deliver(worker, now);
                self.dispatch(worker, now);
            }
            Some(member) => self.advance_member(member, now),
        }
    }

    fn state(&self) -> &SystemState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut SystemState {
        &mut self.state
    }
}
