//! The two ends of a connection, and the key that its packets have.

use std::net::SocketAddr;

use rheostat_packet::FlowKey;

/// The ends of a connection as its packets name them: the peer first, whose packets are the only ones that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Ours.
    pub(crate) local: SocketAddr,
    /// The peer's.
    pub(crate) remote: SocketAddr,
}

impl Ends {
    /// Those of the packets with this key.
    pub(crate) fn of(key: &FlowKey) -> Ends {
        Ends {
            local: SocketAddr::new(key.second(), key.second_port()),
            remote: SocketAddr::new(key.first(), key.first_port()),
        }
    }
}
