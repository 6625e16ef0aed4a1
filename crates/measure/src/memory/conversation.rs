//! The packets of one lane in order: first every flow opens, then data flows.

use std::sync::Arc;

use rheostat_base::Counter;
use rheostat_packet::HashKind;
use rheostat_steer::Steering;

use super::endpoints::{FrameSize, MemoryEndpoints, Servers};
use super::externals::Externals;
use super::frame::{ACK, FrameStep, RST, SYN, mark};
use super::frames::Frames;
use super::line::{MemoryLine, first_numbers};
use super::pick::{LAG, Pick, Picks, Role};
use super::{Load, Share, SourceKind, device_hash};

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
#[repr(align(128))]
pub(super) struct ConversationProgress {
    /// Flows of which the first, second, third, and last packet of the opening has passed the chain.
    first: Counter,
    second: Counter,
    third: Counter,
    pub(super) opened: Counter,
    /// 1 once all flows are open.
    open: Counter,
    /// Devices that are ready to send data.
    ready: Counter,
    /// Data packets that each device has given.
    given: [Counter; 2],
    externals: Externals,
}

impl ConversationProgress {
    /// Whether both devices send data.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.get() == 2
    }

    /// Whether packets that leave have to be noted.
    #[inline]
    pub(super) fn is_curious(&self) -> bool {
        self.open.get() == 0 || self.externals.learns()
    }

    /// Notes a packet that leaves.
    pub(super) fn passed(&self, frame: &[u8]) {
        if self.open.get() != 0 {
            if mark(frame) == BRIEF_SYN {
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
    source: SourceKind,
    steering: Arc<Steering>,
    share: Share,
    /// The number of the first short connection: above those of all flows.
    base: u64,
    progress: Arc<ConversationProgress>,
    /// What the devices' hashes cover.
    covered: HashKind,
}

/// One device's part.
pub(super) struct ConversationSide {
    script: Arc<Conversation>,
    packets: Packets,
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

/// The data packets of a round.
enum Packets {
    /// Drawn, while flows open.
    Drawn(Vec<Pick>),
    /// To be written anew in each round.
    Lines(Vec<MemoryLine>),
    /// Written already.
    Frames(Frames),
}

/// What a device gives next.
pub(super) enum Upcoming<'a> {
    /// These, in the round of this number, counted from 0.
    Lines(&'a [MemoryLine], u32),
    /// So many of these, from the one with this number on.
    Frames(&'a Frames, usize, usize),
}

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) ends: MemoryEndpoints,
    pub(super) step: FrameStep,
    pub(super) hash: u32,
}

impl Conversation {
    pub(super) fn new(
        load: &Load,
        picks: Picks,
        steering: Arc<Steering>,
        share: Share,
    ) -> Conversation {
        let Load { size, servers, source, .. } = *load;
        let base = u64::from(load.flows);
        let externals = Externals::new(load.flows, load.translated);
        let progress =
            Arc::new(ConversationProgress { externals, ..ConversationProgress::default() });
        let Picks { flows, from_inside, from_outside, connections } = picks;
        let rounds = [from_inside, from_outside];
        let (_, covered) = device_hash(&steering, MemoryEndpoints::default().key());
        Conversation {
            flows,
            connections,
            rounds,
            size,
            servers,
            source,
            steering,
            share,
            base,
            progress,
            covered,
        }
    }

    pub(super) fn progress(&self) -> Arc<ConversationProgress> {
        self.progress.clone()
    }

    /// The parts of the device inside and the one outside.
    pub(super) fn into_sides(mut self) -> [ConversationSide; 2] {
        let [inside, outside] = std::mem::take(&mut self.rounds);
        let script = Arc::new(self);
        [(true, inside), (false, outside)].map(|(from_client, picks)| ConversationSide {
            script: script.clone(),
            packets: Packets::Drawn(picks),
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
        let mut ends = MemoryEndpoints::of(flow.into(), self.size, self.servers);
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
        let len = ends.handshake_len();
        let step =
            FrameStep { from_client, seq, ack, flags, len, has_data: false, mark, tag: flow };
        Planned { ends, step, hash }
    }

    /// A packet of a short connection.
    #[inline(never)]
    fn brief(
        &self,
        number: u32,
        role: Role,
        opened_before: bool,
        round: u32,
        from_client: bool,
    ) -> Planned {
        // Rounds are counted from one here, so that there is one before the first.
        let round = u64::from(round) + 1 - u64::from(opened_before);
        let connection = round * u64::from(self.connections) + u64::from(number);
        let (mut ends, hash) = self.endpoints_of_brief(connection);
        let (client, server) = first_numbers(connection);
        let (seq, ack, flags) = match role {
            Role::Syn => (client.wrapping_sub(1), 0, SYN),
            Role::SynAck => (server.wrapping_sub(1), client, SYN | ACK),
            Role::Reset => (client, server, RST | ACK),
            Role::Ack | Role::Data => (client, server, ACK),
        };
        if !from_client {
            ends.client = self.progress.externals.of_brief(connection).unwrap_or(ends.client);
        }
        let mark = if role == Role::Syn { BRIEF_SYN } else { 0 };
        let tag = connection as u32;
        let step = FrameStep { from_client, seq, ack, flags, len: 60, has_data: false, mark, tag };
        Planned { ends, step, hash }
    }

    /// Endpoints that were not used yet, of a flow of the lane. Each connection has 16
    /// numbers to choose from; should none fit, which for two lanes happens once in 65,536, the packets are handed to
    /// another lane.
    fn endpoints_of_brief(&self, connection: u64) -> (MemoryEndpoints, u32) {
        let candidate = |choice| {
            let ends = MemoryEndpoints::brief(self.base + connection * 16 + choice, self.servers);
            (ends, device_hash(&self.steering, ends.key()).0)
        };
        (0..16)
            .map(candidate)
            .find(|(_, hash)| self.share.contains(&self.steering, *hash))
            .unwrap_or_else(|| candidate(0))
    }
}

impl ConversationSide {
    pub(super) fn progress(&self) -> Arc<ConversationProgress> {
        self.script.progress.clone()
    }

    /// What the hashes of planned packets cover.
    pub(super) fn covered(&self) -> HashKind {
        self.script.covered
    }

    /// Whether data packets are to be sent ([`ConversationSide::upcoming`]), and not those of the opening ([`ConversationSide::next_opening`]).
    #[inline]
    pub(super) fn is_ready(&mut self) -> bool {
        if self.script.progress.open.get() == 0 {
            return false;
        }
        if let Packets::Drawn(_) = self.packets {
            self.make_ready();
        }
        true
    }

    /// Up to `most` data packets, as far as it is this device's turn.
    #[inline]
    pub(super) fn upcoming(&self, most: usize) -> Upcoming<'_> {
        let other = usize::from(self.from_client);
        let lead = self.script.progress.given[other].get() + LEAD - self.given;
        let most = most.min(lead as usize);
        match &self.packets {
            Packets::Lines(lines) => {
                let end = lines.len().min(self.at + most);
                Upcoming::Lines(&lines[self.at..end], self.round)
            }
            Packets::Frames(frames) => {
                Upcoming::Frames(frames, self.at, most.min(frames.len() - self.at))
            }
            Packets::Drawn(_) => Upcoming::Lines(&[], 0),
        }
    }

    /// Notes that the next `count` packets of [`ConversationSide::upcoming`] were given, or passed over, and that `given` were given.
    #[inline]
    pub(super) fn advance(&mut self, count: usize, given: usize) {
        self.at += count;
        let length = match &self.packets {
            Packets::Lines(lines) => lines.len(),
            Packets::Frames(frames) => frames.len(),
            Packets::Drawn(picks) => picks.len(),
        };
        if self.at == length {
            self.at = 0;
            self.round += 1;
        }
        self.given += given as u64;
        let own = usize::from(!self.from_client);
        self.script.progress.given[own].set(self.given);
    }

    /// The packet of a short connection in round `round`; `None` when its connection would have been opened before the
    /// first round.
    pub(super) fn brief(
        &self,
        number: u32,
        role: Role,
        opened_before: bool,
        round: u32,
    ) -> Option<Planned> {
        let is_there = !(opened_before && round == 0);
        is_there.then(|| self.script.brief(number, role, opened_before, round, self.from_client))
    }

    /// Whether this is the device of the clients.
    pub(super) fn is_clients(&self) -> bool {
        self.from_client
    }

    /// Draws the packets up, now that all flows are open and what has become of their clients' endpoints is known.
    #[cold]
    fn make_ready(&mut self) {
        let Packets::Drawn(picks) =
            std::mem::replace(&mut self.packets, Packets::Lines(Vec::new()))
        else {
            return;
        };
        let Conversation { progress, size, servers, source, .. } = &*self.script;
        let (from_client, learns) = (self.from_client, progress.externals.learns());
        let line = |pick: &Pick| {
            let external = progress.externals.of_flow(pick.flow);
            let external = external.filter(|_| learns && !from_client);
            MemoryLine::new(pick, from_client, external, (*size, *servers))
        };
        self.packets = match source {
            SourceKind::Converse => Packets::Lines(picks.iter().map(line).collect()),
            SourceKind::Replay => {
                Packets::Frames(Frames::of(picks.iter().map(line), from_client, *size))
            }
        };
        progress.ready.increment();
    }

    /// The next packet of the opening, if it is this device's turn.
    #[cold]
    pub(super) fn next_opening(&mut self) -> Option<Planned> {
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
