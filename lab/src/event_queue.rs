//! The events of a simulation, in order of time.

/// Agents at most: their numbers stand in the low bits of a moment.
pub(crate) const MOST_AGENTS: usize = 1 << AGENT_BITS;
const AGENT_BITS: u32 = 9;
const NEVER: u64 = u64::MAX;

/// When each agent of a simulation (a lane, a worker) has something to do next. An agent does one thing at a time, so it has one
/// moment at most, and the next of all is found by looking at each: up to a few dozen agents that is cheaper than a heap.
///
/// Moments are in any unit of which fewer than 2^55 are simulated: a year of nanoseconds, ten hours of picoseconds.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The moment and, below it, the agent; [`NEVER`] if it waits for others.
    due: Vec<u64>,
}

/// An event: its moment and its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextEvent(u64);

impl EventQueue {
    /// Nothing is due yet.
    ///
    /// # Panics
    /// With more than [`MOST_AGENTS`].
    pub(crate) fn new(agents: usize) -> EventQueue {
        assert!(agents <= MOST_AGENTS, "{agents} agents are more than an event can name");
        EventQueue { due: vec![NEVER; agents] }
    }

    /// An agent is due at `time`, and no longer at what was set before.
    pub(crate) fn set(&mut self, agent: usize, time: u64) {
        self.due[agent] = (time << AGENT_BITS) | agent as u64;
    }

    /// The next event; at the end of time without one. Of equal moments the agent with the lowest number comes first.
    pub(crate) fn next(&self) -> NextEvent {
        NextEvent(self.due.iter().copied().fold(NEVER, u64::min))
    }

    /// The agent of this event, which is due no longer.
    pub(crate) fn take(&mut self, next: NextEvent) -> usize {
        let agent = next.0 as usize & (MOST_AGENTS - 1);
        self.due[agent] = NEVER;
        agent
    }

    /// The time and the agent of the next event, which is due no longer; `None` if nothing is due up to `until`.
    pub(crate) fn pop(&mut self, until: u64) -> Option<(u64, usize)> {
        let next = self.next();
        let is_due = next != NextEvent(NEVER) && next.time() <= until;
        is_due.then(|| (next.time(), self.take(next)))
    }

    /// Whether nothing is due.
    pub(crate) fn is_empty(&self) -> bool {
        self.next() == NextEvent(NEVER)
    }
}

impl NextEvent {
    /// When; at the end of time for no event.
    pub(crate) fn time(self) -> u64 {
        self.0 >> AGENT_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_event_comes_first_and_a_later_setting_replaces_an_earlier_one() {
        let mut queue = EventQueue::new(4);
        for (agent, time) in [(0, 30), (1, 10), (2, 20), (1, 25), (3, 20)] {
            queue.set(agent, time);
        }
        assert_eq!((queue.next().time(), queue.pop(19)), (20, None));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(u64::MAX)).collect();
        assert_eq!(order, [(20, 2), (20, 3), (25, 1), (30, 0)]);
        assert!(queue.is_empty());
    }
}
