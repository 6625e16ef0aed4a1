//! Chains of the functions that come along. Each is compiled here, once for all that run it.

use rheostat_nf::registry::{StaticChain, alone, chain_of, pair};
use rheostat_nf::{AnyChain, ChainError, DynamicChain, Link, OnObjects, Owned};
use rheostat_state::StateLayout;

use crate::nat::SharedNat;
use crate::{AntiDdos, Bridge, Firewall, Lb, Monitor, Nat, Policer, Portscan};

/// The chains that are compiled as a whole: the functions that most packets pass, and those on shared objects, which have one
/// transaction for a burst there, and one for each packet in a chain that is put together at run time. A static: a constant would
/// be compiled once more by each crate that names it.
pub static CHAINS: &[StaticChain] = &[
    alone::<Firewall, Owned>(),
    alone::<Nat, Owned>(),
    pair::<Firewall, Nat>(),
    alone::<Lb, Owned>(),
    alone::<Monitor, Owned>(),
    alone::<Policer, Owned>(),
    alone::<AntiDdos, OnObjects>(),
    alone::<Bridge, OnObjects>(),
    alone::<Portscan, OnObjects>(),
    alone::<SharedNat, OnObjects>(),
];

/// A chain that forwards everything; with a network layer, a router.
pub fn empty() -> AnyChain {
    AnyChain::new(DynamicChain::default(), StateLayout::new())
}

/// The chain of these functions: one of [`CHAINS`] where there is one, otherwise put together at run time.
///
/// # Errors
/// [`ChainError`] when these functions do not make a chain together.
pub fn chain(links: Vec<Box<dyn Link>>) -> Result<AnyChain, ChainError> {
    chain_of(links, CHAINS)
}
