//! Chains of the functions that come along. Each is compiled here, once for all that run it.

use rheostat_state::txn::Objects;
use rheostat_state::{LayoutError, StateLayout};

use crate::nat::SharedNat;
use crate::{AntiDdos, Bridge, Firewall, Lb, Monitor, Nat, Policer, Portscan};
use rheostat_nf::AnyChain;
use rheostat_nf::registry::{StaticChain, alone, alone_on_objects, pair};
use rheostat_nf::{Chain2, Passthrough, Shared, Stage};

/// The chains that are compiled as a whole.
pub const CHAINS: &[StaticChain] = &[
    alone::<Firewall>,
    alone::<Nat>,
    pair::<Firewall, Nat>,
    alone::<Lb>,
    alone::<Monitor>,
    alone::<Policer>,
    alone_on_objects::<AntiDdos>,
    alone_on_objects::<Bridge>,
    alone_on_objects::<Portscan>,
    alone_on_objects::<SharedNat>,
];

/// A chain that forwards everything; with a network layer, a router.
pub fn empty() -> AnyChain {
    AnyChain::new(Passthrough, StateLayout::new())
}

macro_rules! chains {
    ($($(#[$docs:meta])* $name:ident: $function:ty;)*) => {$(
        $(#[$docs])*
        ///
        /// # Errors
        /// [`LayoutError`] when an entry has no room for its state.
        pub fn $name(function: $function) -> Result<AnyChain, LayoutError> {
            let mut layout = StateLayout::new();
            Ok(AnyChain::new(Stage::new(function, &mut layout)?, layout))
        }
    )*};
    (on objects: $($(#[$docs:meta])* $name:ident: $function:ty;)*) => {$(
        $(#[$docs])*
        ///
        /// # Errors
        /// [`LayoutError`] when an entry has no room for its state.
        pub fn $name(function: $function, objects: &Objects) -> Result<AnyChain, LayoutError> {
            let mut layout = StateLayout::new();
            Ok(AnyChain::new(Shared::new(function, objects, &mut layout)?, layout))
        }
    )*};
}

chains! {
    /// The firewall.
    firewall: Firewall;
    /// The load balancer.
    lb: Lb;
    /// The monitor of flows.
    monitor: Monitor;
    /// The NAT whose mappings belong to shards.
    nat: Nat;
    /// The policer.
    policer: Policer;
}

chains! { on objects:
    /// The detector of attacks with many flows.
    antiddos: AntiDdos;
    /// The bridge.
    bridge: Bridge;
    /// The detector of port scans.
    portscan: Portscan;
    /// The NAT whose mappings all lanes share.
    shared_nat: SharedNat;
}

/// The NAT behind the firewall.
///
/// # Errors
/// [`LayoutError`] when an entry has no room for their states.
pub fn firewall_nat(firewall: Firewall, nat: Nat) -> Result<AnyChain, LayoutError> {
    let mut layout = StateLayout::new();
    let firewall = Stage::new(firewall, &mut layout)?;
    let nat = Stage::new(nat, &mut layout)?;
    Ok(AnyChain::new(Chain2(firewall, nat), layout))
}
