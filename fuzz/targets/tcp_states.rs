//! Segments with options against a connection in every state. A model of the peer knows what was sent: what is delivered, sent,
//! acknowledged and reported agrees with it, and the rules of the core's state hold after every step.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rheostat_base::Time;
use rheostat_packet::wire::TcpOptions;
use rheostat_tcp::{
    Config, Connection, Header, Initial, KeepAlive, Options, Segment, SequenceNumber,
    SequenceRange, State, TimeWait, Timestamps, Transmit,
};

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq)]
enum Goal {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

#[derive(Arbitrary, Debug)]
struct Plan {
    goal: Goal,
    is_active: bool,
    sack: bool,
    timestamps: bool,
    nagle: bool,
    send: u16,
    receive: u16,
    ours: u32,
    theirs: u32,
    /// What passes before the goal is reached.
    written: u16,
    received: u16,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Receive(Incoming),
    /// What a well-behaved peer would send.
    Answer(u16),
    Write(u16),
    Read(u16),
    TooBig(i16, u16),
    Finish,
    Close,
    Abort,
    Wait(u16),
    Expire,
}

#[derive(Arbitrary, Debug)]
struct Incoming {
    seq: Number,
    len: u16,
    ack: Option<Number>,
    flags: u8,
    window: u16,
    options: Vec<Opt>,
    /// Options as bytes, in place of the others.
    raw: Option<Vec<u8>>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Number {
    /// By so much beside the number that is due.
    Near(i16),
    /// By so much beside the end of the window.
    Edge(i8),
    Any(u32),
}

#[derive(Arbitrary, Debug)]
enum Opt {
    Mss(u16),
    Scale(u8),
    SackPermitted,
    /// Beside the latest of each.
    Stamps(i16, i16),
    Sack(i16, u16),
}

/// A byte of either stream by its place.
fn byte(place: u32) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 24) as u8
}

fn bytes(place: u32, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| byte(place.wrapping_add(at))).collect()
}

/// Numbers that have been sent, as disjoint ranges of distances from the first.
#[derive(Default)]
struct Covered(Vec<(u32, u32)>);

impl Covered {
    fn add(&mut self, start: u32, end: u32) {
        let (mut start, mut end) = (start, end);
        self.0.retain(|(from, to)| {
            let is_apart = *to < start || end < *from;
            if !is_apart {
                (start, end) = (start.min(*from), end.max(*to));
            }
            is_apart
        });
        self.0.push((start, end));
    }

    fn has(&self, start: u32, end: u32) -> bool {
        self.0.iter().any(|(from, to)| *from <= start && end <= *to)
    }
}

/// What the peer knows.
struct Model {
    connection: Connection,
    now: Time,
    /// The first byte of either stream.
    ours: SequenceNumber,
    theirs: SequenceNumber,
    /// What the connection says it has sent, expects, and takes.
    next: SequenceNumber,
    expected: SequenceNumber,
    edge: SequenceNumber,
    stamp: u32,
    echo: u32,
    /// Bytes written and read.
    written: u32,
    read: u32,
    sent: Covered,
    /// The end of the largest window that the connection was told of, from its first byte on.
    allowed: u32,
    /// The scale of the peer's windows; the largest there is where the peer's SYN was not ours to choose.
    shift: u8,
    has_begun: bool,
    is_sack: bool,
    mss: u32,
}

impl Model {
    fn deliver(&mut self, header: Header, len: usize) {
        // The first byte stands behind SYN, where there is one.
        let first = header.seq + u32::from(header.syn);
        let payload = bytes(first.0.wrapping_sub(self.theirs.0), len);
        let start = header.seq.0.wrapping_sub(self.theirs.0).wrapping_add(1) as i32;
        let numbers = len as i32 + i32::from(header.syn) + i32::from(header.fin);
        if let Some(end) = start.checked_add(numbers).filter(|end| *end >= 0 && !header.rst) {
            self.sent.add(start.max(0) as u32, end as u32);
        }
        if let Some(ack) = header.ack
            && !ack.is_after(self.next)
            && !ack.is_before(self.ours)
        {
            let shift = if header.syn { 0 } else { self.shift };
            let edge = ack.since(self.ours) + (u32::from(header.window) << shift);
            self.allowed = self.allowed.max(edge);
        }
        if header.syn && header.ack.is_none() {
            // It acknowledges nothing, and has a window all the same.
            self.allowed = self.allowed.max(header.window.into());
        }
        if let Some(stamps) = header.options.timestamps {
            self.echo = stamps.value;
        }
        let segment = Segment { header, payload: &payload };
        self.connection.handle_segment(&segment, self.now);
        self.check();
    }

    fn drain(&mut self) {
        let mut count = 0;
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            let Transmit { header, payload } = transmit;
            let payload = payload.concat();
            note_sent(
                &header,
                &payload,
                (self.ours, self.theirs, self.written, self.allowed, self.mss),
                self.has_begun,
                (&self.sent, self.is_sack),
            );
            let numbers = payload.len() as u32 + u32::from(header.syn) + u32::from(header.fin);
            if !header.rst {
                self.next = self.next.max(header.seq + numbers);
            }
            if let Some(ack) = header.ack.filter(|_| !header.rst) {
                self.expected = ack;
                self.edge = self.edge.max(ack + (u32::from(header.window) << 7));
            }
            if let Some(stamps) = header.options.timestamps {
                self.stamp = stamps.value;
            }
            count += 1;
            assert!(count < 5_000, "it sends without end");
        }
        while self.connection.poll_event().is_some() {}
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.connection.broken_invariant(), None);
    }

    fn read(&mut self, most: usize) {
        let mut out = vec![0; most];
        if let Ok(len) = self.connection.read(&mut out) {
            assert!(out[..len] == bytes(self.read, len), "what is delivered is what was sent");
            assert!(self.sent.has(1, 1 + self.read + len as u32) || len == 0);
            self.read += len as u32;
        }
        self.check();
    }

    fn write(&mut self, len: usize) {
        let data = bytes(self.written, len);
        if let Ok(taken) = self.connection.write(&data, self.now) {
            self.written += taken as u32;
        }
        self.check();
    }

    /// What a well-behaved peer sends: everything is acknowledged.
    fn answer(&mut self, len: usize, fin: bool) {
        self.drain();
        let timestamps = Some(Timestamps { value: self.echo.wrapping_add(1), echo: self.stamp });
        let options = Options { timestamps, ..Options::default() };
        let header = Header {
            seq: self.expected,
            ack: Some(self.next),
            fin,
            window: 20_000,
            options,
            ..Header::default()
        };
        self.deliver(header, len);
        self.drain();
    }

    fn syn(&mut self, ack: Option<SequenceNumber>) {
        let timestamps = Some(Timestamps { value: 7, echo: self.stamp });
        let options = Options {
            mss: Some(400),
            window_scale: Some(2),
            sack_permitted: true,
            timestamps,
            ..Options::default()
        };
        let seq = self.theirs - 1;
        self.shift = 2;
        let header = Header { seq, ack, syn: true, window: 9_000, options, ..Header::default() };
        self.deliver(header, 0);
    }

    fn number(&self, number: Number, due: SequenceNumber) -> SequenceNumber {
        match number {
            Number::Near(by) => SequenceNumber(due.0.wrapping_add(i32::from(by) as u32)),
            Number::Edge(by) => SequenceNumber(self.edge.0.wrapping_add(i32::from(by) as u32)),
            Number::Any(number) => SequenceNumber(number),
        }
    }

    fn receive(&mut self, incoming: &Incoming) {
        let mut options = Options::default();
        for opt in &incoming.options {
            match *opt {
                Opt::Mss(mss) => options.mss = Some(mss),
                Opt::Scale(shift) => options.window_scale = Some(shift.min(14)),
                Opt::SackPermitted => options.sack_permitted = true,
                Opt::Stamps(value, echo) => {
                    options.timestamps = Some(Timestamps {
                        value: self.echo.wrapping_add(i32::from(value) as u32),
                        echo: self.stamp.wrapping_add(i32::from(echo) as u32),
                    });
                }
                Opt::Sack(from, len) => {
                    let start = self.number(Number::Near(from), self.next);
                    let _ = options.sack.try_push(SequenceRange::of_len(start, len.into()));
                }
            }
        }
        if let Some(raw) = &incoming.raw {
            options = Options::parse(TcpOptions::new(raw));
        }
        let has = |bit: u8| incoming.flags & bit != 0;
        if has(1) {
            // It may be what settles the scale.
            self.shift = 14;
        }
        let header = Header {
            seq: self.number(incoming.seq, self.expected),
            ack: incoming.ack.map(|ack| self.number(ack, self.next)),
            syn: has(1) && has(32),
            fin: has(2),
            rst: has(4) && has(64),
            psh: has(8),
            urgent: has(16).then_some(incoming.len / 2),
            window: incoming.window,
            options,
        };
        self.deliver(header, incoming.len.into());
    }

    /// Lets acknowledgements leave that are delayed.
    fn settle(&mut self) {
        self.now += Duration::from_millis(150);
        if self.connection.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.connection.handle_timeout(self.now);
        }
        self.drain();
    }

    /// Brings the connection to a state as honest ends do.
    fn reach(&mut self, plan: &Plan) {
        self.drain();
        let goal = plan.goal;
        if goal == Goal::SynSent {
            return;
        }
        if plan.is_active {
            let ack = (goal != Goal::SynReceived).then_some(self.next);
            self.syn(ack);
            self.drain();
        }
        if goal == Goal::SynReceived {
            return;
        }
        self.answer(0, false);
        self.has_begun = true;
        assert_eq!(self.connection.state(), State::Established);
        self.write(plan.written.into());
        self.answer(plan.received.into(), false);
        self.read(usize::from(u16::MAX));
        self.settle();
        // All of it arrives.
        for _ in 0..400 {
            if self.connection.info().unacknowledged == 0 {
                break;
            }
            self.answer(0, false);
        }
        match goal {
            Goal::FinWait1 | Goal::FinWait2 | Goal::Closing | Goal::TimeWait => {
                self.connection.finish(self.now);
            }
            Goal::CloseWait | Goal::LastAck => self.answer(0, true),
            Goal::SynSent | Goal::SynReceived | Goal::Established => {}
        }
        match goal {
            Goal::FinWait2 | Goal::TimeWait => self.answer(0, false),
            Goal::Closing => {
                let timestamps = Some(Timestamps { value: self.echo, echo: self.stamp });
                let options = Options { timestamps, ..Options::default() };
                let (seq, ack) = (self.expected, Some(self.next));
                let header =
                    Header { seq, ack, fin: true, window: 9_000, options, ..Header::default() };
                self.deliver(header, 0);
            }
            Goal::LastAck => self.connection.finish(self.now),
            _ => {}
        }
        if goal == Goal::TimeWait {
            self.answer(0, true);
        }
    }
}

/// What the connection sends is in order with what the peer knows.
fn note_sent(
    header: &Header,
    payload: &[u8],
    (ours, theirs, written, allowed, mss): (SequenceNumber, SequenceNumber, u32, u32, u32),
    has_begun: bool,
    (sent, is_sack): (&Covered, bool),
) {
    assert!(header.options.len() <= 40 && payload.len() + header.options.len() <= mss as usize);
    if header.rst {
        return assert!(payload.is_empty());
    }
    if !payload.is_empty() {
        let place = header.seq.since(ours);
        assert!(payload == bytes(place, payload.len()), "what is sent is what was written");
        assert!(place + payload.len() as u32 <= written);
        // A probe has a byte beyond.
        assert!(!has_begun || place + payload.len() as u32 <= allowed + 1, "beyond the window");
    }
    if has_begun && let Some(ack) = header.ack {
        let place = ack.0.wrapping_sub(theirs.0).wrapping_add(1);
        assert!(place <= 1 || sent.has(0, place), "it acknowledges what was not sent");
    }
    assert!(is_sack || header.options.sack.is_empty());
    for block in &header.options.sack {
        let place = |number: SequenceNumber| number.0.wrapping_sub(theirs.0).wrapping_add(1);
        assert!(sent.has(place(block.start), place(block.end)), "it holds what was not sent");
    }
}

fuzz_target!(|plan: Plan| {
    let config = Config {
        sack: plan.sack,
        timestamps: plan.timestamps,
        nagle: plan.nagle,
        mss: 536,
        send_buffer: usize::from(plan.send) + 1,
        receive_buffer: usize::from(plan.receive) + 1,
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(100),
            interval: Duration::from_secs(10),
            probes: 2,
        }),
        ..Config::default()
    };
    let now = Time::from_secs(5);
    let (ours, theirs) = (SequenceNumber(plan.ours), SequenceNumber(plan.theirs));
    let initial = Initial { sequence: ours - 1, stamp_offset: 9 };
    let shared = Arc::new(config.clone());
    let is_active = plan.is_active || plan.goal == Goal::SynSent;
    let connection = if is_active {
        Connection::connect(shared, initial, now)
    } else {
        let timestamps = Some(Timestamps { value: 7, echo: 0 });
        let options = Options {
            mss: Some(400),
            sack_permitted: true,
            window_scale: Some(2),
            timestamps,
            ..Options::default()
        };
        let seq = theirs - 1;
        let header = Header { seq, syn: true, window: 9_000, options, ..Header::default() };
        Connection::accept(shared, initial, &Segment { header, payload: &[] }, now).unwrap()
    };
    let mut sent = Covered::default();
    sent.add(0, 1);
    let mut model = Model {
        connection,
        now,
        ours,
        theirs,
        next: ours - 1,
        expected: theirs,
        edge: theirs,
        stamp: 0,
        echo: 7,
        written: 0,
        read: 0,
        sent,
        allowed: 9_000,
        shift: 2,
        has_begun: false,
        is_sack: plan.sack,
        mss: config.mss.into(),
    };
    model.reach(&plan);
    let reached = match plan.goal {
        Goal::SynSent => State::SynSent,
        Goal::SynReceived => State::SynReceived,
        Goal::Established => State::Established,
        Goal::FinWait1 => State::FinWait1,
        Goal::FinWait2 => State::FinWait2,
        Goal::CloseWait => State::CloseWait,
        Goal::Closing => State::Closing,
        Goal::LastAck => State::LastAck,
        Goal::TimeWait => State::TimeWait,
    };
    assert_eq!(model.connection.state(), reached);
    let mut stub: Option<TimeWait> = None;
    for step in &plan.steps {
        model.drain();
        stub = stub.or(model.connection.time_wait());
        match step {
            Step::Receive(incoming) => model.receive(incoming),
            Step::Answer(len) => model.answer((*len).into(), false),
            Step::Write(len) => model.write((*len).into()),
            Step::Read(len) => model.read((*len).into()),
            Step::TooBig(by, mss) => {
                let quoted = model.number(Number::Near(*by), model.next);
                model.connection.handle_too_big(quoted, *mss);
            }
            Step::Finish => model.connection.finish(model.now),
            Step::Close => model.connection.close(model.now),
            Step::Abort => model.connection.abort(),
            Step::Wait(ms) => model.now += Duration::from_millis((*ms).into()),
            Step::Expire => {
                if let Some(deadline) = model.connection.next_deadline() {
                    model.now = deadline.max(model.now);
                    model.connection.handle_timeout(model.now);
                    model.drain();
                    let next = model.connection.next_deadline();
                    assert!(next.is_none_or(|next| next > model.now), "a deadline does not pass");
                }
            }
        }
        model.check();
        // What stays of a connection in TIME-WAIT acknowledges, and sends nothing else.
        if let (Some(stub), Step::Receive(incoming)) = (&mut stub, step) {
            let header = Header {
                seq: model.number(incoming.seq, model.expected),
                ack: incoming.ack.map(|ack| model.number(ack, model.next)),
                syn: incoming.flags & 1 != 0,
                fin: incoming.flags & 2 != 0,
                rst: incoming.flags & 4 != 0,
                ..Header::default()
            };
            stub.handle_segment(&Segment { header, payload: &[] }, model.now);
            while let Some(header) = stub.poll_transmit(model.now) {
                assert!(header.ack.is_some() && !header.syn && !header.fin && !header.rst);
            }
        }
    }
    model.connection.close(model.now);
    for _ in 0..200 {
        model.drain();
        let Some(deadline) = model.connection.next_deadline() else { break };
        model.now = deadline.max(model.now);
        model.connection.handle_timeout(model.now);
    }
    assert_eq!(model.connection.state(), State::Closed);
});
