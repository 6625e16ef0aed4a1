//! A monitor: forwards every packet unchanged, and records flows: their endpoints, packets and bytes of both directions, and
//! how they ended. Its terms are those of IPFIX (RFC 7011, RFC 5102, and RFC 5103 for both directions in one record).

mod flow;
pub mod flow_lines;
pub mod listing;
mod log;
pub mod record;
mod registration;
mod settings;
mod steady;
pub mod talkers;
mod top_line;

pub use flow::FlowState;
pub use flow_lines::FlowLines;
pub use log::{MonitorLog, TopReport};
pub use record::{EndReason, FlowRecord, WayCounts};
pub use registration::MONITOR;
pub use settings::MonitorFunction;
pub use talkers::{Talkers, TopConfig};
pub use top_line::TopLine;

use std::time::Duration;

use rheostat_base::{Counter, ShardId};
use rheostat_packet::FlowKey;
use rheostat_packet::wire::tcp::TcpFlags;
use rheostat_run::Metrics;

use log::LogEnd;
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::Steady;
use rheostat_nf::{Admission, Ending, FunctionSpec, Outcome, ShardState, Verdict};
use rheostat_nf::{NetworkFunction, ShardInfo};
use rheostat_state::Handle;

/// How long packets may follow the end of a connection and still belong to it: the last
/// acknowledgement, and what is sent again.
const LINGER: Duration = Duration::from_secs(5);

/// The settings of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// A flow is over when it had no packet for so long (`flowIdleTimeout`, RFC 5102).
    pub idle: Duration,
    /// A flow that goes on is reported this often (`flowActiveTimeout`).
    pub active: Duration,
    /// The rankings of hosts and flows, if they are kept.
    pub top: Option<TopConfig>,
}

impl Default for MonitorConfig {
    /// Fifteen seconds and thirty minutes, as most exporters have it, and rankings of ten.
    fn default() -> MonitorConfig {
        MonitorConfig {
            idle: Duration::from_secs(15),
            active: Duration::from_secs(30 * 60),
            top: Some(TopConfig::default()),
        }
    }
}

/// The monitor.
#[derive(Debug)]
pub struct Monitor {
    config: MonitorConfig,
    log: Option<MonitorLog>,
}

/// What the monitor keeps in each shard.
#[derive(Debug)]
pub struct MonitorShard {
    id: ShardId,
    log: Option<LogEnd>,
    /// The rankings since the start.
    whole: Option<Talkers>,
    /// The rankings of the present interval, and its number.
    recent: Option<(Talkers, u64)>,
    counts: Counts,
}

impl ShardState<Monitor> for MonitorShard {
    fn of(monitor: &Monitor, shard: ShardInfo, _: Handle<FlowState>) -> MonitorShard {
        let top = monitor.config.top.as_ref();
        MonitorShard {
            id: shard.id,
            log: monitor.log.as_ref().map(MonitorLog::open),
            whole: top.map(Talkers::new),
            // Without a log they have no reader.
            recent: top
                .filter(|top| top.interval.is_some() && monitor.log.is_some())
                .map(|top| (Talkers::new(top), 0)),
            counts: Counts::default(),
        }
    }

    fn follow(&mut self, monitor: &Monitor, _: &ShardInfo) {
        self.log = match (self.log.take(), &monitor.log) {
            (Some(end), Some(log)) if end.is_of(log) => Some(end),
            (_, log) => log.as_ref().map(MonitorLog::open),
        };
    }
}

/// What the monitor counts in one shard.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Records, and those of them that the log had no room for.
    records: u64,
    lost: u64,
    /// What the records report.
    packets: u64,
    bytes: u64,
    /// What is in no record: packets without a flow, and ICMP errors about one.
    other_packets: u64,
    other_bytes: u64,
}

impl Monitor {
    /// A monitor with these settings. Without a log, there are only figures and rankings.
    pub fn new(config: MonitorConfig, log: Option<MonitorLog>) -> Monitor {
        Monitor { config, log }
    }

    /// How long a flow may be silent from now on.
    #[inline]
    fn lifetime(&self, state: &FlowState) -> Duration {
        if state.is_over() { self.config.idle.min(LINGER) } else { self.config.idle }
    }

    /// Counts a packet of a flow.
    #[inline]
    fn count(
        &self,
        cx: &mut Cx<'_, MonitorShard>,
        packet: &Packet<'_>,
        flags: u8,
        state: &mut FlowState,
    ) {
        state.count(packet, flags, cx.now());
        if state.has_much_to_tell() {
            cx.shard().tell(&packet.arrival_key(), state);
        }
        cx.expire_in(self.lifetime(state));
    }
}

impl MonitorShard {
    /// Adds to the rankings what a flow has had since the last time.
    fn tell(&mut self, key: &FlowKey, state: &mut FlowState) {
        let untold = state.take_untold();
        let recent = self.recent.as_mut().map(|(talkers, _)| talkers);
        for talkers in self.whole.as_mut().into_iter().chain(recent) {
            talkers.count(key, untold);
        }
    }

    /// Makes a record of a flow and logs it.
    fn report(&mut self, key: &FlowKey, state: &mut FlowState, reason: EndReason, is_last: bool) {
        self.tell(key, state);
        let record = state.record(*key, reason);
        self.counts.records += 1;
        for way in &record.ways {
            self.counts.packets += u64::from(way.packets);
            self.counts.bytes += way.bytes;
        }
        if let Some(log) = &mut self.log
            && !log.note(record, is_last)
        {
            self.counts.lost += 1;
        }
    }

    fn count_other(&mut self, packet: &Packet<'_>) {
        self.counts.other_packets += 1;
        self.counts.other_bytes += u64::from(packet.network_len());
    }
}

fn flags_of(packet: &Packet<'_>) -> u8 {
    packet.tcp().map_or(0, |tcp| tcp.flags().0)
}

impl NetworkFunction for Monitor {
    type Flow = FlowState;
    type Shard = MonitorShard;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec {
            // Records end before connections do.
            keeps_own_flows: true,
            ends_with_run: true,
            passes_without_entry: true,
            ..FunctionSpec::five_tuple()
        }
    }

    fn first(
        &self,
        cx: &mut Cx<'_, MonitorShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        // In a full table the flow that was seen first makes room: most of it has been reported.
        cx.set_evictable(true);
        let mut state = FlowState::new(cx.now(), packet.is_forward());
        self.count(cx, packet, flags_of(packet), &mut state);
        Ok(Admission::Admit(state, Verdict::Forward))
    }

    #[inline]
    fn packet(
        &self,
        cx: &mut Cx<'_, MonitorShard>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Verdict> {
        if packet.is_icmp_error() {
            state.count_error();
            cx.shard().count_other(packet);
            return Ok(Verdict::Forward);
        }
        let (now, flags) = (cx.now(), flags_of(packet));
        let opens = flags & (TcpFlags::SYN | TcpFlags::ACK) == TcpFlags::SYN;
        if opens && state.is_over() {
            cx.shard().report(&packet.arrival_key(), state, state.end_reason(), false);
            *state = FlowState::new(now, packet.is_forward());
        } else if state.is_due(now, self.config.active) {
            cx.shard().report(&packet.arrival_key(), state, EndReason::Active, false);
            state.go_on(now);
        }
        self.count(cx, packet, flags, state);
        Ok(Verdict::Forward)
    }

    #[inline(always)]
    fn steady<'a>(&'a self, _: &'a [Counter]) -> impl Steady<FlowState> {
        steady::Counted(self)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, MonitorShard>,
        key: &FlowKey,
        state: &mut FlowState,
        why: Ending,
    ) -> Outcome<()> {
        let reason = match why {
            _ if state.is_over() => state.end_reason(),
            Ending::Expired | Ending::Closed => EndReason::Idle,
            Ending::Evicted => EndReason::LackOfResources,
            Ending::Stopped => EndReason::Forced,
        };
        cx.shard().report(key, state, reason, why == Ending::Stopped);
        Ok(())
    }

    fn discarded(&self, cx: &mut Cx<'_, MonitorShard>, mut state: FlowState) {
        let untold = state.take_untold();
        let counts = &mut cx.shard().counts;
        counts.other_packets += untold.packets;
        counts.other_bytes += untold.bytes;
    }

    fn non_flow(&self, cx: &mut Cx<'_, MonitorShard>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        cx.shard().count_other(packet);
        Ok(Verdict::Forward)
    }

    /// At the end of an interval, sends its rankings to the log.
    fn periodic(&self, cx: &mut Cx<'_, MonitorShard>) -> Outcome<()> {
        let Some(interval) = self.config.top.as_ref().and_then(|top| top.interval) else {
            return Ok(());
        };
        let number = cx.now().as_nanos() / u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let MonitorShard { id, log: Some(log), recent: Some((talkers, current)), .. } = cx.shard()
        else {
            return Ok(());
        };
        if number > *current {
            if *current > 0 {
                log.report(TopReport {
                    shard: *id,
                    interval: *current,
                    ranked: talkers.ranked().into(),
                });
            }
            talkers.clear();
            *current = number;
        }
        Ok(())
    }

    fn metrics(&self, local: &MonitorShard, metrics: &mut Metrics) {
        let counts = &local.counts;
        for (name, count) in [
            ("monitor_records", counts.records),
            ("monitor_records_lost", counts.lost),
            ("monitor_packets", counts.packets),
            ("monitor_bytes", counts.bytes),
            ("monitor_other_packets", counts.other_packets),
            ("monitor_other_bytes", counts.other_bytes),
        ] {
            metrics.add(name, count);
        }
        if let (Some(talkers), Some(top)) = (&local.whole, &self.config.top) {
            for ranked in talkers.ranked() {
                ranked.merge_into(metrics.ranking(ranked.name(), top.listed));
            }
        }
    }
}
