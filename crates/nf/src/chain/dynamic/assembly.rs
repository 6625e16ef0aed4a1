//! From functions to a chain of them.

use rheostat_state::txn::Objects;
use rheostat_state::{StateBits, StateLayout};

use super::deadlines::Deadlines;
use super::naming::{Naming, naming};
use super::{ChainError, DynamicChain, LinkStage};
use crate::function_spec::FunctionSpec;
use crate::link::Link;

impl DynamicChain {
    /// Places the functions in this order, with their states in `layout`.
    ///
    /// # Errors
    /// [`ChainError`] when these functions do not make a chain together.
    pub fn new(
        links: Vec<Box<dyn Link>>,
        layout: &mut StateLayout,
    ) -> Result<DynamicChain, ChainError> {
        DynamicChain::place(links, layout, None)
    }

    /// The same of functions that take the place of those of a `running` chain. `layout` is its layout, given out again.
    ///
    /// # Errors
    /// As [`DynamicChain::new`].
    pub(crate) fn next(
        links: Vec<Box<dyn Link>>,
        layout: &mut StateLayout,
        running: &DynamicChain,
    ) -> Result<DynamicChain, ChainError> {
        DynamicChain::place(links, layout, Some(running))
    }

    fn place(
        links: Vec<Box<dyn Link>>,
        layout: &mut StateLayout,
        running: Option<&DynamicChain>,
    ) -> Result<DynamicChain, ChainError> {
        let objects = common_objects(&links)?;
        check_keys(&links)?;
        let merged = |specs: &mut dyn Iterator<Item = FunctionSpec>| {
            specs.reduce(|one, other| one.and(&other)).unwrap_or_default()
        };
        let packet_set = merged(&mut links.iter().map(|link| link.spec().clone())).packet_set;
        let namings: Result<Vec<_>, _> =
            links.iter().map(|link| naming(&**link, &packet_set, &links)).collect();
        let namings = namings?;
        let mut spec = merged(&mut links.iter().zip(&namings).map(|(link, naming)| {
            let spec = link.spec().clone();
            match naming {
                // Its own flows have ended before, and are admitted on their own.
                Naming::Own => {
                    FunctionSpec { depends_on_flows: false, passes_without_entry: true, ..spec }
                }
                Naming::Chain | Naming::Selected | Naming::None => spec,
            }
        }));
        let steering = spec.steering();
        if let Some(translation) = &mut spec.translation {
            let of = links.iter().find(|link| link.spec().translation.is_some());
            let own = of.map(|link| link.spec().steering());
            translation.place = own.filter(|own| *own != steering);
        }
        let keeps = |naming: &Naming| matches!(naming, Naming::Chain | Naming::Selected);
        let keepers = namings.iter().filter(|naming| keeps(naming)).count();
        let decides = links.iter().zip(&namings).map(|(link, naming)| {
            keeps(naming).then(|| link.spec().decides_lifetime || keepers == 1)
        });
        // Of the functions whose flows are the chain's.
        let decides: Vec<_> = decides.collect();
        let placed = links.into_iter().zip(namings).zip(&decides).enumerate();
        let placed = placed.map(|(at, ((link, naming), decides))| {
            let before = running.and_then(|running| running.links.get(at));
            let own = before.and_then(|link| link.own_layout());
            link.place(naming, *decides == Some(false), layout, own)
        });
        let links: Box<[Box<dyn LinkStage>]> = placed.collect::<Result<_, _>>()?;
        let deadlines = Deadlines::of(&links, decides.contains(&Some(true)), layout)?;
        let places: Vec<_> = links.iter().map(|link| link.steady_place()).collect();
        let has_visitors = links.iter().any(|link| link.is_visitor());
        let mut each = links.iter().zip(&places);
        let is_fast = each.all(|(link, place)| place.is_some() || link.is_visitor());
        let steady = places.into_iter().flatten().reduce(StateBits::and).filter(|_| is_fast);
        Ok(DynamicChain { links, spec, objects, deadlines, steady, has_visitors })
    }
}

/// The objects that the functions share, if any does.
fn common_objects(links: &[Box<dyn Link>]) -> Result<Option<Objects>, ChainError> {
    let mut shared = links.iter().filter_map(|link| Some((link.name(), link.objects()?)));
    let Some((first, objects)) = shared.next() else { return Ok(None) };
    match shared.find(|(_, other)| *other != objects) {
        Some((other, _)) => Err(ChainError::Objects(first, other)),
        None => Ok(Some(objects.clone())),
    }
}

/// Refuses functions that cannot agree on the keys of flows.
fn check_keys(links: &[Box<dyn Link>]) -> Result<(), ChainError> {
    let links = || links.iter().map(|link| &**link);
    let has_keys = |spec: &FunctionSpec| spec.aliases || spec.translation.is_some();
    let mut translating = links().filter(|link| has_keys(link.spec()));
    let Some(first) = translating.next() else { return Ok(()) };
    if let Some(other) = translating.next() {
        return Err(ChainError::Keys(first.name(), other.name()));
    }
    match links().find(|other| !other.spec().packet_set.is_empty()) {
        Some(other) if !first.spec().aliases && first.spec().packet_set.is_empty() => {
            Err(ChainError::OneKey(first.name(), other.name()))
        }
        _ => Ok(()),
    }
}
