//! The reply of a running instance to the request what a policy would do.

use std::thread;
use std::time::Duration;

use rheostat_base::LaneId;
use rheostat_capture::{Mirrors, Wanted};
use rheostat_control::Observation;
use rheostat_control::balance::counts;
use rheostat_observe::ClassMetrics;
use rheostat_observe::control::{ExplainRequest, Reply};
use rheostat_observe::explain::{Breakdown, Explanation};
use rheostat_observe::shared_queue_metrics::SharedQueueMetrics;
use rheostat_observe::shared_shard_metrics::SharedShardMetrics;
use rheostat_run::ClassLooks;
use rheostat_steer::policy::{
    HeavyFlow, LaneCounts, LaneState, LoadEstimator, LoadSnapshot, Offloads, Policy,
    PolicyRegistration,
};

use super::instance::Instance;
use super::peer::Peer;

/// How long the load is looked at, and how long at most.
const OVER: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Packets that are looked at.
const SAMPLE: u64 = 20_000;
/// Packets that are looked at at most: what is remembered of flows stays small.
const MOST: u64 = 1_000_000;
/// Into how many parts the time is divided. Packets are looked at at the beginning of each, so that the sample is
/// not that of one moment.
const PARTS: u32 = 10;
/// Bytes of a packet that its flow is read from, extension headers and the packet in an ICMP error included.
const HEADERS: usize = 256;
/// How long to wait when nothing was there.
const PAUSE: Duration = Duration::from_millis(1);

impl Instance {
    /// Looks at the load for a while, and at some of the packets, and asks a policy.
    pub(super) fn explain(&self, request: &ExplainRequest, peer: &Peer) -> Result<Reply, String> {
        let over = request.over_ms.map_or(OVER, Duration::from_millis).min(LONGEST);
        let mut policy = self.policy_to_ask(request.policy.as_deref())?;
        let start = self.view.now();
        let before = counts(&self.view);
        let mut looks = ClassLooks::new(self.live.balancing.settings().objectives.percentile);
        looks.take(self.view.class_figures());
        let mut breakdown = Breakdown::new(self.view.steering().clone());
        self.sample(&mut breakdown, over, request.sample.unwrap_or(SAMPLE).min(MOST), peer)?;
        let now = self.view.now();
        let since: Vec<_> = counts(&self.view).iter().zip(&before).map(difference).collect();
        let shards = self.view.steering().shards();
        let mut estimator =
            LoadEstimator::new(since.len(), shards, LoadEstimator::SMOOTHING, start);
        estimator.update(now, since).expect("a run's lanes and shards stay the same");
        let load = self.snapshot(&estimator, &mut looks);
        let plan = policy.plan(now, &load);
        let explanation = Explanation::of(policy.name(), &load, &plan, &breakdown);
        let mut explanation = explanation.expect("a plan fits the load it is made for");
        let sample = self.view.sample();
        explanation.shared_queues = SharedQueueMetrics::of(&sample.sharing);
        explanation.shared_shards = SharedShardMetrics::of(&sample);
        if !self.live.balancing.settings().objectives.is_none() {
            let predicted = self.progress.read().predicted;
            explanation.classes = ClassMetrics::of(&self.view, predicted, sample.seconds);
        }
        Ok(Reply::Explanation(Box::new(explanation)))
    }

    /// The policy of this name, that of the run, or one that moves something.
    fn policy_to_ask(&self, name: Option<&str>) -> Result<Box<dyn Policy>, String> {
        let policy = match name {
            Some(name) => PolicyRegistration::named(&self.live.balancing.config().policies, name),
            None => Ok(self.live.balancing.config().policy.or_moving()),
        };
        policy
            .map(|policy| policy.make(&self.live.balancing.settings()))
            .map_err(|error| error.to_string())
    }

    /// Counts up to `most` packets, spread over the time.
    fn sample(
        &self,
        breakdown: &mut Breakdown,
        over: Duration,
        most: u64,
        peer: &Peer,
    ) -> Result<(), String> {
        let start = self.view.now();
        for part in 1..=PARTS {
            let end = start + over * part / PARTS;
            let wanted = Wanted { after: false, snaplen: HEADERS, ..Wanted::default() };
            let capture = Mirrors::capture(self.view.mirrors(), wanted);
            let mut capture = capture.map_err(|error| error.to_string())?;
            let enough = most * u64::from(part) / u64::from(PARTS);
            while self.view.now() < end && breakdown.packets() < enough {
                let taken = capture.take(usize::MAX, |copied| {
                    if breakdown.packets() < enough {
                        let wire_len = copied.wire_len as usize;
                        breakdown.count(copied.device, copied.link, wire_len, &copied.bytes);
                    }
                });
                if taken == 0 {
                    thread::sleep(PAUSE);
                }
                if peer.has_gone() || peer.run_is_over() {
                    return Err("the run is over".to_owned());
                }
            }
            drop(capture);
            while self.view.now() < end {
                if peer.has_gone() || peer.run_is_over() {
                    return Err("the run is over".to_owned());
                }
                thread::sleep(PAUSE.max(end.since(self.view.now()).min(Duration::from_millis(50))));
            }
        }
        Ok(())
    }

    /// The load as a policy wants it. Lanes without a shard are taken to be parked, unless they work on flows of others.
    fn snapshot(&self, estimator: &LoadEstimator, looks: &mut ClassLooks) -> LoadSnapshot {
        let migrator = self.view.migrator();
        let (owners, rewrite) = (migrator.owners().to_vec(), migrator.rewrite());
        drop(migrator);
        let mut links = self.progress.read().links;
        links.resize(self.view.lanes(), None);
        // Shards may have moved since the last plan.
        let works = |lane: LaneId| owners.contains(&lane);
        for (lane, link) in (0..).map(LaneId).zip(&mut links) {
            *link = link.filter(|to| works(lane) && !works(*to));
        }
        let state = |lane: LaneId| match works(lane) {
            true => (LaneState::Active, None),
            false if links.contains(&Some(lane)) => (LaneState::Offloading, None),
            false => (LaneState::Parked, None),
        };
        let count = self.view.lanes();
        let lanes: Vec<_> = (0..count as u16).map(LaneId).map(state).collect();
        let load = estimator.snapshot(&owners, &lanes, self.live.balancing.config().bounds(count));
        let load = load.expect("every shard has an owner, which is active");
        let shares = estimator.offloaded().to_vec();
        let load = load.with_offloads(Offloads { links, shares });
        let mut load = load.expect("links lead from active to offloading lanes");
        let seen = Observation::of(&self.view, looks, &owners, rewrite);
        if !seen.classes.is_empty() {
            load = load.with_classes(seen.classes).expect("figures are those of the lanes");
        }
        let heavy = seen.heavy.iter().map(|flow| HeavyFlow {
            shard: flow.shard,
            load: estimator.shards()[flow.shard.index()].times(flow.part),
        });
        let load = load.with_heavy(heavy.collect()).expect("flows are those of the shards");
        match rewrite {
            Some(rewrite) => load.with_rewrite(rewrite),
            None => load,
        }
    }
}

/// What a lane has done meanwhile.
fn difference((after, before): (&LaneCounts, &LaneCounts)) -> LaneCounts {
    let since = |after: &[u64], before: &[u64]| {
        after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).collect()
    };
    LaneCounts {
        busy_ns: after.busy_ns.saturating_sub(before.busy_ns),
        shards: since(&after.shards, &before.shards),
        bytes: since(&after.bytes, &before.bytes),
        offloaded: since(&after.offloaded, &before.offloaded),
        other: after.other.saturating_sub(before.other),
    }
}
