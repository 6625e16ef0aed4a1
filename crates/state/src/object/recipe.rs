//! What to do about conflicts.

/// What the user of an object can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Recipe {
    /// Use a [`Distributed`](super::Distributed) object in its place, or read older values of one.
    Distribute,
    /// A larger map, or another hash.
    EnlargeMap,
    /// More resources.
    ProvisionMore,
    /// Prolong leases less often.
    RaiseRefreshInterval,
    /// Allow older values.
    RaiseStaleness,
    /// Nothing in general: both lanes work on the same thing, which a coarser packet set would give to one.
    CoarserPacketSet,
}

impl Recipe {
    /// A sentence for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Recipe::Distribute => {
                "use a Distributed object for what is contended, or read older values of it"
            }
            Recipe::EnlargeMap => "make the map larger, or give it another hash",
            Recipe::ProvisionMore => "provision more resources",
            Recipe::RaiseRefreshInterval => "raise the refresh interval",
            Recipe::RaiseStaleness => "raise the maximum staleness",
            Recipe::CoarserPacketSet => {
                "choose a coarser packet set, so that one lane gets what belongs together"
            }
        }
    }
}
