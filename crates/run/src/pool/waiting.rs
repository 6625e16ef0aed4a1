//! What waits at a client for outcomes of tasks.

/// Names something that waits. Used again when that has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

/// Things that wait, up to a fixed number, each with the member that has its task. Nothing allocates after [`WaitingTable::new`].
#[derive(Debug)]
pub(super) struct WaitingTable<W> {
    places: Vec<Option<(W, u16)>>,
    free: Vec<Place>,
}

/// The member of a task that no member has.
pub(super) const NO_MEMBER: u16 = u16::MAX;

impl<W> WaitingTable<W> {
    /// Room for `capacity` things.
    pub(super) fn new(capacity: usize) -> WaitingTable<W> {
        WaitingTable {
            places: (0..capacity).map(|_| None).collect(),
            free: (0..capacity as u32).rev().map(Place).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Lets something wait; gives it back when there is no room.
    pub(super) fn enter(&mut self, waits: W) -> Result<Place, W> {
        let Some(place) = self.free.pop() else { return Err(waits) };
        self.places[place.index()] = Some((waits, NO_MEMBER));
        Ok(place)
    }

    /// Notes which member was given the task of `place`.
    pub(super) fn assign(&mut self, place: Place, member: u16) {
        if let Some((_, has)) = &mut self.places[place.index()] {
            *has = member;
        }
    }

    /// Takes what waits at `place`, and the member that was given its task, [`NO_MEMBER`] if none was; `None` if nothing waits.
    pub(super) fn leave(&mut self, place: Place) -> Option<(W, u16)> {
        let left = self.places[place.index()].take()?;
        self.free.push(place);
        Some(left)
    }

    /// A place whose task `member` was given. Takes time in proportion to the room.
    pub(super) fn one_of(&self, member: u16) -> Option<Place> {
        let has = |place: &Option<(W, u16)>| place.as_ref().is_some_and(|(_, has)| *has == member);
        self.places.iter().position(has).map(|index| Place(index as u32))
    }
}

impl Place {
    fn index(self) -> usize {
        self.0 as usize
    }
}
