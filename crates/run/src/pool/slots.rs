//! Values that wait at a client, for outcomes of tasks or for their turn.

/// Names a value that waits. Used again when that has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolSlot(u32);

/// Values that wait, up to a fixed number. Nothing allocates after [`PoolSlots::new`].
#[derive(Debug)]
pub(super) struct PoolSlots<W> {
    values: Vec<Option<W>>,
    free: Vec<PoolSlot>,
}

impl<W> PoolSlots<W> {
    /// Room for `capacity` values.
    pub(super) fn new(capacity: usize) -> PoolSlots<W> {
        PoolSlots {
            values: (0..capacity).map(|_| None).collect(),
            free: (0..capacity as u32).rev().map(PoolSlot).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.values.len()
    }

    /// Lets a value wait; gives it back when there is no room.
    pub(super) fn enter(&mut self, value: W) -> Result<PoolSlot, W> {
        let Some(slot) = self.free.pop() else { return Err(value) };
        self.values[slot.0 as usize] = Some(value);
        Ok(slot)
    }

    /// The value that waits at `slot`, if one does.
    pub(super) fn get_mut(&mut self, slot: PoolSlot) -> Option<&mut W> {
        self.values[slot.0 as usize].as_mut()
    }

    /// Takes the value that waits at `slot`; `None` if none does.
    pub(super) fn leave(&mut self, slot: PoolSlot) -> Option<W> {
        let value = self.values[slot.0 as usize].take()?;
        self.free.push(slot);
        Some(value)
    }

    /// The slot of a value for which `is_meant` holds. Takes time in proportion to the room.
    pub(super) fn find(&self, is_meant: impl Fn(&W) -> bool) -> Option<PoolSlot> {
        let has = |value: &Option<W>| value.as_ref().is_some_and(&is_meant);
        self.values.iter().position(has).map(|index| PoolSlot(index as u32))
    }
}
