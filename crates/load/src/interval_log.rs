//! Latencies as a log of HdrHistogram, which its tools read: an interval for each run and class, in nanoseconds.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::report::LoadReport;
use crate::run_result::RunResult;

/// Writes the log of runs that began at these moments.
///
/// # Errors
/// When it cannot be written.
pub fn write(
    out: &mut impl Write,
    report: &LoadReport,
    runs: &[(SystemTime, RunResult)],
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment(&format!("rheo load, {}, {}", report.server, report.protocol));
    if let Some((start, _)) = runs.first() {
        builder.with_start_time(*start);
    }
    let mut log = builder.begin_log_with(out, &mut serializer)?;
    for (start, run) in runs {
        let since_epoch = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let span = Duration::from_secs_f64(run.ledger.window().seconds());
        for (number, class) in run.ledger.classes.iter().enumerate() {
            if class.latency.count() == 0 {
                continue;
            }
            let name = format!("class-{number}");
            let tag = Tag::new(&name);
            let histogram = class.latency.histogram();
            log.write_histogram(histogram, since_epoch, span, tag)
                .map_err(|error| io::Error::other(format!("{error:?}")))?;
        }
    }
    Ok(())
}
