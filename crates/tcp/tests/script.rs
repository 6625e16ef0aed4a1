//! One connection, and a script of what its peer sends: segments in, segments expected.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_tcp::{
    CloseReason, Config, Connection, Event, Header, Initial, Options, Segment, SequenceNumber,
    SequenceRange, State, Timestamps,
};

/// The number of our SYN.
pub(crate) const OURS: u32 = 1_000;
/// The number of the peer's SYN.
pub(crate) const THEIRS: u32 = 50_000;

/// A segment that was sent: its header and its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    /// Its first number, from our SYN on.
    pub(crate) fn at(&self) -> u32 {
        self.header.seq.since(SequenceNumber(OURS))
    }

    /// What it acknowledges, from the peer's SYN on.
    pub(crate) fn acks(&self) -> Option<u32> {
        self.header.ack.map(|ack| ack.since(SequenceNumber(THEIRS)))
    }

    /// Its blocks, from the peer's SYN on.
    pub(crate) fn blocks(&self) -> Vec<(u32, u32)> {
        let number = |n: SequenceNumber| n.since(SequenceNumber(THEIRS));
        self.header.options.sack.iter().map(|b| (number(b.start), number(b.end))).collect()
    }
}

/// A connection under test. Numbers in scripts count from the SYNs.
pub(crate) struct Script {
    pub(crate) connection: Connection,
    pub(crate) now: Time,
    has_stamps: bool,
}

/// Settings without options, so that scripts are short.
pub(crate) fn plain() -> Config {
    Config {
        mss: 1_000,
        timestamps: false,
        sack: false,
        window_scaling: false,
        nagle: false,
        send_buffer: 60_000,
        receive_buffer: 10_000,
        ..Config::default()
    }
}

const INITIAL: Initial = Initial { sequence: SequenceNumber(OURS), stamp_offset: 0 };

impl Script {
    /// A connection that has just been opened.
    pub(crate) fn connecting(config: Config) -> Script {
        let has_stamps = config.timestamps;
        let now = Time::from_secs(1);
        let connection = Connection::connect(Arc::new(config), INITIAL, now);
        Script { connection, now, has_stamps }
    }

    /// A connection that answers a SYN with the options that the configuration offers.
    pub(crate) fn accepting(config: Config) -> Script {
        let has_stamps = config.timestamps;
        let now = Time::from_secs(1);
        let header = Header {
            seq: SequenceNumber(THEIRS),
            syn: true,
            window: 60_000,
            options: Script::syn_options(&config),
            ..Header::default()
        };
        let syn = Segment { header, payload: &[] };
        let connection = Connection::accept(Arc::new(config), INITIAL, &syn, now);
        Script { connection: connection.expect("a SYN"), now, has_stamps }
    }

    fn syn_options(config: &Config) -> Options {
        Options {
            mss: Some(config.mss),
            sack_permitted: config.sack,
            window_scale: config.window_scaling.then_some(0),
            timestamps: config.timestamps.then_some(Timestamps { value: 1_000, echo: 0 }),
            ..Options::default()
        }
    }

    /// An established connection, whose handshake took no time.
    pub(crate) fn established(config: Config) -> Script {
        let mut script = Script::accepting(config);
        script.sent_one();
        script.receive(1, Some(1), b"");
        assert_eq!(script.connection.state(), State::Established);
        assert_eq!(script.events(), [Event::Established]);
        script.sent_nothing();
        script
    }

    pub(crate) fn header(&self, seq: u32, ack: Option<u32>) -> Header {
        let value = 1_000 + (self.now.since(Time::from_secs(1))).as_millis() as u32;
        let stamps = self.has_stamps.then_some(Timestamps { value, echo: 0 });
        Header {
            seq: SequenceNumber(THEIRS) + seq,
            ack: ack.map(|ack| SequenceNumber(OURS) + ack),
            window: 60_000,
            options: Options { timestamps: stamps, ..Options::default() },
            ..Header::default()
        }
    }

    pub(crate) fn receive_header(&mut self, header: Header, payload: &[u8]) {
        self.connection.handle_segment(&Segment { header, payload }, self.now);
    }

    /// The peer sends data, or an acknowledgement.
    pub(crate) fn receive(&mut self, seq: u32, ack: Option<u32>, payload: &[u8]) {
        let header = self.header(seq, ack);
        self.receive_header(header, payload);
    }

    pub(crate) fn receive_fin(&mut self, seq: u32, ack: u32) {
        let header = Header { fin: true, ..self.header(seq, Some(ack)) };
        self.receive_header(header, b"");
    }

    /// The peer acknowledges with blocks.
    pub(crate) fn receive_sack(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut header = self.header(1, Some(ack));
        for (start, end) in blocks {
            let range = SequenceRange::of_len(SequenceNumber(OURS) + *start, end - start);
            header.options.sack.push(range);
        }
        self.receive_header(header, b"");
    }

    /// The peer tells a window.
    pub(crate) fn receive_window(&mut self, ack: u32, window: u16) {
        let header = Header { window, ..self.header(1, Some(ack)) };
        self.receive_header(header, b"");
    }

    pub(crate) fn write(&mut self, len: usize) {
        assert_eq!(self.connection.write(&vec![b'x'; len], self.now), Ok(len));
    }

    pub(crate) fn read(&mut self, len: usize) -> usize {
        self.connection.read(&mut vec![0; len]).unwrap()
    }

    /// Everything that is sent now.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        assert_eq!(self.connection.broken_invariant(), None);
        let mut all = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            all.push(Sent { header: transmit.header, payload: transmit.payload.concat() });
            assert!(all.len() < 1_000, "sends without end");
        }
        all
    }

    pub(crate) fn sent_one(&mut self) -> Sent {
        let mut all = self.sent();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    pub(crate) fn sent_nothing(&mut self) {
        assert_eq!(self.sent(), []);
    }

    /// Where the segments that are sent now begin, and their lengths.
    pub(crate) fn sent_ranges(&mut self) -> Vec<(u32, usize)> {
        self.sent().iter().map(|sent| (sent.at(), sent.payload.len())).collect()
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.connection.poll_event()).collect()
    }

    pub(crate) fn closed(&mut self) -> Option<CloseReason> {
        self.events().into_iter().find_map(|event| match event {
            Event::Closed(reason) => Some(reason),
            _ => None,
        })
    }

    /// Time passes, and nothing else.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// The next deadline passes. Returns how many milliseconds that took.
    pub(crate) fn expire(&mut self) -> u64 {
        let deadline = self.connection.next_deadline().expect("a deadline");
        let waited = deadline.since(self.now);
        self.now = deadline.max(self.now);
        self.connection.handle_timeout(self.now);
        waited.as_millis() as u64
    }

    pub(crate) fn state(&self) -> State {
        self.connection.state()
    }
}
