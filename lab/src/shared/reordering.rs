//! How far packets are out of order where they arrive (RFC 4737).

/// What became of the order of numbered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reordering {
    /// Packets.
    pub(super) packets: u64,
    /// Of them, packets with a number below one that came before (3.3).
    pub(super) reordered: u64,
    /// The largest distance, in packets, from a reordered packet back to the first that came before it and has a larger
    /// number (4.2).
    pub(super) extent: u64,
    /// Reordered packets that the three before them all exceed, which a TCP sender takes for a loss (3-reordering, 5.3).
    pub(super) beyond_three: u64,
    /// Numbers that never came.
    pub(super) lost: u64,
    /// Numbers that came more than once, each time more.
    pub(super) duplicated: u64,
}

impl Reordering {
    /// Of packets with the numbers 0 to `sent`, as they arrived.
    pub(super) fn of(arrived: &[u64], sent: u64) -> Reordering {
        let mut seen = vec![false; sent as usize];
        let mut found = Reordering { packets: arrived.len() as u64, ..Reordering::default() };
        // Numbers that exceed all before them, with the places where they came: ascending in both.
        let mut records: Vec<(u64, usize)> = Vec::new();
        for (place, &number) in arrived.iter().enumerate() {
            match seen.get_mut(number as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => found.duplicated += 1,
            }
            if records.last().is_none_or(|(largest, _)| *largest < number) {
                records.push((number, place));
                continue;
            }
            found.reordered += 1;
            // The first that exceeds it is a record.
            let first = records.partition_point(|(record, _)| *record <= number);
            if let Some((_, first)) = records.get(first) {
                found.extent = found.extent.max((place - first) as u64);
            }
            let before = &arrived[place.saturating_sub(3)..place];
            if before.len() == 3 && before.iter().all(|earlier| *earlier > number) {
                found.beyond_three += 1;
            }
        }
        found.lost = seen.iter().filter(|seen| !**seen).count() as u64;
        found
    }

    /// Takes in what became of packets that are numbered by themselves.
    pub(super) fn add(&mut self, other: &Reordering) {
        self.packets += other.packets;
        self.reordered += other.reordered;
        self.extent = self.extent.max(other.extent);
        self.beyond_three += other.beyond_three;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
    }

    /// Reordered packets as a share of all.
    pub(super) fn share(&self) -> f64 {
        self.reordered as f64 / self.packets.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc_comes_out() {
        // RFC 4737, 7.1: 1 2 3 5 6 7 8 4 9 10; packet 4 is late by four.
        let arrived = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10].map(|number| number - 1);
        let found = Reordering::of(&arrived, 10);
        assert_eq!((found.reordered, found.extent, found.beyond_three), (1, 4, 1));
        assert_eq!((found.lost, found.duplicated), (0, 0));
    }

    #[test]
    fn what_is_lost_doubled_and_swapped_is_told_apart() {
        let found = Reordering::of(&[0, 2, 1, 4, 4], 6);
        assert_eq!((found.lost, found.duplicated, found.reordered), (2, 1, 2));
        assert_eq!(Reordering::of(&[1, 0], 2).beyond_three, 0);
        assert_eq!(Reordering::of(&[0, 9], 2).duplicated, 1, "no such number was sent");
        assert_eq!(Reordering::of(&[0, 1, 2], 3).share(), 0.0);
    }

    proptest! {
        /// Against the definitions, taken literally.
        #[test]
        fn agrees_with_the_definitions(arrived in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle()) {
            let found = Reordering::of(&arrived, 40);
            let mut expected = (0, 0);
            for (place, number) in arrived.iter().enumerate() {
                if let Some(first) = arrived[..place].iter().position(|earlier| earlier > number) {
                    expected = (expected.0 + 1, expected.1.max((place - first) as u64));
                }
            }
            prop_assert_eq!((found.reordered, found.extent), expected);
        }
    }
}
