//! How many requests are offered.

/// A load of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedLoad {
    /// A share of a capacity; whose, the rig defines.
    Share(f64),
    /// Requests per second.
    Rate(f64),
}

impl OfferedLoad {
    /// Requests per second where this many are a share of 1.
    pub fn rate(self, capacity: f64) -> f64 {
        match self {
            OfferedLoad::Share(share) => share * capacity,
            OfferedLoad::Rate(rate) => rate,
        }
    }

    /// The share of `capacity`.
    pub fn share(self, capacity: f64) -> f64 {
        match self {
            OfferedLoad::Share(share) => share,
            OfferedLoad::Rate(rate) => rate / capacity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_same_for_any_capacity_and_a_share_is_not() {
        let (share, rate) = (OfferedLoad::Share(0.5), OfferedLoad::Rate(300.0));
        assert_eq!((share.rate(1_000.0), share.share(1_000.0)), (500.0, 0.5));
        assert_eq!((rate.rate(1_000.0), rate.share(1_000.0)), (300.0, 0.3));
    }
}
