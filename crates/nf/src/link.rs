//! One function of a chain that is put together at run time.

use std::any::Any;
use std::fmt;

use rheostat_state::txn::Objects;
use rheostat_state::{LayoutError, StateLayout};
use rheostat_steer::{PacketSet, Translation};

use crate::chain::Stage;
use crate::chain::dynamic::{LinkStage, Naming, OwnLink, PlacedLink, SharedParts};
use crate::function::{NetworkFunction, NoShardState};

/// One function of a chain that is put together at run time ([`AnyChain::of`](crate::AnyChain::of)), without its type. Made by
/// [`link`] and [`shared_link`].
pub trait Link: Any + Send + sealed::Place {
    /// The function's name (see [`NetworkFunction::name`]).
    fn name(&self) -> &'static str;

    /// The objects of a function on shared objects.
    fn objects(&self) -> Option<&Objects>;

    /// As [`NetworkFunction::packet_set`].
    fn packet_set(&self) -> PacketSet;

    /// As [`NetworkFunction::steering`].
    fn steering(&self) -> PacketSet;

    /// As [`NetworkFunction::translation`].
    fn translation(&self) -> Option<Translation>;

    /// As [`NetworkFunction::aliases`].
    fn aliases(&self) -> bool;

    /// As [`NetworkFunction::keeps_own_flows`].
    fn keeps_own_flows(&self) -> bool;

    /// As [`NetworkFunction::decides_lifetime`].
    fn decides_lifetime(&self) -> bool;
}

mod sealed {
    use super::{LayoutError, LinkStage, Naming, StateLayout};

    #[expect(private_interfaces, reason = "links are placed in this crate alone")]
    pub trait Place {
        /// Reserves a place for the function's state in the entries of a chain, and one for its deadline if it has one of its own.
        fn place(
            self: Box<Self>,
            naming: Naming,
            has_deadline: bool,
            layout: &mut StateLayout,
        ) -> Result<Box<dyn LinkStage>, LayoutError>;
    }
}

/// A function with state per flow and per shard, for [`AnyChain::of`](crate::AnyChain::of).
pub fn link<F: NetworkFunction>(function: F) -> Box<dyn Link> {
    Box::new(FunctionLink { function, shared: None })
}

/// A function on shared objects, for [`AnyChain::of`](crate::AnyChain::of). `objects` are those that the function's own were made
/// with, and those of the other functions of the chain.
pub fn shared_link<F: NetworkFunction<Shard: NoShardState>>(
    function: F,
    objects: &Objects,
) -> Box<dyn Link>
where
    F::Flow: Clone,
{
    let shared = SharedParts { objects: objects.clone(), clone: F::Flow::clone };
    Box::new(FunctionLink { function, shared: Some(shared) })
}

impl dyn Link {
    /// Whether the function is an `F`.
    pub fn is<F: NetworkFunction>(&self) -> bool {
        (self as &dyn Any).is::<FunctionLink<F>>()
    }

    /// The function itself: for chains that are compiled as a whole where these are known.
    ///
    /// # Errors
    /// The link again when the function is of another type.
    pub fn into_function<F: NetworkFunction>(self: Box<Self>) -> Result<F, Box<dyn Link>> {
        if !self.is::<F>() {
            return Err(self);
        }
        let link: Box<dyn Any> = self;
        match link.downcast::<FunctionLink<F>>() {
            Ok(link) => Ok(link.function),
            Err(_) => unreachable!("its type was compared"),
        }
    }
}

impl fmt::Debug for dyn Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name()).finish()
    }
}

/// A function that has no place in a chain yet.
struct FunctionLink<F: NetworkFunction> {
    function: F,
    shared: Option<SharedParts<F>>,
}

impl<F: NetworkFunction> sealed::Place for FunctionLink<F> {
    fn place(
        self: Box<Self>,
        naming: Naming,
        has_deadline: bool,
        layout: &mut StateLayout,
    ) -> Result<Box<dyn LinkStage>, LayoutError> {
        let FunctionLink { function, shared } = *self;
        if naming == Naming::Own {
            let mut layout = StateLayout::new();
            return Ok(Box::new(OwnLink::new(Stage::new(function, &mut layout)?, layout)));
        }
        let stage = Stage::new(function, layout)?;
        let deadline = if has_deadline { Some(layout.reserve_time()?) } else { None };
        Ok(Box::new(PlacedLink::new(stage, shared, naming, deadline)))
    }
}

impl<F: NetworkFunction> Link for FunctionLink<F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn objects(&self) -> Option<&Objects> {
        self.shared.as_ref().map(|shared| &shared.objects)
    }

    fn packet_set(&self) -> PacketSet {
        self.function.packet_set()
    }

    fn steering(&self) -> PacketSet {
        self.function.steering()
    }

    fn translation(&self) -> Option<Translation> {
        self.function.translation()
    }

    fn aliases(&self) -> bool {
        self.function.aliases()
    }

    fn keeps_own_flows(&self) -> bool {
        self.function.keeps_own_flows()
    }

    fn decides_lifetime(&self) -> bool {
        self.function.decides_lifetime()
    }
}
