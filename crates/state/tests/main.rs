//! Objects and transactions, held against oracles.

mod objects;
mod serialisability;
mod starvation;
