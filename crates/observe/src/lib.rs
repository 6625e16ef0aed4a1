//! What people are shown of a run: a line of figures while it goes on, and a summary at the end.

pub mod live;
pub mod log_writer;
pub mod summary;

pub use live::LiveLine;
pub use log_writer::{LogError, LogWriter};
pub use summary::Summary;
