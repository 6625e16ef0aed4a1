//! Places for values that stay where they are, allocated a few at a time, and the deadlines of the values.

use rheostat_base::Time;
use rheostat_base::sync::prefetch::{prefetch_for_write, prefetch_lines_for_write};
use rheostat_state::DeadlineWheel;

/// Values that are allocated together.
const CHUNK: usize = 8;

/// Values by the number of their place. A value never moves; a place that becomes free is the next to be taken, and its memory
/// stays for that. Each value may have a deadline.
pub(crate) struct Slab<T> {
    chunks: Vec<Box<[Option<T>; CHUNK]>>,
    /// How many values each place has had.
    generations: Vec<u32>,
    free: Vec<u32>,
    len: usize,
    deadlines: DeadlineWheel,
}

/// A value, with what its slab has of it besides.
pub(crate) struct Placed<'a, T> {
    pub(crate) value: &'a mut T,
    place: u32,
    generations: &'a [u32],
    deadlines: &'a mut DeadlineWheel,
}

impl<T> Placed<'_, T> {
    /// The place, and how many values have had it before.
    pub(crate) fn name(&self) -> (u32, u32) {
        (self.place, self.generations[self.place as usize])
    }

    /// As [`Slab::arm`].
    #[inline]
    pub(crate) fn arm(&mut self, at: Time) {
        self.deadlines.arm(self.place, at);
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            chunks: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            len: 0,
            deadlines: DeadlineWheel::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Places, those that are free included.
    pub(crate) fn places(&self) -> usize {
        self.generations.len()
    }

    /// How many values have had a place before the one that is there, or is next.
    pub(crate) fn generation(&self, place: u32) -> u32 {
        self.generations.get(place as usize).copied().unwrap_or(0)
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| self.grow());
        self.chunks[place as usize / CHUNK][place as usize % CHUNK] = Some(value);
        self.len += 1;
        place
    }

    /// Makes places, and returns one that is not entered as free.
    #[cold]
    fn grow(&mut self) -> u32 {
        let first = self.places() as u32;
        self.chunks.push(Box::new([const { None }; CHUNK]));
        self.generations.resize(self.places() + CHUNK, 0);
        self.free.extend((first + 1..first + CHUNK as u32).rev());
        first
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let value = self.chunks.get_mut(place as usize / CHUNK)?[place as usize % CHUNK].take()?;
        let generation = &mut self.generations[place as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(place);
        self.len -= 1;
        self.deadlines.disarm(place);
        Some(value)
    }

    /// Asks for what leads to a place, and for its deadline.
    #[inline]
    pub(crate) fn prefetch_chunk(&self, place: u32) {
        if let Some(chunk) = self.chunks.get(place as usize / CHUNK) {
            prefetch_for_write(chunk);
        }
        self.deadlines.prefetch(place);
    }

    /// Asks for the first `lines` of a place, without a look at it.
    #[inline]
    pub(crate) fn prefetch(&self, place: u32, lines: usize) {
        if let Some(chunk) = self.chunks.get(place as usize / CHUNK) {
            prefetch_lines_for_write(&chunk[place as usize % CHUNK], lines);
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.chunks.get(place as usize / CHUNK)?[place as usize % CHUNK].as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.chunks.get_mut(place as usize / CHUNK)?[place as usize % CHUNK].as_mut()
    }

    /// A value with its deadline.
    #[inline]
    pub(crate) fn get_placed(&mut self, place: u32) -> Option<Placed<'_, T>> {
        let Slab { chunks, generations, deadlines, .. } = self;
        let chunk = chunks.get_mut(place as usize / CHUNK)?;
        let value = chunk[place as usize % CHUNK].as_mut()?;
        Some(Placed { value, place, generations, deadlines })
    }

    /// Sets the deadline of a value, if it is there.
    #[inline]
    pub(crate) fn arm(&mut self, place: u32, at: Time) {
        if self.get(place).is_some() {
            self.deadlines.arm(place, at);
        }
    }

    /// When to look for deadlines that have passed: none is found before.
    pub(crate) fn next_due(&self) -> Time {
        self.deadlines.next_due().unwrap_or(Time::NEVER)
    }

    /// A place whose deadline has come by `now`. It has none then, until it is armed again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        self.deadlines.poll(now)
    }

    /// Two different values.
    pub(crate) fn pair_mut(&mut self, places: [u32; 2]) -> Option<[&mut T; 2]> {
        let [(a, i), (b, j)] = places.map(|place| (place as usize / CHUNK, place as usize % CHUNK));
        let [first, second] = if a == b {
            self.chunks.get_mut(a)?.get_disjoint_mut([i, j]).ok()?
        } else {
            let [one, other] = self.chunks.get_disjoint_mut([a, b]).ok()?;
            [&mut one[i], &mut other[j]]
        };
        Some([first.as_mut()?, second.as_mut()?])
    }

    /// The places of values.
    pub(crate) fn taken(&self) -> impl Iterator<Item = u32> {
        let all = self.chunks.iter().flat_map(|chunk| chunk.iter());
        (0..).zip(all).filter(|(_, value)| value.is_some()).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn values_are_where_they_were_put_until_they_are_taken_out() {
        let (mut slab, mut model) = (Slab::default(), BTreeMap::new());
        let (mut state, mut most) = (1_u64, 0);
        for turn in 0..5_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = (state >> 33) as u32 % 40;
            match model.remove(&place) {
                Some(value) => {
                    let before = slab.generation(place);
                    assert_eq!(slab.remove(place), Some(value));
                    assert_eq!((slab.remove(place), slab.generation(place)), (None, before + 1));
                }
                None => {
                    model.insert(slab.insert(turn), turn);
                }
            }
            most = most.max(model.len());
            assert_eq!(slab.len(), model.len());
            assert!(slab.taken().eq(model.keys().copied()));
            assert!(model.iter().all(|(place, value)| slab.get(*place) == Some(value)));
        }
        // Free places are taken again before there are more.
        assert_eq!(slab.places(), most.next_multiple_of(CHUNK));
    }

    #[test]
    fn a_pair_is_of_two_values_of_one_chunk_or_of_two() {
        let mut slab = Slab::default();
        let places: Vec<u32> = (0..CHUNK as u32 + 1).map(|value| slab.insert(value)).collect();
        let last = places[CHUNK];
        assert_eq!(slab.pair_mut([0, 1]), Some([&mut 0, &mut 1]));
        assert_eq!(slab.pair_mut([last, 3]), Some([&mut 8, &mut 3]));
        assert!(slab.pair_mut([2, 2]).is_none() && slab.pair_mut([2, 100]).is_none());
        slab.remove(3);
        assert!(slab.pair_mut([2, 3]).is_none() && slab.pair_mut([last + 1, 2]).is_none());
    }
}
