//! Files of rows, the line they begin with, and rows as tables.

mod header;
mod row_recorder;
mod table_row;

pub use header::{Build, Header, unknown_profile};
pub use row_recorder::{RecordError, RowRecorder};
pub use table_row::{Column, TableRow, or_dash, to_three_digits};
