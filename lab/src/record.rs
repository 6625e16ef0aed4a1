//! What was measured, as it is kept: one file per command, a line of JSON per run, written as they come.

mod file;
mod file_header;
mod request_row;
mod request_scenario_header;
mod row;
mod run;
mod series;
mod table;

pub use file::{RecordError, Recorder, Results, read};
pub use file_header::FileHeader;
pub use request_row::{RequestClass, RequestRow};
pub use request_scenario_header::RequestScenarioHeader;
pub use row::{RecordedRow, RecordedSpan, rows};
pub use run::{Plans, RecordedRun};
pub use series::Series;
