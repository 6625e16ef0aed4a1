//! Window sizes in two bytes.

/// A number of bytes up to 2^30, the largest window of RFC 7323 section 2.3, kept to eleven
/// significant bits and rounded up: by less than a thousandth, in favour of the endpoint. Five bits
/// of exponent above eleven of mantissa, so that the order of the encodings is that of the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Window(u16);

const MANTISSA_BITS: u32 = 11;
const MANTISSA: u32 = (1 << MANTISSA_BITS) - 1;

impl Window {
    /// The smallest representable window of at least `bytes`.
    #[inline]
    pub(super) const fn covering(bytes: u32) -> Window {
        let bits = u32::BITS - bytes.leading_zeros();
        let exponent = bits.saturating_sub(MANTISSA_BITS);
        let mantissa = (bytes >> exponent) + (bytes & ((1 << exponent) - 1) != 0) as u32;
        // A carry out of the mantissa leaves zeros behind, so nothing is lost by the shift.
        let (exponent, mantissa) =
            if mantissa > MANTISSA { (exponent + 1, mantissa >> 1) } else { (exponent, mantissa) };
        Window((exponent << MANTISSA_BITS | mantissa) as u16)
    }

    /// The size in bytes.
    #[inline]
    pub(super) const fn bytes(self) -> u32 {
        (self.0 as u32 & MANTISSA) << (self.0 as u32 >> MANTISSA_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LARGEST: u32 = 65_535 << 14;

    proptest! {
        #[test]
        fn rounds_up_by_less_than_a_thousandth(bytes in 0..=LARGEST) {
            let kept = Window::covering(bytes).bytes();
            prop_assert!(kept >= bytes && kept - bytes <= bytes / 1_000);
        }

        #[test]
        fn the_order_of_encodings_is_the_order_of_sizes(a in 0..=LARGEST, b in 0..=LARGEST) {
            let (x, y) = (Window::covering(a), Window::covering(b));
            prop_assert_eq!(x.cmp(&y), x.bytes().cmp(&y.bytes()));
            prop_assert!(a > b || x <= y);
        }
    }

    #[test]
    fn small_and_extreme_windows() {
        for bytes in 0..=2_048 {
            assert_eq!(Window::covering(bytes).bytes(), bytes);
        }
        assert_eq!(Window::covering(65_535).bytes(), 65_536);
        assert_eq!(Window::covering(LARGEST).bytes(), 1 << 30);
    }
}
