//! The hosts outside whose packets a mapping lets in (RFC 4787, section 5): those that it has sent to, as long as
//! one of the flows to them lasts.

use std::net::Ipv4Addr;

use rheostat_state::bytemuck::{Pod, Zeroable};
use rheostat_state::object::Map;
use rheostat_state::txn::{Objects, Transactional};

use super::record::Inner;
use rheostat_nf::Outcome;

/// The permissions of all mappings.
#[derive(Clone, Debug)]
pub(super) struct Permissions(Map<Pair, Permission>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
struct Pair {
    inner: Inner,
    remote: u32,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[bytemuck(crate = "rheostat_state::bytemuck")]
#[repr(C)]
struct Permission {
    /// Nanoseconds: none of its flows lives longer.
    until: u64,
    flows: u64,
}

impl Permissions {
    /// Room for `most` of them.
    pub(super) fn new(objects: &Objects, most: usize) -> Permissions {
        Permissions(Map::new(objects, "permissions", most))
    }

    /// One more flow gives a permission. Without room there is none, and only the flow itself lets packets in.
    pub(super) fn grant(
        &self,
        cx: &mut impl Transactional,
        inner: Inner,
        remote: Ipv4Addr,
        until: u64,
    ) -> Outcome<()> {
        let pair = Pair { inner, remote: remote.to_bits() };
        let known = self.0.get(cx, &pair)?.unwrap_or(Permission { until: 0, flows: 0 });
        let permission = Permission { until: known.until.max(until), flows: known.flows + 1 };
        let _full = self.0.set(cx, pair, permission)?;
        Ok(())
    }

    /// A flow that gives a permission lasts longer.
    pub(super) fn extend(
        &self,
        cx: &mut impl Transactional,
        inner: Inner,
        remote: Ipv4Addr,
        until: u64,
    ) -> Outcome<()> {
        let pair = Pair { inner, remote: remote.to_bits() };
        if let Some(known) = self.0.get(cx, &pair)?.filter(|known| known.until < until) {
            let _full = self.0.set(cx, pair, Permission { until, ..known })?;
        }
        Ok(())
    }

    /// A flow that gave a permission is over.
    pub(super) fn revoke(
        &self,
        cx: &mut impl Transactional,
        inner: Inner,
        remote: Ipv4Addr,
    ) -> Outcome<()> {
        let pair = Pair { inner, remote: remote.to_bits() };
        match self.0.get(cx, &pair)? {
            None => {}
            Some(Permission { flows: 0 | 1, .. }) => {
                self.0.remove(cx, &pair)?;
            }
            Some(known) => {
                let left = Permission { flows: known.flows - 1, ..known };
                let _full = self.0.set(cx, pair, left)?;
            }
        }
        Ok(())
    }

    /// Whether a host may send to a mapping.
    pub(super) fn has(
        &self,
        cx: &mut impl Transactional,
        inner: Inner,
        remote: Ipv4Addr,
    ) -> Outcome<bool> {
        let now = cx.txn().now().as_nanos();
        let pair = Pair { inner, remote: remote.to_bits() };
        Ok(self.0.get(cx, &pair)?.is_some_and(|known| known.until > now))
    }

    /// How many there are; outside transactions.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.count()
    }
}
