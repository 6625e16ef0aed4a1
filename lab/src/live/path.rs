//! The ways from source to sink that are compared.

/// What stands in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LivePath {
    /// Nothing: frames are dropped as they arrive. What the source alone costs, and so no row.
    Nothing,
    /// `rheo` with a chain without functions, over `af_xdp`: forwarding without state.
    RheoForward,
    /// `rheo` with NAT and addresses on its devices, over `af_xdp`.
    RheoNat,
    /// The kernel's forwarding with masquerading by nftables.
    NftMasquerade,
    /// A bare loop between two AF_XDP sockets: the least that forwarding in user space costs.
    XdpBounce,
    /// An XDP program that redirects from interface to interface: the least there is.
    XdpRedirect,
}

impl LivePath {
    /// Those with rows, what is measured first.
    pub const ALL: [LivePath; 5] = [
        LivePath::RheoForward,
        LivePath::XdpBounce,
        LivePath::RheoNat,
        LivePath::NftMasquerade,
        LivePath::XdpRedirect,
    ];

    /// Its name in rows and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LivePath::Nothing => "nothing",
            LivePath::RheoForward => "rheo-forward",
            LivePath::RheoNat => "rheo-nat",
            LivePath::NftMasquerade => "nft-masquerade",
            LivePath::XdpBounce => "xdp-bounce",
            LivePath::XdpRedirect => "xdp-redirect",
        }
    }

    /// How the middle meets the interfaces, as rows have it.
    pub fn device(self) -> &'static str {
        match self {
            LivePath::Nothing | LivePath::XdpRedirect => "xdp",
            LivePath::RheoForward | LivePath::RheoNat | LivePath::XdpBounce => "af_xdp",
            LivePath::NftMasquerade => "kernel",
        }
    }

    /// Where its packets end.
    pub(super) fn sink(self) -> SinkPlace {
        match self {
            LivePath::Nothing => SinkPlace::Middle,
            // Takes part in redirecting: without a program there, nothing would be sent.
            LivePath::XdpRedirect => SinkPlace::Far,
            _ => SinkPlace::Host,
        }
    }
}

/// Where packets are counted and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkPlace {
    /// As they reach the middle.
    Middle,
    /// Behind it, by a program for XDP.
    Far,
    /// Behind it, where a host would get them.
    Host,
}
