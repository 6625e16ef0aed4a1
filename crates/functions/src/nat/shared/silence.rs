//! Unsolicited SYNs that wait to be answered (RFC 5382, REQ-4): leases that end when the silence does.

use std::time::Duration;

use rheostat_packet::FlowKey;
use rheostat_state::bytemuck::{Pod, Zeroable};
use rheostat_state::object::{Allocator, Lease, Map};
use rheostat_state::txn::{Objects, Transactional};

use super::record::{Name, name_of};
use crate::nat::syn::Syn;
use rheostat_nf::Outcome;
use rheostat_nf::Packet;

/// SYNs kept at a time for each lane; those beyond are never answered.
const MOST: usize = 64;

/// The SYNs that wait.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    waiting: Allocator<Waiting>,
    names: Map<Name, Lease>,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
struct Waiting {
    name: Name,
    syn: Syn,
}

impl Silence {
    /// Silence that lasts so long.
    pub(super) fn new(objects: &Objects, lasts: Duration) -> Silence {
        let most = MOST * objects.lanes();
        Silence {
            waiting: Allocator::new(objects, "unsolicited SYNs", most, &[lasts], Duration::ZERO),
            names: Map::new(objects, "names of unsolicited SYNs", most),
        }
    }

    /// Lasts so long from the next SYN on.
    pub(super) fn lasting(self, lasts: Duration) -> Silence {
        Silence { waiting: self.waiting.with_lifetimes(&[lasts], Duration::ZERO), ..self }
    }

    /// Notes an unsolicited SYN, once.
    pub(super) fn note(&self, cx: &mut impl Transactional, packet: &Packet<'_>) -> Outcome<()> {
        let name = name_of(&packet.arrival_key());
        if self.names.get(cx, &name)?.is_some() {
            return Ok(());
        }
        let syn = Syn::of(packet);
        if let Some(lease) = self.waiting.allocate(cx, Waiting { name, syn }, 0)?
            && self.names.set(cx, name, lease)?.is_err()
        {
            self.waiting.free(cx, lease)?;
        }
        Ok(())
    }

    /// Inside opens the connection whose packets from outside have `key`: it is not answered any more.
    pub(super) fn forget(&self, cx: &mut impl Transactional, key: &FlowKey) -> Outcome<()> {
        let name = name_of(key);
        if let Some(lease) = self.names.get(cx, &name)?
            && self.waiting.free(cx, lease)?
        {
            self.names.remove(cx, &name)?;
        }
        Ok(())
    }

    /// A SYN of this lane's whose time has come.
    pub(super) fn next(&self, cx: &mut impl Transactional) -> Outcome<Option<Syn>> {
        let Some((lease, Waiting { name, syn })) = self.waiting.expired(cx)? else {
            return Ok(None);
        };
        if self.names.get(cx, &name)? == Some(lease) {
            self.names.remove(cx, &name)?;
        }
        Ok(Some(syn))
    }
}
