//! What a run came to by class, lane and flow, where it has objectives or offloading lanes.

use rheostat_control::Progress;
use rheostat_observe::{ClassMetrics, Summary};
use rheostat_run::{RunView, Sample};

/// The summary with what a controller decided, and what lanes measured by class.
pub(crate) fn with_progress(
    summary: Summary,
    progress: &Progress,
    view: &RunView,
    sample: &Sample,
) -> Summary {
    let Some(classes) = view.classes() else { return summary };
    // Without objectives, classes are measured for the sake of flows that leave.
    let metrics = match classes.objectives.is_none() {
        true => Vec::new(),
        false => ClassMetrics::of(view, progress.predicted, sample.seconds),
    };
    let summary = Summary {
        classes: metrics,
        prediction_error: progress.prediction_error,
        ..summary.with_roles(progress.roles.iter().map(|role| role.name()))
    };
    match view.flows_leave() {
        true => summary.with_offloading(sample),
        false => summary,
    }
}
