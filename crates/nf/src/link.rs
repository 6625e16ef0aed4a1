//! One function of a chain that is put together at run time.

use std::any::Any;
use std::fmt;

use rheostat_state::txn::Objects;
use rheostat_state::{LayoutError, StateLayout};

use crate::chain::dynamic::{LinkStage, Naming, OwnLink, PlacedLink};
use crate::chain::{Mode, OnObjects, Owned, Stage};
use crate::function::{NetworkFunction, NoShardState};
use crate::function_spec::FunctionSpec;
use crate::listing::{ListMethods, Lists};

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
    use super::{Any, LayoutError, LinkStage, Naming, StateLayout};

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

        /// Lets the function be listed by a [`ListMethods`](super::ListMethods) of its type; `false` when this is one of another type.
        fn set_listing(&mut self, listing: &dyn Any) -> bool;

        /// Lets the function be listed under this name.
        fn set_name(&mut self, name: &'static str);
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
    let spec = FunctionSpec::of(&function);
    let listed_as = spec.name;
    Box::new(FunctionLink { spec, function, mode, listing: None, listed_as })
}

impl dyn Link {
    /// The same link, which lists what the function, an `F`, implements in [`Lists`].
    ///
    /// # Panics
    /// When the function is of another type.
    #[must_use]
    pub fn listing<F: Lists>(self: Box<Self>) -> Box<dyn Link> {
        self.listed_by(Some(ListMethods::<F>::of()))
    }

    /// The same link, listed under this name in place of that of the function's type.
    #[must_use]
    pub fn listed_as(mut self: Box<Self>, name: &'static str) -> Box<dyn Link> {
        self.set_name(name);
        self
    }

    pub(crate) fn listed_by<F: NetworkFunction>(
        mut self: Box<Self>,
        listing: Option<ListMethods<F>>,
    ) -> Box<dyn Link> {
        if let Some(listing) = listing {
            assert!(self.set_listing(&listing), "the listing of a function of another type");
        }
        self
    }

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
        Ok(Stage::in_mode(link.function, link.mode, layout)?
            .listed_by(link.listing, link.listed_as))
    }
}

impl fmt::Debug for dyn Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name()).finish()
    }
}

/// A function that has no place in a chain yet.
struct FunctionLink<F: NetworkFunction, M> {
    spec: FunctionSpec,
    function: F,
    mode: M,
    listing: Option<ListMethods<F>>,
    listed_as: &'static str,
}

impl<F: NetworkFunction, M: Mode<F>> sealed::Place for FunctionLink<F, M> {
    fn place(
        self: Box<Self>,
        naming: Naming,
        has_deadline: bool,
        layout: &mut StateLayout,
        own: Option<&StateLayout>,
    ) -> Result<Box<dyn LinkStage>, LayoutError> {
        let FunctionLink { function, mode, listing, listed_as, .. } = *self;
        if naming == Naming::Own {
            let mut layout = own.map_or_else(StateLayout::new, StateLayout::again);
            let stage = Stage::new(function, &mut layout)?.listed_by(listing, listed_as);
            return Ok(Box::new(OwnLink::new(stage, layout)));
        }
        let stage = Stage::in_mode(function, mode, layout)?.listed_by(listing, listed_as);
        let deadline = if has_deadline { Some(layout.reserve_time()?) } else { None };
        Ok(Box::new(PlacedLink::new(stage, naming, deadline)))
    }

    fn set_listing(&mut self, listing: &dyn Any) -> bool {
        self.listing = listing.downcast_ref::<ListMethods<F>>().copied();
        self.listing.is_some()
    }

    fn set_name(&mut self, name: &'static str) {
        self.listed_as = name;
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
