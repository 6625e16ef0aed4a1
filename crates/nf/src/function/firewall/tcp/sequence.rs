//! Arithmetic on sequence numbers, modulo 2^32 (RFC 9293 section 3.4): of two numbers the earlier is
//! the one from which the other is reached in less than 2^31 steps.

/// Whether `a` comes before `b`.
#[inline]
pub(super) const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// The later of the two.
#[inline]
pub(super) const fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// Whether `low <= x <= high`, both ends included.
#[inline]
pub(super) const fn within(x: u32, low: u32, high: u32) -> bool {
    !before(x, low) && !before(high, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_is_that_of_small_offsets_from_any_origin(
            origin: u32, a in 0..1_u32 << 30, b in 0..1_u32 << 30,
        ) {
            let (x, y) = (origin.wrapping_add(a), origin.wrapping_add(b));
            prop_assert_eq!(before(x, y), a < b);
            prop_assert_eq!(later(x, y), origin.wrapping_add(a.max(b)));
            prop_assert_eq!(within(x, origin, y), a <= b);
        }
    }
}
