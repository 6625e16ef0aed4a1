//! Requests in the service, and the order of their replies.

use super::lock::Lock;
use super::source::RequestArrival;

/// No request.
const NONE: u32 = u32::MAX;

/// A request that has arrived and whose reply has not left.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimRequest {
    pub(super) arrived: u64,
    pub(super) service: u64,
    pub(super) connection: u32,
    /// Its place among the requests of its connection.
    pub(super) ticket: u32,
    /// The next request of its connection, or the next free place.
    next: u32,
    pub(super) is_long: bool,
    /// Whether its reply waits for its turn to leave.
    is_done: bool,
}

/// What requests of a connection share.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimConnection {
    /// Around TCP in and TCP out.
    pub(super) lock: Lock,
    /// Workers whose ticket is not due, as bits.
    pub(super) waiting: u64,
    /// The ticket that enters TCP in next.
    pub(super) due: u32,
    next_ticket: u32,
    /// The oldest request without a reply, and the youngest.
    oldest: u32,
    youngest: u32,
}

/// All requests in the service by number, and their connections. Places are used again, so nothing is allocated once as many requests
/// were in the service as ever are.
#[derive(Debug)]
pub(super) struct SimRequests {
    all: Vec<SimRequest>,
    free: u32,
    pub(super) connections: Vec<SimConnection>,
}

impl SimRequests {
    pub(super) fn new(connections: u32) -> SimRequests {
        let empty = SimConnection {
            lock: Lock::new(),
            waiting: 0,
            due: 0,
            next_ticket: 0,
            oldest: NONE,
            youngest: NONE,
        };
        SimRequests { all: Vec::new(), free: NONE, connections: vec![empty; connections as usize] }
    }

    /// A request has arrived: its number. Its ticket is that of its place in the receive queue, which requests of a connection leave
    /// in the order in which they came.
    pub(super) fn insert(&mut self, arrival: &RequestArrival) -> u32 {
        let connection = &mut self.connections[arrival.connection as usize];
        let request = SimRequest {
            arrived: arrival.at,
            service: arrival.service,
            connection: arrival.connection,
            ticket: connection.next_ticket,
            next: NONE,
            is_long: arrival.is_long,
            is_done: false,
        };
        connection.next_ticket = connection.next_ticket.wrapping_add(1);
        let number = if self.free == NONE {
            self.all.push(request);
            (self.all.len() - 1) as u32
        } else {
            let number = self.free;
            self.free = self.all[number as usize].next;
            self.all[number as usize] = request;
            number
        };
        if connection.oldest == NONE {
            connection.oldest = number;
        } else {
            self.all[connection.youngest as usize].next = number;
        }
        connection.youngest = number;
        number
    }

    pub(super) fn get(&self, number: u32) -> &SimRequest {
        &self.all[number as usize]
    }

    pub(super) fn connection_of(&mut self, number: u32) -> &mut SimConnection {
        &mut self.connections[self.all[number as usize].connection as usize]
    }

    /// The application is done with a request. Returns whether its reply can leave: whether those of all earlier requests of the
    /// connection have.
    pub(super) fn complete(&mut self, number: u32) -> bool {
        let request = &mut self.all[number as usize];
        request.is_done = true;
        self.connections[request.connection as usize].oldest == number
    }

    /// Takes the oldest request of a connection out, if its reply can leave.
    pub(super) fn take_ready(&mut self, connection: u32) -> Option<SimRequest> {
        let state = &mut self.connections[connection as usize];
        let number = state.oldest;
        let request = *self.all.get(number as usize).filter(|request| request.is_done)?;
        state.oldest = request.next;
        let place = &mut self.all[number as usize];
        (place.is_done, place.next) = (false, self.free);
        self.free = number;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_leave_in_the_order_of_requests_and_each_once() {
        let mut requests = SimRequests::new(2);
        let arrival =
            |at, connection| RequestArrival { at, service: 1, connection, is_long: false };
        let [a, b, other, c] =
            [(1, 0), (2, 0), (3, 1), (4, 0)].map(|(at, of)| requests.insert(&arrival(at, of)));
        assert_eq!([a, b, c].map(|number| requests.get(number).ticket), [0, 1, 2]);
        assert!(!requests.complete(b) && requests.take_ready(0).is_none());
        assert!(requests.complete(other));
        assert_eq!(requests.take_ready(1).map(|request| request.arrived), Some(3));
        assert!(requests.complete(a));
        let left: Vec<u64> =
            std::iter::from_fn(|| requests.take_ready(0)).map(|request| request.arrived).collect();
        assert_eq!(left, [1, 2]);
        assert!(requests.complete(c));
        assert_eq!(requests.take_ready(0).map(|request| request.arrived), Some(4));
        assert!(requests.take_ready(0).is_none() && requests.take_ready(1).is_none());
        // The places are used again.
        let number = requests.insert(&arrival(5, 1));
        assert!(number < 4 && requests.get(number).ticket == 1);
    }
}
