//! Lanes on running workers.

mod broken;
mod live;
mod moving;
mod reporting;
mod sleeping;
