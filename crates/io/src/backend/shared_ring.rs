//! One receive ring that several lanes empty at once (COREC, 6.4).
//!
//! The producer is an unmodified NIC, or the kernel: it fills descriptors in order and reuses one when the tail has
//! passed it. The consumers are *claimants*. None of them waits for another:
//!
//! ```text
//!        tail                     claimed                produced
//!          |  claimed, being read    |  ready, unclaimed     |  empty
//!  --------+-------------------------+-----------------------+---------> indices, 64 bits, ever growing
//!          |  done bit 0/1 each      |
//!  given back in order, by the holder of the release lock
//! ```
//!
//! 1. **Scan**: count the ready descriptors from `claimed` on, as far as one capacity beyond the tail, whole packets only. Of
//!    more than a burst only the last is looked at, since the producer fills them in order.
//! 2. **Claim**: move `claimed` over them with a compare-and-swap. A claimant that loses the race scans again.
//! 3. **Take**: read the packets and clear what the producer set, in one burst or several. The descriptors are the
//!    claimant's alone. [`ClaimSize`] decides how many they are.
//! 4. **Done**: set the done bits of the claim.
//! 5. **Release**: try the release lock. Its holder clears the done bits of the contiguous prefix and then moves the tail
//!    over it. A claimant that finds the lock taken leaves its bits to the holder.
//!
//! Two faults of straightforward versions are designed out, and are models here:
//!
//! - *Stale done bit on wrap*: a descriptor that is claimed and not read yet still looks ready one lap later. The scan ends
//!   one capacity beyond the published tail, and everything below the tail was cleared before it was published.
//! - *Lost tail advance*: a claimant sets its done bits just after the holder of the lock has counted, and finds the lock
//!   taken. Both take and give back the lock with a `swap` that acquires and releases, and the holder looks at the head's
//!   bit once more after it gave the lock back: either the claimant gets the lock, or the holder sees its bits. (With a
//!   plain store in place of the second `swap` the holder need not see them.)
//!
//! A 32-bit index would come round in minutes; a claimant that slept meanwhile would succeed with its old scan. The 64-bit
//! index does not come round.
//!
//! | ordering | pairs with |
//! |---|---|
//! | `claimed`: Release of the compare-and-swap, Acquire of the load | each other: what a claimant draws between its load and its compare-and-swap grows with the index |
//! | done bits: Release of `set`, Acquire of `prefix` | each other: a descriptor is read before it is given back |
//! | tail: Release of the store, Acquire of the load in `claim` | each other: what lies below the tail is cleared before it is scanned again |
//! | release lock: both `swap`s acquire and release | each other, see above |

mod claim_size;
mod claimants;
mod claims;
mod completion;
mod done_bits;
#[cfg(all(test, shuttle))]
mod exploration;
#[cfg(all(test, loom))]
mod models;
mod turns;

pub use claim_size::ClaimSize;
pub(crate) use claimants::Claimants;
pub use claims::{Claim, Claims, NoClaim, Readiness};
pub use turns::Turns;
