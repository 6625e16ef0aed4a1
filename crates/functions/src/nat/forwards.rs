//! External endpoints with a fixed inner one.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::config::Forward;

/// Static forwards, found from either end.
#[derive(Clone, Debug, Default)]
pub(super) struct Forwards {
    by_external: HashMap<(u8, Ipv4Addr, u16), (Ipv4Addr, u16)>,
    by_internal: HashMap<(u8, Ipv4Addr, u16), (Ipv4Addr, u16)>,
}

impl Forwards {
    pub(super) fn new(forwards: &[Forward]) -> Forwards {
        let mut found = Forwards::default();
        for forward in forwards {
            let Forward { protocol, external, internal } = *forward;
            found.by_external.insert((protocol, external.0, external.1), internal);
            // Of several ways in, the first is the way out.
            found.by_internal.entry((protocol, internal.0, internal.1)).or_insert(external);
        }
        found
    }

    /// Where packets to this external endpoint go.
    pub(super) fn internal(&self, protocol: u8, end: (Ipv4Addr, u16)) -> Option<(Ipv4Addr, u16)> {
        self.by_external.get(&(protocol, end.0, end.1)).copied()
    }

    /// What stands for this inner endpoint.
    pub(super) fn external(&self, protocol: u8, end: (Ipv4Addr, u16)) -> Option<(Ipv4Addr, u16)> {
        self.by_internal.get(&(protocol, end.0, end.1)).copied()
    }

    /// The ways in: protocol, external endpoint and inner one.
    pub(super) fn inbound(&self) -> impl Iterator<Item = (u8, (Ipv4Addr, u16), (Ipv4Addr, u16))> {
        self.by_external
            .iter()
            .map(|(&(protocol, address, port), &internal)| (protocol, (address, port), internal))
    }

    /// The fixed translations, inner endpoint to external one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, (Ipv4Addr, u16), (Ipv4Addr, u16))> {
        self.by_internal
            .iter()
            .map(|(&(protocol, address, port), &external)| (protocol, (address, port), external))
    }
}
