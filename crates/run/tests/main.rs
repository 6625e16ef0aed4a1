//! Lanes on running workers.

mod broken;
mod joint;
mod live;
mod metronome;
mod moving;
mod reporting;
mod sleeping;
mod starting;
