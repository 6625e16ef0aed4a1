//! Rounding of figures: digits beyond the precision of a measurement are not printed.

/// `value` to a multiple of `1 / steps`.
pub fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

/// `value` to one digit behind the point.
pub fn to_tenths(value: f64) -> f64 {
    rounded(value, 1e1)
}

/// `value` to two digits behind the point.
pub fn to_hundredths(value: f64) -> f64 {
    rounded(value, 1e2)
}

/// `value` to three digits behind the point.
pub fn to_thousandths(value: f64) -> f64 {
    rounded(value, 1e3)
}

/// `value` to four digits behind the point.
pub fn to_ten_thousandths(value: f64) -> f64 {
    rounded(value, 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_the_digits_that_they_are_rounded_to() {
        assert_eq!(to_tenths(12.26), 12.3);
        assert_eq!(rounded(-0.000_004, 1e5), 0.0);
        assert_eq!(to_hundredths(1.005_1), 1.01);
        assert_eq!(to_thousandths(2.0 / 3.0), 0.667);
        assert_eq!(to_ten_thousandths(2.0 / 3.0), 0.666_7);
    }
}
