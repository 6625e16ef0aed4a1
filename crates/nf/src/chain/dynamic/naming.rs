//! Which packets of a chain's flows are packets of a flow to one of its functions.

use rheostat_steer::{PacketSet, Protocols};

use super::ChainError;
use crate::link::Link;

/// How the flows of a function follow from those of its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// They are the same.
    Chain,
    /// They are those of some protocols or of one side: to the function, all other packets belong to no flow.
    Selected,
    /// One flow of the function is many of the chain's, or it ends before them: the function has tables of its own.
    Own,
    /// The function has no flows: every packet belongs to none.
    None,
}

/// How the flows of a function follow from those of `chain`.
///
/// # Errors
/// [`ChainError::Coarser`] when one of its flows is many of the chain's, and it cannot have a table of its own.
pub(super) fn naming(
    link: &dyn Link,
    chain: &PacketSet,
    others: &[Box<dyn Link>],
) -> Result<Naming, ChainError> {
    let spec = link.spec();
    let own = spec.packet_set;
    let can_own = link.objects().is_none() && !spec.aliases && !own.is_empty();
    if spec.keeps_own_flows && can_own && others.len() > 1 {
        return Ok(Naming::Own);
    }
    if own == *chain {
        return Ok(Naming::Chain);
    }
    if own.is_empty() {
        return Ok(Naming::None);
    }
    let fields = |set: &PacketSet| set.only(Protocols::ALL);
    if fields(&own) == fields(chain) {
        return Ok(Naming::Selected);
    }
    if can_own {
        return Ok(Naming::Own);
    }
    let finer = others.iter().find(|other| fields(&other.spec().packet_set) != fields(&own));
    Err(ChainError::Coarser(link.name(), finer.map_or("the chain", |other| other.name())))
}
