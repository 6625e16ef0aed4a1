//! Asking for a cache line before it is written.
#![allow(unsafe_code)]

/// Asks the processor for the cache line of `value`, to be written, and goes on at once. Where another core has the line,
/// this costs the line's way between the cores while other work is done; without a use soon after, it only takes the line
/// from that core. Has no effect on processors other than x86-64, and under models.
#[inline(always)]
pub fn prefetch_for_write<T>(value: &T) {
    prefetch_lines_for_write(value, 1);
}

/// As [`prefetch_for_write`], for `lines` cache lines, the first of which is that at which `value` begins.
#[inline(always)]
pub fn prefetch_lines_for_write<T>(value: &T, lines: usize) {
    for line in 0..lines {
        let address = std::ptr::from_ref(value).cast::<u8>().wrapping_add(64 * line);
        #[cfg(all(target_arch = "x86_64", not(any(miri, loom, shuttle))))]
        // SAFETY: a prefetch reads and writes nothing, wherever it leads, and processors without the instruction take it for none.
        // (The intrinsic becomes a prefetch for reading where the target's baseline does not include this one.)
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom, shuttle)))))]
        let _ = address;
    }
}
