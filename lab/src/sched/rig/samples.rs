//! What replies took, one by one: quantiles are exact, and windows are told apart afterwards.

/// A reply that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RigSample {
    /// When its request was due, in nanoseconds of the clock of the run.
    pub(crate) due: u64,
    /// From then until it was transmitted, in nanoseconds; at most 4.2 s.
    pub(crate) latency: u32,
    /// Nanoseconds that the application took, and in the upper four bits the class.
    took: u32,
}

const CLASS_SHIFT: u32 = 28;

impl RigSample {
    pub(crate) fn new(due: u64, left: u64, class: u8, took: u64) -> RigSample {
        let latency = u32::try_from(left.saturating_sub(due)).unwrap_or(u32::MAX);
        let took = took.min((1 << CLASS_SHIFT) - 1) as u32;
        RigSample { due, latency, took: u32::from(class.min(15)) << CLASS_SHIFT | took }
    }

    /// The class of the request.
    pub(crate) fn class(self) -> u8 {
        (self.took >> CLASS_SHIFT) as u8
    }

    /// Nanoseconds that the application took; at most 268 ms.
    pub(crate) fn took(self) -> u32 {
        self.took & ((1 << CLASS_SHIFT) - 1)
    }
}

/// The samples of one transmit queue. There is no room for more than was reserved: recording allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    list: Vec<RigSample>,
    /// Replies for which there was no room.
    pub(crate) lost: u64,
}

impl Samples {
    /// Room for so many, all of it touched once.
    pub(crate) fn with_room(count: usize) -> Samples {
        let mut list = vec![RigSample { due: 0, latency: 0, took: 1 }; count];
        list.clear();
        Samples { list, lost: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, sample: RigSample) {
        match self.list.len() < self.list.capacity() {
            true => self.list.push(sample),
            false => self.lost += 1,
        }
    }

    pub(crate) fn list(&self) -> &[RigSample] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_keeps_what_it_has_room_for() {
        let sample = RigSample::new(1_000, 5_500, 3, 4_000);
        assert_eq!((sample.due, sample.latency), (1_000, 4_500));
        assert_eq!((sample.class(), sample.took()), (3, 4_000));
        let long = RigSample::new(0, u64::MAX, 200, u64::MAX);
        assert_eq!((long.latency, long.class(), long.took()), (u32::MAX, 15, (1 << 28) - 1));
    }

    #[test]
    fn samples_beyond_the_room_are_counted() {
        let mut samples = Samples::with_room(2);
        (0..5).for_each(|due| samples.record(RigSample::new(due, due, 0, 0)));
        assert_eq!((samples.list().len(), samples.lost), (2, 3));
        assert_eq!(samples.list()[1].due, 1);
    }
}
