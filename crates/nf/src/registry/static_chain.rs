//! Chains that are compiled as a whole, for functions that are often run together.

use rheostat_state::{LayoutError, StateLayout};

use crate::any_chain::AnyChain;
use crate::chain::dynamic::ChainError;
use crate::chain::{Chain2, Mode, Owned, Stage};
use crate::function::NetworkFunction;
use crate::link::Link;

/// A chain that is compiled as a whole, for certain functions in their order.
#[derive(Clone, Copy, Debug)]
pub struct StaticChain {
    is_of: fn(&[Box<dyn Link>]) -> bool,
    build: Build,
}

/// Makes the chain, with its states in a layout.
type Build = fn(Vec<Box<dyn Link>>, StateLayout) -> Result<AnyChain, ChainError>;

/// The chain of an `F` alone, in this mode.
pub const fn alone<F: NetworkFunction, M: Mode<F>>() -> StaticChain {
    StaticChain {
        is_of: |links| matches!(links, [link] if link.is::<F, M>()),
        build: |links, mut layout| {
            let stage = stage::<F, M>(&mut links.into_iter(), &mut layout)?;
            Ok(AnyChain::new(stage, layout))
        },
    }
}

/// The chain of an `A` and a `B` behind it, with state per flow and per shard.
pub const fn pair<A: NetworkFunction, B: NetworkFunction>() -> StaticChain {
    StaticChain {
        is_of: |links| matches!(links, [first, second] if first.is::<A, Owned>() && second.is::<B, Owned>()),
        build: |links, mut layout| {
            let mut links = links.into_iter();
            let first = stage::<A, Owned>(&mut links, &mut layout)?;
            let second = stage::<B, Owned>(&mut links, &mut layout)?;
            Ok(AnyChain::new(Chain2(first, second), layout))
        },
    }
}

/// The next function as a chain of its own.
fn stage<F: NetworkFunction, M: Mode<F>>(
    links: &mut dyn Iterator<Item = Box<dyn Link>>,
    layout: &mut StateLayout,
) -> Result<Stage<F, M>, LayoutError> {
    links.next().expect("functions were compared before").into_stage(layout)
}

/// The chain of these functions: the first of `known` that is theirs, otherwise one that is put together at run time.
///
/// # Errors
/// [`ChainError`] when these functions do not make a chain together.
pub fn chain_of(links: Vec<Box<dyn Link>>, known: &[StaticChain]) -> Result<AnyChain, ChainError> {
    match known.iter().find(|known| (known.is_of)(&links)) {
        Some(known) => (known.build)(links, StateLayout::new()),
        None => AnyChain::of(links),
    }
}

/// The chain of these functions that can take the place of `running` ([`AnyChain::replace_by`]), as [`chain_of`].
///
/// # Errors
/// [`ChainError`] when these functions do not make a chain together, or none with the states of flows that `running` has.
pub fn next_chain_of(
    running: &AnyChain,
    links: Vec<Box<dyn Link>>,
    known: &[StaticChain],
) -> Result<AnyChain, ChainError> {
    match known.iter().find(|known| (known.is_of)(&links)) {
        Some(known) => (known.build)(links, running.layout().again()),
        None => running.next(links),
    }
}
