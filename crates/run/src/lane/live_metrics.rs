//! The lane's part in the counts of a service that goes on.

use super::Lane;
use super::joint::Visit;
use crate::live_metrics::MetricsRequest;
use crate::metrics::Metrics;
use crate::service::MetricsPart;
use crate::shard_set::Entry;

impl Lane {
    /// Adds the counts of the lane and of the shards that it has. A joint shard that another lane has at the moment is left for the
    /// next time that the lane is asked.
    #[cold]
    pub(super) fn answer_metrics(&mut self, request: &MetricsRequest) {
        let mut part = Metrics::counts();
        if request.is_new(self.id) {
            self.service.metrics(MetricsPart::Lane, &mut part);
        }
        if request.takes_shared() {
            self.service.metrics(MetricsPart::Shared, &mut part);
        }
        let missing = request.missing_of(self.shards.looked_after());
        let mut counted = Vec::with_capacity(missing.len());
        // Shards stay here until they have been added, so that no other lane adds them, too.
        let mut shards = Visit(&mut self.shards);
        for id in missing {
            if shards.enter(id) == Entry::Entered
                && let Some(shard) = shards.get(id)
            {
                self.service.metrics(MetricsPart::Shard(shard), &mut part);
                counted.push(id);
            }
        }
        request.add(self.id, &part, &counted);
    }
}
