//! A chain that takes the place of another one in all lanes while they run.

use thiserror::Error;

/// Counts the chains that took the place of the first one of a run: that has 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// Why a chain cannot take the place of another one while lanes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unlike {
    /// Its functions are others, or stand in another order.
    #[error("the functions are others, or stand in another order")]
    Functions,
    /// Its functions have their states at other places in the entries of flows: it was not built as the
    /// [next](crate::AnyChain::next) of the chain.
    #[error("the functions keep their states of flows at other places")]
    Layout,
    /// Its functions share other objects.
    #[error("the functions share other objects")]
    Objects,
    /// Flows have other names: the packet set, or whether they have second keys.
    #[error("flows are named by other header fields")]
    Naming,
    /// Packets are placed in shards by other header fields, or by other endpoints that are translated.
    #[error("packets are placed in shards by other header fields or external endpoints")]
    Steering,
    /// The functions decide otherwise for how long flows live, and which tables these are in.
    #[error("flows live by the deadlines of other functions")]
    Lifetimes,
    /// The functions count other things on their fast paths.
    #[error("the functions count other things")]
    Counts,
}
