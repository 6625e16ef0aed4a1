//! One function of a chain that is put together at run time.

use std::any::Any;
use std::fmt;

use rheostat_state::txn::Objects;
use rheostat_state::{LayoutError, StateLayout};

use crate::chain::dynamic::{LinkStage, Naming, OwnLink, PlacedLink};
use crate::chain::{Mode, OnObjects, Owned, Stage};
use crate::function::{NetworkFunction, NoShardState};
use crate::function_spec::FunctionSpec;

/// One function of a chain that is put together at run time ([`AnyChain::of`](crate::AnyChain::of)), without its type. Made by
/// [`link`] and [`shared_link`].
pub trait Link: Any + Send + sealed::Place {
    /// Properties of the function.
    fn spec(&self) -> &FunctionSpec;

    /// The objects of a function on shared objects.
    fn objects(&self) -> Option<&Objects>;

    /// The function's name (see [`FunctionSpec::name`]).
    fn name(&self) -> &'static str {
        self.spec().name
    }
}

mod sealed {
    use super::{LayoutError, LinkStage, Naming, StateLayout};

    #[expect(private_interfaces, reason = "links are placed in this crate alone")]
    pub trait Place {
        /// Reserves a place for the function's state in the entries of a chain, and one for its deadline if it has one of its own.
        /// A function with a table of its own whose place the function takes has entries of the layout `own`.
        fn place(
            self: Box<Self>,
            naming: Naming,
            has_deadline: bool,
            layout: &mut StateLayout,
            own: Option<&StateLayout>,
        ) -> Result<Box<dyn LinkStage>, LayoutError>;
    }
}

/// A function with state per flow and per shard, for [`AnyChain::of`](crate::AnyChain::of).
pub fn link<F: NetworkFunction>(function: F) -> Box<dyn Link> {
    link_in(function, Owned)
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
    link_in(function, <OnObjects as Mode<F>>::of(objects))
}

pub(crate) fn link_in<F: NetworkFunction, M: Mode<F>>(function: F, mode: M) -> Box<dyn Link> {
    Box::new(FunctionLink { spec: FunctionSpec::of(&function), function, mode })
}

impl dyn Link {
    /// Whether the function is an `F` of this mode.
    pub(crate) fn is<F: NetworkFunction, M: Mode<F>>(&self) -> bool {
        (self as &dyn Any).is::<FunctionLink<F, M>>()
    }

    /// The function as a chain of its own, with its state in `layout`: for chains that are compiled as a whole.
    ///
    /// # Panics
    /// When the function is of another type or mode.
    pub(crate) fn into_stage<F: NetworkFunction, M: Mode<F>>(
        self: Box<Self>,
        layout: &mut StateLayout,
    ) -> Result<Stage<F, M>, LayoutError> {
        let link: Box<dyn Any> = self;
        let Ok(link) = link.downcast::<FunctionLink<F, M>>() else { panic!("compared before") };
        Stage::in_mode(link.function, link.mode, layout)
    }
}

impl fmt::Debug for dyn Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name()).finish()
    }
}

/// A function that has no place in a chain yet.
struct FunctionLink<F, M> {
    spec: FunctionSpec,
    function: F,
    mode: M,
}

impl<F: NetworkFunction, M: Mode<F>> sealed::Place for FunctionLink<F, M> {
    fn place(
        self: Box<Self>,
        naming: Naming,
        has_deadline: bool,
        layout: &mut StateLayout,
        own: Option<&StateLayout>,
    ) -> Result<Box<dyn LinkStage>, LayoutError> {
        let FunctionLink { function, mode, .. } = *self;
        if naming == Naming::Own {
            let mut layout = own.map_or_else(StateLayout::new, StateLayout::again);
            return Ok(Box::new(OwnLink::new(Stage::new(function, &mut layout)?, layout)));
        }
        let stage = Stage::in_mode(function, mode, layout)?;
        let deadline = if has_deadline { Some(layout.reserve_time()?) } else { None };
        Ok(Box::new(PlacedLink::new(stage, naming, deadline)))
    }
}

impl<F: NetworkFunction, M: Mode<F>> Link for FunctionLink<F, M> {
    fn spec(&self) -> &FunctionSpec {
        &self.spec
    }

    fn objects(&self) -> Option<&Objects> {
        self.mode.objects()
    }
}
