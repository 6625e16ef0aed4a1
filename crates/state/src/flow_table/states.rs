//! The states of several functions in one entry, to read and change together: what a fast path works with. Whether they are
//! there is asked once per packet.

use std::fmt;
use std::ptr::NonNull;

use rheostat_base::{DeviceId, Time};

use super::flow::FlowMut;
use super::layout::Handle;

mod sealed {
    use std::ptr::NonNull;

    /// The states themselves, which other modules cannot name.
    pub trait Set: Copy {
        /// References to them.
        type Refs<'a>;

        /// Panics unless the handles are those of the layout with this id, and no two are of one state.
        fn check(self, layout: u64) -> u8;

        /// The states in an entry.
        ///
        /// # Safety
        /// `entry` is an entry of the layout that [`Set::check`] was asked about, in which all states with bits that it
        /// returned are initialised, and nothing else reads or writes them as long as the references live.
        unsafe fn refs<'a>(self, entry: NonNull<u8>) -> Self::Refs<'a>;
    }
}

/// The places of some functions' states: a [`Handle`], pairs of those, or none.
pub trait StateSet: sealed::Set {}

impl<S: sealed::Set> StateSet for S {}

/// References to the states of a set.
pub type StateRefs<'a, S> = <S as sealed::Set>::Refs<'a>;

impl sealed::Set for () {
    type Refs<'a> = ();

    #[inline(always)]
    fn check(self, _: u64) -> u8 {
        0
    }

    #[inline(always)]
    unsafe fn refs<'a>(self, _: NonNull<u8>) -> Self::Refs<'a> {}
}

impl<T: Send + 'static> sealed::Set for Handle<T> {
    type Refs<'a> = &'a mut T;

    #[inline(always)]
    fn check(self, layout: u64) -> u8 {
        Handle::check(self, layout);
        self.bit()
    }

    #[inline(always)]
    unsafe fn refs<'a>(self, entry: NonNull<u8>) -> &'a mut T {
        // SAFETY: the layout, which is this handle's, gave the offset and is the one the entry was sized by; a `T` was
        // written there, says the caller, and is this reference's alone.
        unsafe { entry.add(self.offset()).cast().as_mut() }
    }
}

impl<A: sealed::Set, B: sealed::Set> sealed::Set for (A, B) {
    type Refs<'a> = (A::Refs<'a>, B::Refs<'a>);

    #[inline(always)]
    fn check(self, layout: u64) -> u8 {
        let (a, b) = (self.0.check(layout), self.1.check(layout));
        assert!(a & b == 0, "two functions have one state");
        a | b
    }

    #[inline(always)]
    unsafe fn refs<'a>(self, entry: NonNull<u8>) -> Self::Refs<'a> {
        // SAFETY: passed on to the caller. The two have no state in common, as `check` made sure.
        unsafe { (self.0.refs(entry), self.1.refs(entry)) }
    }
}

/// A flow whose states are in use. Its deadline and its order of arrival can be changed beside them.
pub struct OpenFlow<'a, R> {
    flow: FlowMut<'a>,
    /// The states.
    pub states: R,
}

impl<'a> FlowMut<'a> {
    /// The states of a set, if all of them are initialised.
    ///
    /// # Panics
    /// When a handle is of another layout than the table's, or two are of one state.
    #[inline(always)]
    pub fn open<S: StateSet>(self, set: S) -> Option<OpenFlow<'a, StateRefs<'a, S>>> {
        let bits = set.check(self.layout());
        if self.initialised() & bits != bits {
            return None;
        }
        // SAFETY: the handles are of this layout, and the bits say that the states were written. The table is borrowed alone
        // as long as the references live, and of what `OpenFlow` still does with it, nothing touches states.
        let states = unsafe { set.refs(self.entry()) };
        Some(OpenFlow { flow: self, states })
    }
}

impl<R> OpenFlow<'_, R> {
    /// As [`FlowMut::note_arrival`].
    #[inline(always)]
    pub fn note_arrival(&mut self, forward: bool, device: DeviceId, stamp: u32) -> bool {
        self.flow.note_arrival(forward, device, stamp)
    }

    /// As [`FlowMut::set_deadline`].
    #[inline(always)]
    pub fn set_deadline(&mut self, deadline: Time) {
        self.flow.set_deadline(deadline);
    }
}

impl<R> fmt::Debug for OpenFlow<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenFlow").field(&self.flow).finish()
    }
}
