//! Why a packet was dropped. Every drop has one of these reasons and is counted under it.

mod own;

pub use own::{DropReasonError, OwnDropReason};

use crate::Counter;

macro_rules! drop_reasons {
    (
        $($(#[doc = $doc:literal])* $variant:ident = $name:literal,)*
        ; $($slot:ident)*
    ) => {
        /// Why a packet was dropped: a reason of rheostat's, or one that a function has added
        /// ([`OwnDropReason`]).
        ///
        /// One byte whose range the compiler knows: counters are an array, indexed without a check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $($(#[doc = $doc])* $variant,)*
            $(#[doc(hidden)] $slot,)*
        }

        /// The reasons of rheostat, in the order of their numbers.
        const SHIPPED: &[DropReason] = &[$(DropReason::$variant,)*];

        /// The numbers that functions' own reasons get, in this order. They follow those of rheostat.
        const SLOTS: &[DropReason] = &[$(DropReason::$slot,)*];

        impl DropReason {
            /// The name under which the reason appears in summaries and metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(DropReason::$variant => $name,)*
                    $(DropReason::$slot)|* => own::of(self).map_or("unregistered", OwnDropReason::name),
                }
            }

            /// What the reason means, for people: a sentence or two.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(DropReason::$variant => concat!($($doc),*).trim_ascii(),)*
                    $(DropReason::$slot)|* => own::of(self).map_or("", OwnDropReason::meaning),
                }
            }
        }
    };
}

drop_reasons! {
    /// A receive queue of a device was full.
    QueueFull = "queue_full",
    /// The packet pool had no buffer for an arriving or an originated packet.
    NoBuffer = "no_buffer",
    /// The FILL ring of an AF_XDP queue was empty: lanes had not given the kernel enough buffers for what arrived.
    FillEmpty = "fill_empty",
    /// A header is cut short, contradicts itself or claims more bytes than there are.
    Malformed = "malformed",
    /// The frame is longer than a chain of buffers may be.
    Oversize = "oversize",
    /// The ring to the lane that owns the packet's shard was full.
    HandoffFull = "handoff_full",
    /// Too many packets waited for their shard to come from another lane.
    HoldFull = "hold_full",
    /// The pool that was to work for the packet has as much to do as it may.
    PoolFull = "pool_full",
    /// A transmit queue had no room for the packet.
    TransmitFull = "transmit_full",
    /// The interface that the packet should leave by is down or gone.
    LinkDown = "link_down",
    /// The operating system or the interface refused to send the packet: the other end of a virtual link does
    /// not take packets of that length, the card was full, or the packet still waited when the run ended.
    TransmitRefused = "transmit_refused",
    /// The shard's flow table was full and nothing in it could be evicted.
    TableFull = "table_full",
    /// The fragment tracker of the shard was full.
    FragmentsFull = "fragments_full",
    /// A fragment overlaps another one, runs past the longest datagram, or disagrees about its end.
    FragmentInvalid = "fragment_invalid",
    /// The first fragment of the datagram never came.
    FragmentIncomplete = "fragment_incomplete",
    /// A rule or the default policy denies the packet.
    Denied = "denied",
    /// The packet is not IP and its ethertype is not let through.
    NotIp = "not_ip",
    /// A TCP segment that does not fit the state or the windows of its connection, or that belongs to
    /// no connection and cannot open one.
    TcpInvalid = "tcp_invalid",
    /// A TCP segment for a port at which this machine's own service listens that belongs to no connection and opens none: mostly one
    /// that was under way when its connection was reset.
    NoConnection = "no_connection",
    /// There are as many half-open TCP connections as there may be: in the packet's shard, or of this machine's own service.
    HalfOpenLimit = "half_open_limit",
    /// The checksum of a TCP segment for this machine is wrong.
    TcpChecksum = "tcp_checksum",
    /// A SYN for this machine, whose TCP service has as many connections as it may.
    ConnectionLimit = "connection_limit",
    /// A SYN for this machine, whose TCP service is short of memory for data: in the packet's shard, or in total.
    ConnectionMemory = "connection_memory",
    /// An ICMP error or reply that belongs to no flow.
    IcmpUnrelated = "icmp_unrelated",
    /// The packet comes from outside, and no host inside has its destination as a mapping.
    NoMapping = "no_mapping",
    /// There was no external port, or address, for a new flow.
    PortsExhausted = "ports_exhausted",
    /// The subscriber has as much as he may have.
    QuotaExceeded = "quota_exceeded",
    /// The packet's addresses cannot be translated: its checksum cannot be kept, or headers are missing.
    Untranslatable = "untranslatable",
    /// The packet is beyond the rate and the burst it is held to.
    Policed = "policed",
    /// No device leads to where the packet should go.
    NoRoute = "no_route",
    /// The packet is longer than the link or the path to where it should go carries, and may not be
    /// fragmented.
    TooBig = "too_big",
    /// The packet is one of IPv6, and the MTU of its interface is below the 1,280 bytes that IPv6 needs (RFC
    /// 8200, section 5).
    Ipv6Off = "ipv6_off",
    /// The frame is for another station on the link, or in another VLAN.
    NotOurs = "not_ours",
    /// The packet has an address that no packet here can have, or names its own way.
    Martian = "martian",
    /// The packet has passed as many routers as it may.
    TtlExceeded = "ttl_exceeded",
    /// The packet is for many, or its addresses mean nothing beyond their link: it is not passed on.
    NotRouted = "not_routed",
    /// The next hop does not say its link address, or too many packets wait for that already.
    NeighbourUnresolved = "neighbour_unresolved",
    /// The packet is for this machine itself, and no local service takes it.
    NoListener = "no_listener",
    /// The frame is for a station on the port it came from.
    SamePort = "same_port",
    /// The packet would open a flow while too many flows have one packet.
    UnderAttack = "under_attack",
    /// The packet would open a connection of a host that scans.
    Scanner = "scanner",
    /// No backend takes the flow.
    NoBackend = "no_backend",
    /// A handler gave up on the packet.
    HandlerAbort = "handler_abort",
    /// A handler panicked on the packet.
    HandlerPanic = "handler_panic",
    /// A function dropped the packet for a reason of its own that could not be registered: more than 64 are in use,
    /// or two have one name.
    Unregistered = "unregistered",

    // The numbers of functions' own reasons.
    ;
    Own00 Own01 Own02 Own03 Own04 Own05 Own06 Own07 Own08 Own09 Own10 Own11 Own12 Own13 Own14 Own15
    Own16 Own17 Own18 Own19 Own20 Own21 Own22 Own23 Own24 Own25 Own26 Own27 Own28 Own29 Own30 Own31
    Own32 Own33 Own34 Own35 Own36 Own37 Own38 Own39 Own40 Own41 Own42 Own43 Own44 Own45 Own46 Own47
    Own48 Own49 Own50 Own51 Own52 Own53 Own54 Own55 Own56 Own57 Own58 Own59 Own60 Own61 Own62 Own63
}

impl DropReason {
    /// How many numbers reasons have: those of rheostat, and 64 for the ones that functions add.
    pub const COUNT: usize = SHIPPED.len() + SLOTS.len();

    /// Every reason in use: those of rheostat, then those that functions have registered, in this order.
    pub fn all() -> impl Iterator<Item = DropReason> + Clone {
        SHIPPED.iter().chain(&SLOTS[..own::count()]).copied()
    }

    /// The reason of this name, if one is in use.
    pub fn named(name: &str) -> Option<DropReason> {
        DropReason::all().find(|reason| reason.name() == name)
    }
}

/// One counter per drop reason.
#[derive(Debug)]
pub struct DropCounters([Counter; DropReason::COUNT]);

impl Default for DropCounters {
    fn default() -> DropCounters {
        DropCounters([const { Counter::new() }; DropReason::COUNT])
    }
}

impl DropCounters {
    /// Counts `n` packets dropped for `reason`.
    #[inline]
    pub fn add(&self, reason: DropReason, n: u64) {
        self.0[reason as usize].add(n);
    }

    /// Packets dropped for `reason`.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize].get()
    }

    /// Packets dropped, indexed by reason.
    pub fn sample(&self) -> [u64; DropReason::COUNT] {
        std::array::from_fn(|number| self.0[number].get())
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_numbers_dense() {
        let names: HashSet<_> = SHIPPED.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), SHIPPED.len());
        for (number, reason) in SHIPPED.iter().chain(SLOTS).enumerate() {
            assert_eq!(*reason as usize, number);
        }
    }
}
