//! Families of lanes and shards.

use rheostat_base::DropReason;
use rheostat_run::LaneSample;

use super::Snapshot;
use super::family::{Family, Kind, Samples};
use super::histogram::Buckets;

const LANE: &[&str] = &["lane"];

pub(super) const FAMILIES: &[Family] = &[
    Family::new("rheo_build", Kind::Facts, &["version"], "The program", |run, to| {
        to.count([&run.version], 1);
    }),
    Family::new("rheo_uptime_seconds", Kind::Gauge, &[], "Seconds since the start", |run, to| {
        to.real([], run.sample.seconds);
    }),
    count("rheo_packets", "Packets received from the lane's queues", |run, to| {
        each(run, to, |lane| lane.received);
    }),
    count("rheo_bytes", "Bytes of packets received from the lane's queues", |run, to| {
        each(run, to, |lane| lane.received_bytes);
    }),
    count("rheo_sent_packets", "Packets of the lane that devices sent", |run, to| {
        each(run, to, |lane| lane.sent);
    }),
    count("rheo_sent_bytes", "Bytes of packets of the lane that devices sent", |run, to| {
        each(run, to, |lane| lane.sent_bytes);
    }),
    count(
        "rheo_originated_packets",
        "Packets that functions made, such as resets and ICMP errors",
        |run, to| each(run, to, |lane| lane.originated),
    ),
    count(
        "rheo_copied_packets",
        "Copies that functions made of packets, beyond the first",
        |run, to| each(run, to, |lane| lane.copied),
    ),
    count("rheo_consumed_packets", "Packets that ended in the lane on purpose", |run, to| {
        each(run, to, |lane| lane.consumed);
    }),
    Family::new(
        "rheo_dropped_packets",
        Kind::Count,
        &["lane", "reason"],
        "Packets that the lane dropped, by reason; reasons without drops are left out",
        |run, to| {
            for (number, lane) in run.sample.lanes.iter().enumerate() {
                for reason in DropReason::all() {
                    let dropped = lane.dropped[reason as usize];
                    if dropped > 0 {
                        to.count([&number, &reason.name()], dropped);
                    }
                }
            }
        },
    ),
    count(
        "rheo_reordered_packets",
        "Packets processed after a younger packet of the same direction of their flow",
        |run, to| each(run, to, |lane| lane.reordered),
    ),
    count("rheo_handed_off_packets", "Packets given to other lanes", |run, to| {
        each(run, to, |lane| lane.handoff_out);
    }),
    count(
        "rheo_late_handoff_packets",
        "Packets placed here by an old table, after their shard was given to another lane",
        |run, to| each(run, to, |lane| lane.late_handoff),
    ),
    Family::new(
        "rheo_held_packets",
        Kind::Gauge,
        &["lane", "for"],
        "Packets that wait now: for the rest of their datagram, a link address, their shard or flow, a pool, the device",
        |run, to| {
            for (number, lane) in run.sample.lanes.iter().enumerate() {
                for (wait, packets) in [
                    ("fragments", lane.held),
                    ("neighbour", lane.waiting),
                    ("move", lane.on_hold),
                    ("pool", lane.at_pool),
                    ("transmission", lane.transmitting),
                ] {
                    to.count([&number, &wait], packets);
                }
            }
        },
    ),
    gauge("rheo_flows", "Flows alive in the lane", |run, to| each(run, to, LaneSample::flows_live)),
    gauge("rheo_flows_peak", "The most flows the lane has held at once", |run, to| {
        each(run, to, |lane| lane.flows_peak);
    }),
    gauge("rheo_flows_away", "Flows of the lane that are now with other lanes", |run, to| {
        each(run, to, |lane| lane.flows_away);
    }),
    count("rheo_flows_created", "Flows created", |run, to| {
        each(run, to, |lane| lane.flows_created);
    }),
    count("rheo_flows_ended", "Flows ended, for whatever reason", |run, to| {
        each(run, to, |lane| lane.flows_ended);
    }),
    count("rheo_flows_offloaded", "Times that a flow left for another lane", |run, to| {
        each(run, to, |lane| lane.flows_offloaded);
    }),
    count("rheo_offloaded_packets", "Packets sent to the lanes their flows are with", |run, to| {
        each(run, to, |lane| lane.offloaded);
    }),
    count(
        "rheo_refused_packets",
        "Packets sent back to the homes of their flows, as only these could process them",
        |run, to| each(run, to, |lane| lane.refused),
    ),
    count("rheo_shards_moved", "Shards that came from other lanes", |run, to| {
        each(run, to, |lane| lane.shards_in);
    }),
    count(
        "rheo_shard_visits",
        "Times that the lane took a shard that it owns together with others",
        |run, to| each(run, to, |lane| lane.shard_visits),
    ),
    count("rheo_shard_retries", "Tries for such a shard while another lane had it", |run, to| {
        each(run, to, |lane| lane.shard_retries);
    }),
    count(
        "rheo_panics",
        "Handlers of functions that panicked and were stopped there",
        |run, to| {
            each(run, to, |lane| lane.panics);
        },
    ),
    count("rheo_busy_polls", "Polls that found work", |run, to| {
        each(run, to, |lane| lane.busy_polls);
    }),
    count("rheo_idle_polls", "Polls that found no work", |run, to| {
        each(run, to, |lane| lane.idle_polls);
    }),
    Family::new("rheo_busy", Kind::Seconds, LANE, "Seconds in polls that found work", |run, to| {
        each_real(run, to, |lane| lane.busy_ns as f64 / 1e9);
    }),
    Family::new(
        "rheo_lane",
        Kind::Seconds,
        LANE,
        "Seconds since the first poll; `rheo_busy_seconds_total` as a share of it is the load",
        |run, to| each_real(run, to, |lane| lane.total_ns as f64 / 1e9),
    ),
    Family::new(
        "rheo_burst",
        Kind::Sizes,
        LANE,
        "Packets of each poll that found some",
        |run, to| {
            for (number, lane) in run.times.iter().enumerate() {
                to.buckets([&number], Buckets::of_sizes(lane.bursts.bins()));
            }
        },
    ),
    Family::new(
        "rheo_hold",
        Kind::Times,
        LANE,
        "How long packets waited in the lane for their shard to come; the sum is rounded up by a few per cent",
        |run, to| {
            for (number, lane) in run.times.iter().enumerate() {
                to.buckets([&number], Buckets::of(lane.held.bins()));
            }
        },
    ),
    Family::new(
        "rheo_wake_up",
        Kind::Times,
        LANE,
        "From the command that gave a parked lane a shard to the poll that applied it; the sum is rounded up by a few per cent",
        |run, to| {
            for (number, lane) in
                run.times.iter().enumerate().filter(|lane| lane.1.woken.count() > 0)
            {
                to.buckets([&number], Buckets::of(lane.woken.bins()));
            }
        },
    ),
    Family::new(
        "rheo_latency",
        Kind::Times,
        LANE,
        "Latencies of sampled packets in the lane, where classes are measured; the sum is rounded up by a few per cent",
        |run, to| {
            for (number, latencies) in run.latencies.iter().enumerate() {
                to.buckets([&number], Buckets::of(latencies.bins()));
            }
        },
    ),
    Family::new(
        "rheo_imbalance",
        Kind::Gauge,
        &[],
        "How much more the busiest lane worked than a fair share; 1 where all worked alike",
        |run, to| run.status.summary.imbalance.into_iter().for_each(|times| to.real([], times)),
    ),
    Family::new(
        "rheo_shard_packets",
        Kind::Count,
        &["shard"],
        "Packets of the shard, on whichever lane; left out where a policy needs no counts of shards",
        |run, to| {
            for (shard, packets) in run.shards.iter().enumerate() {
                to.count([&shard], *packets);
            }
        },
    ),
    Family::new(
        "rheo_shard_move",
        Kind::Times,
        &[],
        "How long shards took to move, from the start to their arrival; the sum is rounded up by a few per cent",
        |run, to| {
            if run.moves.count() > 0 {
                to.buckets([], Buckets::of(run.moves.bins()));
            }
        },
    ),
    Family::new(
        "rheo_class_latency",
        Kind::Times,
        &["class"],
        "Latencies of sampled packets of the class; the sum is rounded up by a few per cent",
        |run, to| {
            for (class, latencies) in &run.classes {
                to.buckets([class], Buckets::of(latencies.bins()));
            }
        },
    ),
    count("rheo_transactions_committed", "Transactions that committed", |run, to| {
        for (lane, profile) in run.transactions.iter().enumerate() {
            to.count([&lane], profile.commits);
        }
    }),
    count("rheo_transactions_aborted", "Transactions that aborted on a conflict", |run, to| {
        for (lane, profile) in run.transactions.iter().enumerate() {
            to.count([&lane], profile.aborts);
        }
    }),
];

const fn count(name: &'static str, help: &'static str, of: fn(&Snapshot, &mut Samples)) -> Family {
    Family::new(name, Kind::Count, LANE, help, of)
}

const fn gauge(name: &'static str, help: &'static str, of: fn(&Snapshot, &mut Samples)) -> Family {
    Family::new(name, Kind::Gauge, LANE, help, of)
}

fn each(run: &Snapshot, to: &mut Samples, figure: fn(&LaneSample) -> u64) {
    for (number, lane) in run.sample.lanes.iter().enumerate() {
        to.count([&number], figure(lane));
    }
}

fn each_real(run: &Snapshot, to: &mut Samples, figure: fn(&LaneSample) -> f64) {
    for (number, lane) in run.sample.lanes.iter().enumerate() {
        to.real([&number], figure(lane));
    }
}
