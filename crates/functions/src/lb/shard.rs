//! What the load balancer keeps per shard.

use std::sync::Arc;

use rheostat_base::Time;
use rheostat_ip::{RateLimit, ShardLimit};
use rheostat_nf::{ShardInfo, ShardState};
use rheostat_run::Metrics;
use rheostat_state::Handle;

use super::health::{Assignment, ShardHealth};
use super::{FlowState, Lb};

/// The tables in force, limits, and counters.
#[derive(Debug)]
pub struct LbShard {
    health: ShardHealth,
    errors: ShardLimit,
    echoes: RateLimit,
    next_id: u16,
    pub(super) counts: Counts,
}

/// What happened in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// New flows that got a backend.
    pub(super) flows: u64,
    /// Of those, the ones that were not remembered: the shard's table was full.
    pub(super) unpinned: u64,
    /// Answers of backends that were translated back by their endpoint alone, their flow not being known.
    pub(super) unpinned_answers: u64,
    /// Packets whose QUIC connection ID named another backend than the table or the flow.
    pub(super) named: u64,
    /// Flows moved to another backend, theirs being down.
    pub(super) moved: u64,
    /// Flows reset, their backend being down.
    pub(super) reset: u64,
    /// Packets for which there was no backend.
    pub(super) no_backend: u64,
    /// Packets that were too big for the tunnel.
    pub(super) too_big: u64,
    /// Packets that went through the tunnel in fragments.
    pub(super) fragmented: u64,
    /// ICMP errors that went to the backend of the flow they are about.
    pub(super) errors_to_backends: u64,
    /// Errors from inside a tunnel of which the client was told.
    pub(super) errors_from_tunnels: u64,
    /// Echo requests answered.
    pub(super) echoes: u64,
}

impl Counts {
    /// Adds the counts to a run's figures, under their names there.
    pub(super) fn add_to(&self, metrics: &mut Metrics) {
        for (name, count) in [
            ("lb_flows", self.flows),
            ("lb_unpinned", self.unpinned),
            ("lb_unpinned_answers", self.unpinned_answers),
            ("lb_named", self.named),
            ("lb_moved", self.moved),
            ("lb_reset", self.reset),
            ("lb_no_backend", self.no_backend),
            ("lb_too_big", self.too_big),
            ("lb_fragmented", self.fragmented),
            ("lb_errors_to_backends", self.errors_to_backends),
            ("lb_errors_from_tunnels", self.errors_from_tunnels),
            ("lb_echoes", self.echoes),
        ] {
            metrics.add(name, count);
        }
    }
}

impl ShardState<Lb> for LbShard {
    fn of(lb: &Lb, shard: ShardInfo, _: Handle<FlowState>) -> LbShard {
        let rate = lb.config.answers_per_second;
        LbShard {
            health: lb.edition.follow(shard.id),
            errors: lb.errors.of_shard(rate, shard.shards),
            echoes: RateLimit::new(rate, rate),
            next_id: shard.seed as u16,
            counts: Counts::default(),
        }
    }

    fn follow(&mut self, lb: &Lb, shard: &ShardInfo) {
        lb.board.put_in_force(&lb.edition);
        let rate = lb.config.answers_per_second;
        self.health = lb.edition.follow(shard.id);
        self.errors.set_own(rate);
        self.echoes.set(rate, rate);
    }
}

impl LbShard {
    /// The health of backends and the tables that the shard goes by.
    #[inline]
    pub(super) fn assignment(&self) -> &Arc<Assignment> {
        &self.health.assignment
    }

    /// The number of that assignment.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.health.generation()
    }

    /// Applies another health of the backends, if there is one.
    pub(super) fn renew(&mut self, lb: &Lb) {
        if !lb.edition.is_in_force() {
            lb.board.put_in_force(&lb.edition);
        }
        self.health.renew(&lb.edition);
    }

    pub(super) fn may_report(&mut self, now: Time) -> bool {
        self.errors.allow(now)
    }

    pub(super) fn may_echo(&mut self, now: Time) -> bool {
        self.echoes.allow(now)
    }

    /// An identification for an outer packet that may be fragmented. They come round after 65,536 such
    /// packets of the shard (RFC 6864, section 4.3).
    pub(super) fn next_id(&mut self) -> u16 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }
}
