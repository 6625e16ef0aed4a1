//! A relay: each connection that is accepted is joined to one to another host, and what comes on one leaves on the other.

mod settings;

use std::net::SocketAddr;

use rheostat_base::LaneId;
use rheostat_tcp::CloseReason;

pub use self::settings::{RelaySettings, registration};
use crate::connections::ConnectionId;
use crate::handler::{Handler, SocketEvent};
use crate::sockets::Sockets;

/// Joins connections to one target.
///
/// - Both connections of a pair belong to one shard, so that they move together and no lane waits for another.
/// - What cannot be passed on stays unread, so that the window of its sender closes. Nothing is buffered in between.
/// - The end of one direction ends that direction on the other side. A reset resets the other side.
#[derive(Clone, Debug)]
pub struct Relay {
    targets: Vec<SocketAddr>,
}

/// What a connection of a pair keeps.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// The other one; none before it exists.
    partner: Option<ConnectionId>,
    /// Of a connection to a target: its number.
    target: Option<usize>,
    /// Whether it can be written to.
    is_connected: bool,
}

impl Relay {
    /// A relay to the first of these addresses that accepts: each connection tries them in their order.
    pub fn new(targets: Vec<SocketAddr>) -> Relay {
        Relay { targets }
    }

    /// Connects an accepted connection to the first target from number `first` on that can be tried; resets it when there is none.
    fn join(&self, id: ConnectionId, first: usize, sockets: &mut Sockets<'_, Joined>) {
        for (number, target) in self.targets.iter().enumerate().skip(first) {
            let data = Joined { partner: Some(id), target: Some(number), is_connected: false };
            if let Ok(partner) = sockets.connect(*target, data) {
                if let Some(joined) = sockets.data(id) {
                    joined.partner = Some(partner);
                }
                return;
            }
        }
        sockets.abort(id);
    }
}

impl Handler for Relay {
    type Data = Joined;
    type Worker = ();

    fn worker(&self, _: LaneId) {}

    fn accept(&self, (): &mut (), _local: SocketAddr, _peer: SocketAddr) -> Joined {
        Joined { partner: None, target: None, is_connected: true }
    }

    fn handle(
        &self,
        (): &mut (),
        id: ConnectionId,
        event: SocketEvent,
        sockets: &mut Sockets<'_, Joined>,
    ) {
        if event == SocketEvent::Accepted {
            self.join(id, 0, sockets);
            return;
        }
        let Some(joined) = sockets.data(id) else { return };
        if event == SocketEvent::Connected {
            joined.is_connected = true;
        }
        let Joined { partner, target, is_connected } = *joined;
        let Some(partner) = partner else { return };
        match event {
            SocketEvent::Readable | SocketEvent::PeerFinished => pass_on(id, partner, sockets),
            SocketEvent::Connected | SocketEvent::Writable => pass_on(partner, id, sockets),
            SocketEvent::Closed(CloseReason::Finished) => pass_on(id, partner, sockets),
            SocketEvent::Closed(_) => match target {
                Some(number) if !is_connected => self.join(partner, number + 1, sockets),
                _ => sockets.abort(partner),
            },
            // Each learns of it: both directions end.
            SocketEvent::Draining => {
                pass_on(id, partner, sockets);
                sockets.finish(partner);
            }
            SocketEvent::Accepted | SocketEvent::Urgent | SocketEvent::Woken => {}
        }
    }
}

/// Passes on what has arrived, and the end behind it.
fn pass_on(from: ConnectionId, to: ConnectionId, sockets: &mut Sockets<'_, Joined>) {
    if !sockets.data(to).is_some_and(|joined| joined.is_connected) {
        return;
    }
    match sockets.transfer(from, to) {
        Ok(_) if sockets.is_at_end(from) => sockets.finish(to),
        Ok(_) => {}
        // It has nowhere to go.
        Err(_) => {
            sockets.abort(from);
            sockets.abort(to);
        }
    }
}
