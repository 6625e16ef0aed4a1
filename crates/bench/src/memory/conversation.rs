//! The packets of one lane in order: first every flow opens, then data flows.

use std::sync::Arc;

use rheostat_base::Counter;
use rheostat_packet::HashKind;
use rheostat_steer::Steering;

use super::endpoints::{Endpoints, FrameSize, Servers};
use super::externals::Externals;
use super::frame::{ACK, PSH, RST, SYN, Step, mark, payload_len};
use super::pick::{LAG, Pick, Picks, Role};
use super::{Load, device_hash};

/// Flows that are between their first and their last packet of the opening at most.
const OPENING: u64 = 256;
/// Packets by which one device may be ahead of the other: less than [`LAG`], so that no packet comes
/// before the one it answers.
const LEAD: u64 = LAG as u64 / 2;

/// Marks of packets while flows open.
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const THIRD: u8 = 3;
/// The server's first acknowledgement: from here on its window is scaled, and the client may send
/// more than 64 KiB ahead.
const FOURTH: u8 = 4;
/// The mark of the first packet of a short connection.
const BRIEF_SYN: u8 = 5;

/// How far a lane's devices are. The lane alone writes it; others may read it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Flows of which the first, second, third, and last packet of the opening has passed the chain.
    first: Counter,
    second: Counter,
    third: Counter,
    pub(super) opened: Counter,
    /// 1 once all flows are open.
    pub(super) open: Counter,
    /// Data packets that each device has given.
    given: [Counter; 2],
    externals: Externals,
}

impl Progress {
    /// Notes a packet that leaves.
    #[inline]
    pub(super) fn passed(&self, frame: &[u8]) {
        if self.open.get() != 0 {
            if self.externals.learns() && mark(frame) == BRIEF_SYN {
                self.externals.learn_brief(frame);
            }
            return;
        }
        match mark(frame) {
            FIRST => {
                self.externals.learn_flow(frame);
                self.first.increment();
            }
            SECOND => self.second.increment(),
            THIRD => self.third.increment(),
            FOURTH => self.opened.increment(),
            _ => {}
        }
    }
}

/// What both devices of a lane read.
pub(super) struct Conversation {
    /// The lane's flows.
    flows: Vec<u32>,
    /// Short connections per round.
    connections: u32,
    rounds: [Vec<Pick>; 2],
    size: FrameSize,
    servers: Servers,
    steering: Arc<Steering>,
    lane: usize,
    lanes: usize,
    /// The number of the first short connection: above those of all flows.
    base: u64,
    progress: Arc<Progress>,
    /// What the devices' hashes cover.
    covered: HashKind,
}

/// One device's part.
pub(super) struct Side {
    script: Arc<Conversation>,
    /// The data packets of a round.
    picks: Vec<Pick>,
    /// Whether the picks know what was learned.
    has_learned: bool,
    from_client: bool,
    /// Opening: packets given per step.
    firsts: u64,
    answers: u64,
    updates: u64,
    /// Where in the round the next data packet stands, and which round it is.
    at: usize,
    round: u32,
    given: u64,
}

/// A packet to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planned {
    pub(super) ends: Endpoints,
    pub(super) step: Step,
    pub(super) hash: u32,
}

impl Conversation {
    pub(super) fn new(
        load: &Load,
        picks: Picks,
        steering: Arc<Steering>,
        lane: usize,
        lanes: usize,
    ) -> Conversation {
        let Load { size, servers, .. } = *load;
        let base = u64::from(load.flows);
        let externals = Externals::new(load.flows, load.translated);
        let progress = Arc::new(Progress { externals, ..Progress::default() });
        let Picks { flows, from_inside, from_outside, connections } = picks;
        let rounds = [from_inside, from_outside];
        let (_, covered) = device_hash(&steering, Endpoints::default().key());
        Conversation {
            flows,
            connections,
            rounds,
            size,
            servers,
            steering,
            lane,
            lanes,
            base,
            progress,
            covered,
        }
    }

    pub(super) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// The parts of the device inside and the one outside.
    pub(super) fn into_sides(mut self) -> [Side; 2] {
        let [inside, outside] = std::mem::take(&mut self.rounds);
        let script = Arc::new(self);
        [(true, inside), (false, outside)].map(|(from_client, picks)| Side {
            script: script.clone(),
            picks,
            has_learned: false,
            from_client,
            firsts: 0,
            answers: 0,
            updates: 0,
            at: 0,
            round: 0,
            given: 0,
        })
    }

    /// A packet of a flow's handshake.
    fn opening(&self, index: u64, mark: u8) -> Planned {
        let flow = self.flows[index as usize];
        let mut ends = Endpoints::of(flow.into(), self.size, self.servers);
        let (hash, _) = device_hash(&self.steering, ends.key());
        let (client, server) = first_numbers(flow.into());
        let (seq, ack, flags) = match mark {
            FIRST => (client.wrapping_sub(1), 0, SYN),
            SECOND => (server.wrapping_sub(1), client, SYN | ACK),
            THIRD => (client, server, ACK),
            _ => (server, client, ACK),
        };
        let from_client = matches!(mark, FIRST | THIRD);
        if !from_client && !ends.is_v6 {
            ends.client = self.progress.externals.of_flow(flow).unwrap_or(ends.client);
        }
        // The largest frame of a handshake fits into the shortest of data, but with IPv6's headers.
        let len = if ends.is_v6 { 78 } else { 60 };
        let step = Step { from_client, seq, ack, flags, len, has_data: false, mark, tag: flow };
        Planned { ends, step, hash }
    }

    /// A data packet of an open flow. Field by field: a copy of the whole would wait for its parts.
    #[inline(always)]
    fn data(&self, pick: &Pick, round: u32, from_client: bool, planned: &mut Planned) {
        let mut ends = Endpoints::of(pick.flow.into(), self.size, self.servers);
        let payload = payload_len(&ends);
        let sent = round.wrapping_mul(pick.per_round).wrapping_add(pick.rank);
        let seen = round.wrapping_mul(pick.answers).wrapping_add_signed(pick.seen);
        let (client, server) = first_numbers(pick.flow.into());
        let (own, other) = if from_client { (client, server) } else { (server, client) };
        let step = &mut planned.step;
        step.from_client = from_client;
        step.seq = own.wrapping_add(payload.wrapping_mul(sent));
        step.ack = other.wrapping_add(payload.wrapping_mul(seen));
        step.flags = PSH | ACK;
        step.len = ends.frame_len;
        step.has_data = true;
        step.mark = 0;
        step.tag = 0;
        ends.client = pick.client.unwrap_or(ends.client);
        planned.ends = ends;
        planned.hash = pick.hash;
    }

    /// A packet of a short connection.
    #[inline(never)]
    fn brief(&self, pick: &Pick, round: u32, from_client: bool) -> Planned {
        // Rounds are counted from one here, so that there is one before the first.
        let round = u64::from(round) + 1 - u64::from(pick.opened_before);
        let connection = round * u64::from(self.connections) + u64::from(pick.flow);
        let (mut ends, hash) = self.endpoints_of_brief(connection);
        let (client, server) = first_numbers(connection);
        let (seq, ack, flags) = match pick.role {
            Role::Syn => (client.wrapping_sub(1), 0, SYN),
            Role::SynAck => (server.wrapping_sub(1), client, SYN | ACK),
            Role::Reset => (client, server, RST | ACK),
            Role::Ack | Role::Data => (client, server, ACK),
        };
        if !from_client {
            ends.client = self.progress.externals.of_brief(connection).unwrap_or(ends.client);
        }
        let mark = if pick.role == Role::Syn { BRIEF_SYN } else { 0 };
        let tag = connection as u32;
        let step = Step { from_client, seq, ack, flags, len: 60, has_data: false, mark, tag };
        Planned { ends, step, hash }
    }

    /// Endpoints of which nobody has heard yet, whose shard is the lane's. Each connection has 16
    /// numbers to choose from; should none fit, which for two lanes happens once in 65,536, the packets are handed to
    /// another lane.
    fn endpoints_of_brief(&self, connection: u64) -> (Endpoints, u32) {
        let candidate = |choice| {
            let ends = Endpoints::brief(self.base + connection * 16 + choice, self.servers);
            (ends, device_hash(&self.steering, ends.key()).0)
        };
        (0..16)
            .map(candidate)
            .find(|(_, hash)| self.steering.shard_of_hash(*hash).index() % self.lanes == self.lane)
            .unwrap_or_else(|| candidate(0))
    }
}

impl Side {
    pub(super) fn progress(&self) -> Arc<Progress> {
        self.script.progress.clone()
    }

    /// What the hashes of planned packets cover.
    pub(super) fn covered(&self) -> HashKind {
        self.script.covered
    }

    /// Plans the next packet, if it is this device's turn.
    #[inline(always)]
    pub(super) fn next(&mut self, planned: &mut Planned) -> bool {
        let script = &*self.script;
        if script.progress.open.get() == 0 {
            let next = self.next_opening();
            *planned = next.unwrap_or(*planned);
            return next.is_some();
        }
        let (own, other) = (usize::from(!self.from_client), usize::from(self.from_client));
        if self.given >= script.progress.given[other].get() + LEAD {
            return false;
        }
        if !self.has_learned {
            self.learn();
        }
        let (script, picks) = (&*self.script, &self.picks);
        loop {
            let pick = &picks[self.at];
            let round = self.round;
            self.at += 1;
            if self.at == picks.len() {
                self.at = 0;
                self.round += 1;
            }
            match pick.role {
                Role::Data => script.data(pick, round, self.from_client, planned),
                // Its connection would have been opened before the first round.
                _ if pick.opened_before && round == 0 => continue,
                _ => *planned = script.brief(pick, round, self.from_client),
            }
            self.given += 1;
            script.progress.given[own].set(self.given);
            return true;
        }
    }

    /// Tells the picks what has become of their clients' endpoints, now that all flows are open.
    #[cold]
    fn learn(&mut self) {
        self.has_learned = true;
        let externals = &self.script.progress.externals;
        if self.from_client || !externals.learns() {
            return;
        }
        for pick in self.picks.iter_mut().filter(|pick| pick.role == Role::Data) {
            if !Endpoints::of(pick.flow.into(), self.script.size, self.script.servers).is_v6 {
                pick.client = externals.of_flow(pick.flow);
            }
        }
    }

    #[cold]
    fn next_opening(&mut self) -> Option<Planned> {
        let progress = &self.script.progress;
        let flows = self.script.flows.len() as u64;
        let (answered, mark) = if self.from_client {
            (progress.second.get(), THIRD)
        } else {
            (progress.first.get(), SECOND)
        };
        if self.answers < answered {
            self.answers += 1;
            return Some(self.script.opening(self.answers - 1, mark));
        }
        if !self.from_client && self.updates < progress.third.get() {
            self.updates += 1;
            return Some(self.script.opening(self.updates - 1, FOURTH));
        }
        if self.from_client && self.firsts < flows && self.firsts < self.answers + OPENING {
            self.firsts += 1;
            return Some(self.script.opening(self.firsts - 1, FIRST));
        }
        if progress.opened.get() == flows {
            progress.open.set(1);
        }
        None
    }
}

/// The sequence numbers of the first byte that client and server send.
#[inline]
fn first_numbers(flow: u64) -> (u32, u32) {
    let mixed = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32, mixed as u32)
}
