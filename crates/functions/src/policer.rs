//! A policer: each metered address has a bucket of tokens, packets beyond it are dropped or marked. What
//! is metered is one address, or a prefix: of the source, of the destination, or of the inner or outer
//! end. Meters are those of RFC 2697 and RFC 2698, or a plain limit.
//!
//! A bucket is the state of a flow, and is forgotten once it is full: a new one is no different.

pub mod classes;
mod colour_rules;
pub mod dscp;
mod in_shards;
pub mod listing;
mod marker;
pub mod meter;
pub mod quantity;
mod registration;
pub mod settings;
mod shared;
mod steady;
mod subscriber;

pub use classes::{ClassError, ClassId, Classes};
pub use dscp::{Dscp, DscpError};
pub use in_shards::PolicerInShards;
pub use marker::{Action, Actions, ColourMap};
pub use meter::{Bucket, Colour, Meter, MeterError};
pub use quantity::{Burst, QuantityError, Rate};
pub use registration::{POLICER, PolicerInChain};
pub use shared::SharedPolicer;

use std::time::Duration;

use rheostat_base::{Counter, DropReason, Time};
use rheostat_run::Metrics;
use rheostat_steer::{PacketSet, Side, Whose};

use rheostat_nf::Cx;
use rheostat_nf::NetworkFunction;
use rheostat_nf::Packet;
use rheostat_nf::Steady;
use rheostat_nf::{Admission, FunctionSpec, Outcome, Verdict};
use steady::Buckets;
use subscriber::Subscriber;

/// How long a bucket stays that could be forgotten: traffic that uses little of its rate is not to
/// make a new one for every packet.
const LINGER: Duration = Duration::from_secs(1);

/// The figures of metered packets, in the order of [`Colour`].
const COLOURS: [&str; 3] = ["policer_green", "policer_yellow", "policer_red"];

/// The settings of a policer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// Which addresses have a bucket.
    pub subject: Subject,
    /// The side whose packets are metered; those of the other pass. Without it, those of both are.
    pub from: Option<Side>,
    /// The bytes that count.
    pub count: Count,
    /// The meters.
    pub classes: Classes,
    /// How packets show the colour they come with. Without it the meters are colour-blind.
    pub colours: Option<ColourMap>,
    /// What becomes of packets.
    pub actions: Actions,
    /// Whether a packet passes unmetered for whose bucket there is no room.
    pub pass_when_full: bool,
    /// Whether what is not IP passes.
    pub pass_non_ip: bool,
    /// How many addresses can have a bucket at a time, where buckets are in objects that all lanes share.
    pub subscribers: usize,
}

/// Which addresses have a bucket: all that share so many leading bits have one together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Which of a packet's addresses counts.
    pub whose: Whose,
    /// Leading bits of IPv4 addresses, up to 32.
    pub v4: u8,
    /// Leading bits of IPv6 addresses, up to 128.
    pub v6: u8,
}

/// Which bytes of a packet count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// Those of the IP packet with its header (RFC 2697, section 2).
    #[default]
    Ip,
    /// Those that the packet takes on an Ethernet: the frame with its padding, and preamble, gap and
    /// checksum.
    Frame,
}

/// Bytes of a frame without its checksum, at least (IEEE 802.3).
const LEAST_FRAME: u32 = 60;
/// Bytes that an Ethernet adds to a frame: preamble and start 8, checksum 4, gap 12 (IEEE 802.3).
const AROUND_FRAME: u32 = 24;

/// The policer.
#[derive(Clone, Debug)]
pub struct Policer {
    config: PolicerConfig,
}

/// What the policer keeps of a metered address.
#[derive(Debug)]
pub enum FlowState {
    /// Everything passes, by its class.
    Exempt(ClassId),
    /// A bucket.
    Metered(Metered),
}

/// A bucket with its class, without padding.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub struct Metered {
    bucket: Bucket,
    class: ClassId,
    /// Whether the bucket has been less than half full, and so does not make room for others.
    is_kept: bool,
}

impl Default for FlowState {
    fn default() -> FlowState {
        FlowState::Exempt(ClassId::default())
    }
}

// As many bytes as the line of a flow entry has beside the key.
const _: () = assert!(size_of::<FlowState>() <= 30 && align_of::<FlowState>() == 2);

/// What the policer keeps in each shard.
#[derive(Debug, Default)]
pub struct Tally {
    /// The time up to which buckets that were full have been reclaimed. A packet from before may
    /// belong to one of them: its new bucket is full, and fills from this time on.
    reclaimed: Time,
    /// Packets that the general handlers metered, by their colour.
    packets: [u64; 3],
}

impl Policer {
    /// A policer with these settings.
    pub fn new(config: PolicerConfig) -> Policer {
        Policer { config }
    }

    /// Gives a flow the class of its address, if it has one of another policer, whose place this one has taken: its bucket stays,
    /// and is filled and emptied by the meter of that class.
    #[cold]
    fn renew(&self, cx: &mut Cx<'_, Tally>, packet: &Packet<'_>, state: &mut FlowState) {
        let class = self.config.classes.class_of(packet.arrival_key().first());
        let Some(meter) = self.config.classes.meter(class) else {
            cx.set_evictable(true);
            *state = FlowState::Exempt(class);
            return;
        };
        match state {
            FlowState::Metered(metered) => {
                let mut bucket = metered.bucket;
                meter.adapt(&mut bucket);
                (metered.bucket, metered.class) = (bucket, class);
            }
            FlowState::Exempt(_) => {
                let bucket = meter.full(cx.now().max(cx.shard().reclaimed));
                *state = FlowState::Metered(Metered { bucket, class, is_kept: false });
            }
        }
    }

    /// Meters a packet and marks it.
    #[inline]
    fn police(
        &self,
        cx: &mut Cx<'_, Tally>,
        packet: &mut Packet<'_>,
        state: &mut Metered,
    ) -> Verdict {
        let Some(meter) = self.config.classes.meter(state.class) else { return Verdict::Forward };
        let before = self.colour_before(packet);
        let mut bucket = state.bucket;
        let colour = meter.colour(&mut bucket, cx.now(), self.bytes(packet), before);
        state.bucket = bucket;
        cx.shard().packets[colour as usize] += 1;
        if !state.is_kept && meter.is_half_empty(&bucket) {
            state.is_kept = true;
            cx.set_evictable(false);
        }
        cx.expire_at(meter.full_at(&bucket).max(cx.now() + LINGER));
        self.apply(packet, colour)
    }

    /// Marks a packet of `colour`, unless it is dropped.
    #[inline]
    fn apply(&self, packet: &mut Packet<'_>, colour: Colour) -> Verdict {
        match self.config.actions.of(colour) {
            Action::Drop => Verdict::Drop(DropReason::Policed),
            action => {
                mark(packet, action, colour);
                Verdict::Forward
            }
        }
    }

    /// The subscriber of a packet and its meter, where buckets are not beside flows.
    ///
    /// # Errors
    /// The verdict on a packet that is not metered.
    #[inline]
    fn metered(&self, packet: &Packet<'_>) -> Result<(Subscriber, &Meter), Verdict> {
        let PolicerConfig { classes, subject, pass_non_ip, .. } = &self.config;
        let Some(ends) = packet.addresses() else {
            let verdict = Verdict::Drop(DropReason::NotIp);
            return Err(if *pass_non_ip { Verdict::Forward } else { verdict });
        };
        if !self.is_metered(packet) {
            return Err(Verdict::Forward);
        }
        let (address, subscriber) = subject.of(packet.side(), &ends);
        let meter = classes.meter(classes.class_of(address)).ok_or(Verdict::Forward)?;
        Ok((subscriber, meter))
    }

    /// The verdict on a packet of a subscriber for whose bucket there is no room.
    fn without_room(&self) -> Verdict {
        let pass = self.config.pass_when_full;
        if pass { Verdict::Forward } else { Verdict::Drop(DropReason::TableFull) }
    }

    /// The colour that a packet comes with.
    #[inline]
    fn colour_before(&self, packet: &Packet<'_>) -> Colour {
        match &self.config.colours {
            Some(map) => map.colour(Dscp::of_traffic_class(packet.traffic_class().unwrap_or(0))),
            None => Colour::Green,
        }
    }

    #[inline]
    fn is_metered(&self, packet: &Packet<'_>) -> bool {
        self.config.from.is_none_or(|side| side == packet.side())
    }

    /// The bytes of a packet that count.
    #[inline]
    fn bytes(&self, packet: &Packet<'_>) -> u32 {
        match self.config.count {
            Count::Ip => {
                let headers = packet.headers();
                headers.end.saturating_sub(headers.l3.into())
            }
            Count::Frame => packet.wire_len().max(LEAST_FRAME).saturating_add(AROUND_FRAME),
        }
    }
}

/// Gives a packet of `colour` the code point that it is to pass with.
#[inline]
fn mark(packet: &mut Packet<'_>, action: Action, colour: Colour) {
    if matches!(action, Action::Pass | Action::Drop) {
        return;
    }
    let Some(class) = packet.traffic_class() else { return };
    let own = Dscp::of_traffic_class(class);
    let marked = match action {
        Action::Remark(dscp) => dscp,
        _ => own.with_drop_precedence(colour),
    };
    let marked = marked.in_traffic_class(class);
    if marked != class {
        // A packet that has a class can be given another.
        let _ = packet.set_traffic_class(marked);
    }
}

impl NetworkFunction for Policer {
    type Flow = FlowState;
    type Shard = Tally;

    fn spec(&self) -> FunctionSpec {
        let Subject { whose, v4, v6 } = self.config.subject;
        FunctionSpec {
            passes_without_entry: self.config.pass_when_full,
            counts: COLOURS.to_vec(),
            ..FunctionSpec::named_by(PacketSet::address(whose, v4, v6))
        }
    }

    fn first(
        &self,
        cx: &mut Cx<'_, Tally>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Admission<FlowState>> {
        // In a full table, the oldest bucket that has always been half full makes room.
        cx.set_evictable(true);
        let class = self.config.classes.class_of(packet.arrival_key().first());
        let Some(meter) = self.config.classes.meter(class) else {
            cx.expire_in(LINGER);
            return Ok(Admission::Admit(FlowState::Exempt(class), Verdict::Forward));
        };
        let since = cx.now().max(cx.shard().reclaimed);
        let mut state = Metered { bucket: meter.full(since), class, is_kept: false };
        let verdict = if self.is_metered(packet) {
            self.police(cx, packet, &mut state)
        } else {
            cx.expire_in(LINGER);
            Verdict::Forward
        };
        Ok(Admission::Admit(FlowState::Metered(state), verdict))
    }

    #[inline]
    fn packet(
        &self,
        cx: &mut Cx<'_, Tally>,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Outcome<Verdict> {
        let (FlowState::Metered(Metered { class, .. }) | FlowState::Exempt(class)) = *state;
        if !self.config.classes.has(class) {
            self.renew(cx, packet, state);
        }
        Ok(match state {
            FlowState::Metered(state) if self.is_metered(packet) => self.police(cx, packet, state),
            FlowState::Metered(_) => Verdict::Forward,
            FlowState::Exempt(_) => {
                cx.expire_in(LINGER);
                Verdict::Forward
            }
        })
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl Steady<FlowState> {
        Buckets::of(self, counts)
    }

    fn non_flow(&self, _: &mut Cx<'_, Tally>, _: &mut Packet<'_>) -> Outcome<Verdict> {
        let pass = self.config.pass_non_ip;
        Ok(if pass { Verdict::Forward } else { Verdict::Drop(DropReason::NotIp) })
    }

    fn periodic(&self, cx: &mut Cx<'_, Tally>) -> Outcome<()> {
        let now = cx.now();
        let reclaimed = &mut cx.shard().reclaimed;
        *reclaimed = now.max(*reclaimed);
        Ok(())
    }

    fn metrics(&self, local: &Tally, metrics: &mut Metrics) {
        for (name, packets) in COLOURS.into_iter().zip(local.packets) {
            metrics.add(name, packets);
        }
    }
}
