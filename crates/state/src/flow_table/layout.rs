//! Where in an entry each network function's state lies.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::Time;
use thiserror::Error;

use super::entry::{COLD_OFFSET, LINE, STATE_OFFSET};

/// How many functions may keep state in one flow entry: one bit each says which have.
pub const MAX_STATES: usize = 8;

/// Bytes an entry may have.
const MAX_ENTRY: usize = 4096;

/// Why no room was reserved for a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// All [`MAX_STATES`] places are taken.
    #[error("more than {MAX_STATES} functions of the chain keep state per flow")]
    TooMany,
    /// The entry would grow beyond a page.
    #[error("the flow states of the chain need more than {MAX_ENTRY} bytes ({0})")]
    TooLarge(&'static str),
    /// The type asks for an alignment above a cache line.
    #[error("{0} must be aligned to more than a cache line")]
    Alignment(&'static str),
    /// The layout gives the places of another one out again ([`StateLayout::again`]), and the next of these is not of this type.
    #[error("the entries of the chain that runs have no place for {0} here")]
    Unlike(&'static str),
}

/// The plan of a flow entry: each function of a chain reserves a place for its state before the first
/// packet, and the places stay (Dyssect 5.1.1.1, with the states themselves instead of pointers to
/// them).
pub struct StateLayout {
    id: u64,
    size: usize,
    count: u8,
    drops: [Option<DropPlace>; MAX_STATES],
    drop_mask: u8,
    /// All places, in the order in which they were reserved.
    places: Vec<Reserved>,
    /// How many of them were given out again, in a layout that does so.
    again: Option<usize>,
}

/// A place that was reserved.
#[derive(Clone, Copy)]
struct Reserved {
    /// The type of the state; [`Deadline`] for a time.
    holds: TypeId,
    offset: u32,
    /// The bit of the state; 0 for a time.
    bit: u8,
}

/// The type that stands for a time among those of states. No state is of it.
struct Deadline;

/// How to drop the state at an offset.
#[derive(Clone, Copy)]
struct DropPlace {
    offset: usize,
    drop: unsafe fn(*mut u8),
}

impl StateLayout {
    /// A layout without states.
    pub fn new() -> StateLayout {
        // Relaxed: only distinctness matters. A 64-bit count does not wrap.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        StateLayout {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            size: STATE_OFFSET,
            count: 0,
            drops: [None; MAX_STATES],
            drop_mask: 0,
            places: Vec::new(),
            again: None,
        }
    }

    /// The layout of the same entries, for functions that take the place of those that reserved its places: it gives the same places
    /// out again, in the same order and to the same types, and no others.
    #[must_use]
    pub fn again(&self) -> StateLayout {
        StateLayout { places: self.places.clone(), again: Some(0), ..*self }
    }

    /// Whether `next` is this layout given out [again](StateLayout::again), with all its places.
    pub fn is_continued_by(&self, next: &StateLayout) -> bool {
        self.id == next.id && next.again == Some(next.places.len())
    }

    /// Reserves a place for a `T` in every entry and returns the handle to it.
    ///
    /// # Errors
    /// When there are too many states already, or `T` does not fit.
    pub fn reserve<T: Send + 'static>(&mut self) -> Result<Handle<T>, LayoutError> {
        if self.again.is_some() {
            let Reserved { offset, bit, .. } =
                self.give_again(TypeId::of::<T>(), type_name::<T>())?;
            return Ok(Handle { layout: self.id, offset, bit, state: PhantomData });
        }
        if usize::from(self.count) == MAX_STATES {
            return Err(LayoutError::TooMany);
        }
        let offset = self.lay_out::<T>()?;
        if std::mem::needs_drop::<T>() {
            let drop = drop_at::<T>;
            self.drops[usize::from(self.count)] = Some(DropPlace { offset, drop });
            self.drop_mask |= 1 << self.count;
        }
        let handle = Handle {
            layout: self.id,
            offset: offset as u32,
            bit: 1 << self.count,
            state: PhantomData,
        };
        self.places.push(Reserved {
            holds: TypeId::of::<T>(),
            offset: handle.offset,
            bit: handle.bit,
        });
        self.count += 1;
        Ok(handle)
    }

    /// Reserves a place for a time in every entry. It is no state: it is always there, and an entry is in use without it. What
    /// it is in an entry that no flow has set it in is left open.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn reserve_time(&mut self) -> Result<TimePlace, LayoutError> {
        let holds = TypeId::of::<Deadline>();
        if self.again.is_some() {
            let Reserved { offset, .. } = self.give_again(holds, "a deadline")?;
            return Ok(TimePlace { layout: self.id, offset });
        }
        let offset = self.lay_out::<u64>()? as u32;
        self.places.push(Reserved { holds, offset, bit: 0 });
        Ok(TimePlace { layout: self.id, offset })
    }

    /// The next place that was reserved before, if it holds this type.
    fn give_again(&mut self, holds: TypeId, name: &'static str) -> Result<Reserved, LayoutError> {
        let given = self.again.unwrap_or_default();
        let place = self.places.get(given).filter(|place| place.holds == holds);
        let place = *place.ok_or(LayoutError::Unlike(name))?;
        self.again = Some(given + 1);
        Ok(place)
    }

    /// Lets the entry grow by a `T`, and returns where that lies.
    fn lay_out<T>(&mut self) -> Result<usize, LayoutError> {
        if align_of::<T>() > LINE {
            return Err(LayoutError::Alignment(type_name::<T>()));
        }
        // Entries start at a line, so an offset that is a multiple of the alignment aligns the state.
        let fits_before_cold = |from: usize| {
            let offset = from.next_multiple_of(align_of::<T>());
            offset.checked_add(size_of::<T>()).is_some_and(|end| end <= COLD_OFFSET)
        };
        let from = match self.size {
            size if size >= 2 * LINE || fits_before_cold(size) => size,
            _ => 2 * LINE,
        };
        let offset = from.next_multiple_of(align_of::<T>());
        let end = offset.checked_add(size_of::<T>()).filter(|&end| end <= MAX_ENTRY);
        self.size = end.ok_or(LayoutError::TooLarge(type_name::<T>()))?;
        Ok(offset)
    }

    /// Bytes of an entry: whole cache lines, at least two.
    pub fn entry_size(&self) -> usize {
        self.size.max(2 * LINE).next_multiple_of(LINE)
    }

    /// Whether states lie beyond the first line of an entry.
    pub(super) fn reaches_beyond_line(&self) -> bool {
        self.size > LINE
    }

    /// The bits of all states.
    pub(super) fn all(&self) -> u8 {
        ((1_u16 << self.count) - 1) as u8
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Whether any state needs to be dropped.
    pub(super) fn needs_drop(&self) -> bool {
        self.drop_mask != 0
    }

    /// Drops the states of an entry that `initialised` names.
    ///
    /// # Safety
    /// `entry` is an entry of this layout, exclusively accessed, in which the states named are
    /// initialised; they count as uninitialised from now on, even if a drop panics.
    pub(super) unsafe fn drop_states(&self, entry: NonNull<u8>, initialised: u8) {
        let mut rest = initialised & self.drop_mask;
        while rest != 0 {
            if let Some(place) = self.drops[rest.trailing_zeros() as usize] {
                // SAFETY: the state was placed at this offset through the handle made with it, and
                // is initialised, says the caller.
                unsafe { (place.drop)(entry.as_ptr().add(place.offset)) };
            }
            rest &= rest - 1;
        }
    }
}

/// Drops the `T` at `state`.
///
/// # Safety
/// `state` points to an initialised, exclusively accessed `T` that is not used again.
unsafe fn drop_at<T>(state: *mut u8) {
    // SAFETY: passed on to the caller.
    unsafe { ptr::drop_in_place(state.cast::<T>()) }
}

impl Default for StateLayout {
    fn default() -> StateLayout {
        StateLayout::new()
    }
}

impl fmt::Debug for StateLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateLayout")
            .field("states", &self.count)
            .field("entry_size", &self.entry_size())
            .finish()
    }
}

/// Names the place of one function's state in the entries of one layout.
pub struct Handle<T> {
    layout: u64,
    offset: u32,
    bit: u8,
    state: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The bit that says whether the state is initialised.
    #[inline]
    pub(super) fn bit(self) -> u8 {
        self.bit
    }

    /// The byte of an entry where the state lies.
    #[inline]
    pub(super) fn offset(self) -> usize {
        self.offset as usize
    }

    /// Which layout the handle is of.
    #[inline]
    pub(super) fn layout(self) -> u64 {
        self.layout
    }

    /// Panics unless the handle was made by the layout with this id. The types in an entry are known
    /// only through its layout, so this is what keeps them apart.
    #[inline]
    pub(super) fn check(self, layout: u64) {
        assert!(self.layout == layout, "a state handle is used on a table of another layout");
    }
}

/// Where a time lies in the entries of one layout.
#[derive(Clone, Copy, Debug)]
pub struct TimePlace {
    layout: u64,
    offset: u32,
}

impl TimePlace {
    /// The time in an entry.
    ///
    /// # Safety
    /// `entry` is an entry of the layout with this id, in which nothing else reads or writes the time meanwhile.
    #[inline(always)]
    pub(super) unsafe fn read(self, entry: NonNull<u8>, layout: u64) -> Time {
        self.check(layout);
        // SAFETY: the layout, which is this place's, gave the offset, aligned, and the entry was sized by it. Nothing but numbers
        // is ever written there, into memory that was zero.
        Time::from_nanos(unsafe { entry.add(self.offset as usize).cast::<u64>().read() })
    }

    /// Sets the time in an entry.
    ///
    /// # Safety
    /// As for [`TimePlace::read`].
    #[inline(always)]
    pub(super) unsafe fn write(self, entry: NonNull<u8>, layout: u64, time: Time) {
        self.check(layout);
        // SAFETY: as in `read`.
        unsafe { entry.add(self.offset as usize).cast::<u64>().write(time.as_nanos()) };
    }

    #[inline(always)]
    fn check(self, layout: u64) {
        assert!(self.layout == layout, "a place of another layout than the table's");
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle<{}>({})", type_name::<T>(), self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_placed_aligned_behind_one_another() {
        let mut layout = StateLayout::new();
        assert_eq!(layout.entry_size(), 2 * LINE);
        let small = layout.reserve::<[u8; 3]>().unwrap();
        let aligned = layout.reserve::<u64>().unwrap();
        let nothing = layout.reserve::<()>().unwrap();
        assert_eq!((small.offset(), aligned.offset(), nothing.offset()), (34, 40, 48));
        assert_eq!(layout.entry_size(), 2 * LINE);
        layout.reserve::<[u64; 4]>().unwrap();
        assert_eq!(layout.entry_size(), 3 * LINE);
    }

    #[test]
    fn no_state_lies_in_the_cold_part() {
        let mut layout = StateLayout::new();
        let hot = layout.reserve::<[u16; 15]>().unwrap();
        assert!(!layout.reaches_beyond_line());
        let last = layout.reserve::<[u8; 12]>().unwrap();
        assert!(layout.reaches_beyond_line());
        let behind = layout.reserve::<u8>().unwrap();
        assert_eq!((hot.offset(), last.offset(), behind.offset()), (34, 64, 128));
        assert_eq!((layout.entry_size(), layout.all()), (3 * LINE, 0b111));

        let mut layout = StateLayout::new();
        let across = layout.reserve::<[u32; 10]>().unwrap();
        assert_eq!((across.offset(), layout.entry_size()), (36, 2 * LINE));
        let mut layout = StateLayout::new();
        assert_eq!(layout.reserve::<[u8; 43]>().unwrap().offset(), 2 * LINE, "one byte too many");
    }

    #[test]
    fn a_time_takes_a_place_and_none_of_the_states() {
        let mut layout = StateLayout::new();
        let state = layout.reserve::<u16>().unwrap();
        let time = layout.reserve_time().unwrap();
        let behind = layout.reserve::<u8>().unwrap();
        assert_eq!((state.offset(), time.offset, behind.offset()), (34, 40, 48));
        assert_eq!(layout.all(), 0b11);
        layout.reserve::<[u8; MAX_ENTRY - 2 * LINE]>().unwrap();
        assert!(matches!(layout.reserve_time(), Err(LayoutError::TooLarge(_))));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        #[repr(align(128))]
        struct Wide(#[expect(dead_code, reason = "only its size counts")] u8);

        let mut layout = StateLayout::new();
        assert!(matches!(layout.reserve::<Wide>(), Err(LayoutError::Alignment(_))));
        assert!(matches!(layout.reserve::<[u8; 5_000]>(), Err(LayoutError::TooLarge(_))));
        for _ in 0..MAX_STATES {
            layout.reserve::<u32>().unwrap();
        }
        assert_eq!(layout.reserve::<u32>().unwrap_err(), LayoutError::TooMany);
        assert_eq!(layout.entry_size(), 2 * LINE);
    }

    #[test]
    fn a_layout_gives_the_same_places_again_to_the_same_types_alone() {
        let mut layout = StateLayout::new();
        let (state, time) = (layout.reserve::<u16>().unwrap(), layout.reserve_time().unwrap());
        let behind = layout.reserve::<[u32; 10]>().unwrap();

        let mut again = layout.again();
        assert_eq!(again.entry_size(), layout.entry_size());
        assert_eq!(again.reserve::<i16>().unwrap_err(), LayoutError::Unlike("i16"));
        let same = again.reserve::<u16>().unwrap();
        assert_eq!((same.layout, same.offset, same.bit), (state.layout, state.offset, state.bit));
        assert_eq!(again.reserve::<u64>().unwrap_err(), LayoutError::Unlike("u64"), "a time");
        assert_eq!(again.reserve_time().unwrap().offset, time.offset);
        assert!(!layout.is_continued_by(&again), "a place is left");
        assert_eq!(again.reserve_time().unwrap_err(), LayoutError::Unlike("a deadline"));
        assert_eq!(again.reserve::<[u32; 10]>().unwrap().offset, behind.offset);
        assert_eq!(
            again.reserve::<u8>().unwrap_err(),
            LayoutError::Unlike("u8"),
            "no place is left"
        );
        assert!(layout.is_continued_by(&again));
        assert!(!layout.is_continued_by(&StateLayout::new()));
        // The next but one has the same places, too.
        let third = again.again();
        assert_eq!(third.places.len(), 3);
    }
}
