//! Files of rows, and the line they begin with.

mod header;
mod row_recorder;

pub use header::{Build, Header, unknown_profile};
pub use row_recorder::{RecordError, RowRecorder};
