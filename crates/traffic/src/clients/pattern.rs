//! What clients say: bytes that are a function of the connection and of their place in its stream.

use std::sync::LazyLock;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Places after which the bytes repeat; prime, so that no length of request does.
const PERIOD: u32 = 4_093;
/// The longest piece at once.
const PIECE: usize = 2_048;

static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut period = vec![0; PERIOD as usize];
    SmallRng::seed_from_u64(0x7e57).fill_bytes(&mut period);
    let rest = period[..PIECE].to_vec();
    period.extend(rest);
    period
});

fn start(connection: u32, place: u32) -> usize {
    (connection.wrapping_mul(97).wrapping_add(place) % PERIOD) as usize
}

/// Writes the bytes of a connection's stream from `place` on.
pub fn fill(connection: u32, place: u32, bytes: &mut [u8]) {
    let mut place = place;
    for piece in bytes.chunks_mut(PIECE) {
        let start = start(connection, place);
        piece.copy_from_slice(&BYTES[start..start + piece.len()]);
        place = place.wrapping_add(piece.len() as u32);
    }
}

/// Whether these are the bytes of the stream from `place` on.
pub(super) fn matches(connection: u32, place: u32, bytes: &[u8]) -> bool {
    let mut place = place;
    bytes.chunks(PIECE).all(|piece| {
        let start = start(connection, place);
        place = place.wrapping_add(piece.len() as u32);
        piece == &BYTES[start..start + piece.len()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_changed_or_stands_elsewhere_is_noticed() {
        let mut bytes = vec![0; 5_000];
        fill(7, 100, &mut bytes);
        assert!(matches(7, 100, &bytes) && matches(7, 1_100, &bytes[1_000..]));
        assert!(!matches(7, 101, &bytes) && !matches(8, 100, &bytes));
        bytes[4_999] ^= 1;
        assert!(!matches(7, 100, &bytes));
    }
}
