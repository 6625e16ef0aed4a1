//! Histograms of delays.

use hdrhistogram::Histogram;

/// Nanoseconds. Longer delays count as this: ten seconds.
const LONGEST: u64 = 10_000_000_000;

/// No delay yet; three digits of each are kept.
pub(crate) fn delays() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds in order")
}

/// The microseconds that this share of the delays did not exceed; `None` without any.
pub(crate) fn quantile_us(of: &Histogram<u64>, share: f64) -> Option<f64> {
    (!of.is_empty()).then(|| of.value_at_quantile(share) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_microseconds_and_none_without_delays() {
        let mut some = delays();
        assert_eq!(quantile_us(&some, 0.5), None);
        (1..=100).for_each(|ns| some.saturating_record(10 * ns));
        some.saturating_record(u64::MAX);
        assert_eq!(quantile_us(&some, 0.5), Some(0.51));
        assert!(quantile_us(&some, 1.0) >= Some(LONGEST as f64 / 1e3));
    }
}
