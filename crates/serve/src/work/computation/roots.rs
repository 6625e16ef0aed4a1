//! Square roots of numbers that are counted up.

use std::hint::black_box;

/// Takes the roots of the next `operations` numbers after `number`, and returns the last.
pub(super) fn run(number: u64, operations: u64) -> u64 {
    let end = number.wrapping_add(operations);
    let mut value = number as f64;
    for _ in 0..operations {
        value += 1.0;
        black_box(black_box(value).sqrt());
    }
    end
}
