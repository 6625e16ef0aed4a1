//! What answers requests.

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Sockets of the kernel, and `epoll`.
    Epoll,
    /// `rheo serve echo`.
    Serve {
        /// The kind of its device.
        device: &'static str,
        /// Its polling policy.
        polling: &'static str,
    },
}

impl Peer {
    /// What is measured when nothing else is asked for.
    pub const ALL: [Peer; 3] = [
        Peer::Epoll,
        Peer::Serve { device: "af_xdp", polling: "interrupt" },
        Peer::Serve { device: "af_packet", polling: "interrupt" },
    ];

    /// The name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Peer::Epoll => "epoll",
            Peer::Serve { .. } => "serve",
        }
    }

    /// The device.
    pub const fn device(self) -> &'static str {
        match self {
            Peer::Epoll => "kernel",
            Peer::Serve { device, .. } => device,
        }
    }

    /// How it waits for packets.
    pub const fn polling(self) -> &'static str {
        match self {
            Peer::Epoll => "epoll",
            Peer::Serve { polling, .. } => polling,
        }
    }
}
