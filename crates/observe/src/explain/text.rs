//! An explanation, for people.

use std::fmt;

use super::{
    Explanation, FlowMetrics, LaneMetrics, Limit, LimitKind, OffloadMetrics, ShardMetrics,
};
use crate::flow_name::with_protocol;

/// Moves that are written out.
const MOVES: usize = 12;
/// Flows that are written out.
const FLOWS: usize = 5;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { policy, seconds, sampled, .. } = self;
        match self.assumed {
            None => write!(
                f,
                "policy    {policy}, by {seconds:.1} s of load; flows by {sampled} packets of it"
            )?,
            Some(mean) => write!(
                f,
                "policy    {policy}, by {sampled} packets, as if they loaded lanes to {} on average",
                Percent(mean)
            )?,
        }
        self.lanes(f)?;
        let (before, after) = (self.imbalance.before, self.imbalance.after);
        write!(
            f,
            "\nimbalance {before:.2}: the busiest lane's load over the mean; {after:.2} to expect"
        )?;
        for why in &self.why {
            write!(f, "\nwhy       {why}")?;
        }
        if let Some(limit) = &self.limit {
            write!(f, "\nnote      {limit}")?;
        }
        for class in &self.classes {
            write!(f, "\nclass     {class}")?;
        }
        for queue in &self.shared_queues {
            write!(f, "\nqueue     {queue}")?;
        }
        if let Some(shards) = &self.shared_shards {
            write!(f, "\nshards    {shards}")?;
        }
        for each in self.moves.iter().take(MOVES) {
            write!(f, "\nmove      {}", each.why)?;
        }
        if let Some(more) = self.moves.len().checked_sub(MOVES).filter(|more| *more > 0) {
            write!(f, "\nmove      {more} more; all of them with --json")?;
        }
        for OffloadMetrics { shard, from, to, load, after } in &self.offloads {
            let (load, after) = (Percent(*load), Percent(*after));
            write!(
                f,
                "\noffload   flows of shard {shard}, of lane {from}, on lane {to}: {load}, {after} to expect"
            )?;
        }
        for FlowMetrics { flow, shard, packets } in self.flows.iter().take(FLOWS) {
            let share = Percent(*packets as f64 / (*sampled).max(1) as f64);
            let flow = with_protocol(flow);
            write!(f, "\nflow      {share:>7} of the packets: {flow}, in shard {shard}")?;
        }
        Ok(())
    }
}

impl Explanation {
    fn lanes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LaneMetrics { lane, load, other, after, offloads, offloads_after } in &self.lanes {
            let own = || self.shards.iter().filter(|shard| shard.lane == *lane);
            write!(f, "\nlane {lane:<4} ")?;
            match (load, after) {
                (None, None) => write!(f, "parked")?,
                (None, Some(after)) => write!(f, "parked, to be woken: {} then", Percent(*after))?,
                (Some(load), None) => write!(f, "{:>7}, to be parked", Percent(*load))?,
                (Some(load), Some(after)) => {
                    write!(f, "{:>7}, {:>7} to expect", Percent(*load), Percent(*after))?;
                }
            }
            match (offloads, offloads_after) {
                (false, false) => {}
                (true, true) => write!(f, ", offloading")?,
                (true, false) => write!(f, ", offloading, no longer then")?,
                (false, true) => write!(f, ", to offload")?,
            }
            if load.is_some() {
                write!(f, "; {} shards", own().count())?;
            }
            if let Some(ShardMetrics { shard, load, flows, .. }) =
                own().max_by(|a, b| a.load.total_cmp(&b.load)).filter(|shard| shard.load > 0.0)
            {
                let (load, plural) = (Percent(*load), if *flows == 1 { "" } else { "s" });
                write!(f, ", the heaviest shard {shard} with {load} ({flows} flow{plural} seen)")?;
            }
            if *other >= 0.0005 {
                write!(f, "; {} for handing over", Percent(*other))?;
            }
        }
        Ok(())
    }

    /// The share of packets of each bucket, sixteen on a line behind the number of the first, in tenths of a
    /// percent.
    pub fn buckets_as_text(&self) -> String {
        let sum = self.buckets.iter().sum::<u64>().max(1) as f64;
        let share = |packets: &u64| format!("{:>6.1}", *packets as f64 * 1_000.0 / sum);
        let line = |(row, buckets): (usize, &[u64])| {
            format!("{:>7}  {}\n", row * 16, buckets.iter().map(share).collect::<String>())
        };
        let lines: String = self.buckets.chunks(16).enumerate().map(line).collect();
        format!("bucket    packets of each, in thousandths\n{}", lines.trim_end())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit { kind, shard, flow, load, mean } = self;
        let (load, mean) = (Percent(*load), Percent(*mean));
        match (kind, flow) {
            (LimitKind::Flow, Some(flow)) => write!(
                f,
                "limited by one flow: {} takes {load} of a lane, a fair share is {mean}; its packets \
                 have to stay together, so no policy can divide it",
                with_protocol(flow)
            ),
            _ => write!(
                f,
                "limited by one shard: shard {shard} takes {load} of a lane, a fair share is {mean}; more \
                 shards ([state] shards) separate its flows"
            ),
        }
    }
}

/// A share of one, as people write it.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} %", 100.0 * self.0))
    }
}
