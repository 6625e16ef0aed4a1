//! What people are shown of a run: a line of figures while it goes on, a summary at the end, and, through its
//! control socket, whatever they ask for in between.

pub mod capture;
pub mod control;
pub mod live;
pub mod log_writer;
pub mod summary;
pub mod trace;

pub use live::LiveLine;
pub use log_writer::{LogError, LogWriter};
pub use summary::Summary;
