//! Any segments, user calls and pauses against a connection, in any state it may come to.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rheostat_base::Time;
use rheostat_packet::wire::TcpOptions;
use rheostat_tcp::{
    Config, Connection, Header, Initial, KeepAlive, MemoryBudget, Options, Segment, SequenceNumber,
    State,
};

const OURS: SequenceNumber = SequenceNumber(u32::MAX - 20_000);
const THEIRS: SequenceNumber = SequenceNumber(u32::MAX - 5_000);

#[derive(Arbitrary, Debug)]
enum Step {
    Receive(Incoming),
    /// The segment that a well-behaved peer would send: it acknowledges everything, and has this much data.
    Answer(u8, bool),
    Write(u16),
    WriteUrgent(u16),
    /// A router has dropped a segment near the newest: it was larger than this.
    TooBig(i16, u16),
    PathMss(u16),
    CloseWithin(u16),
    /// Another budget: bytes without pressure, and on top of them.
    Memory(u16, u16),
    Read(u16),
    Finish,
    Close,
    Abort,
    Wait(u16),
    Expire,
}

#[derive(Arbitrary, Debug)]
struct Incoming {
    /// Numbers near those of the connection, or anywhere.
    seq: i16,
    far: Option<u32>,
    ack: Option<i16>,
    flags: u8,
    window: u16,
    options: Vec<u8>,
    len: u16,
}

/// What the last segments of the connection said.
struct Seen {
    next: SequenceNumber,
    expected: SequenceNumber,
    memory: Option<Arc<MemoryBudget>>,
}

fn drain(connection: &mut Connection, now: Time, seen: &mut Seen, config: &Config) {
    let mut segments = 0;
    while let Some(transmit) = connection.poll_transmit(now) {
        let header = &transmit.header;
        let len: usize = transmit.payload.iter().map(|piece| piece.len()).sum();
        assert!(header.options.len() <= 40);
        assert!(len + header.options.len() <= usize::from(config.mss));
        let end = header.seq + len as u32 + u32::from(header.syn) + u32::from(header.fin);
        if !header.rst {
            seen.next = seen.next.max(end);
            seen.expected = header.ack.unwrap_or(seen.expected);
        }
        segments += 1;
        assert!(segments < 5_000, "sends without end");
    }
    while connection.poll_event().is_some() {}
    let info = connection.info();
    assert!(seen.memory.as_ref().is_none_or(|memory| memory.used() == info.allocated));
    assert!(info.allocated <= config.send_buffer + config.receive_buffer);
    assert!(info.unread <= config.receive_buffer && info.unacknowledged <= config.send_buffer);
    assert!(connection.next_deadline().is_some() || connection.state() != State::TimeWait);
}

fuzz_target!(|input: (bool, bool, bool, bool, u16, u16, Vec<Step>)| {
    let (is_active, sack, timestamps, nagle, send, receive, steps) = input;
    let config = Config {
        sack,
        timestamps,
        nagle,
        mss: 536,
        send_buffer: usize::from(send) + 1,
        receive_buffer: usize::from(receive) + 1,
        keep_alive: Some(KeepAlive {
            idle: Duration::from_secs(100),
            interval: Duration::from_secs(10),
            probes: 2,
        }),
        ..Config::default()
    };
    let mut now = Time::from_secs(5);
    let initial = Initial { sequence: OURS, stamp_offset: 9 };
    let shared = Arc::new(config.clone());
    let mut connection = if is_active {
        Connection::connect(shared, initial, now)
    } else {
        let options = Options {
            mss: Some(400),
            sack_permitted: true,
            window_scale: Some(2),
            ..Options::default()
        };
        let header = Header { seq: THEIRS, syn: true, window: 9_000, options, ..Header::default() };
        Connection::accept(shared, initial, &Segment { header, payload: &[] }, now).unwrap()
    };
    let mut seen = Seen { next: OURS, expected: THEIRS, memory: None };
    let zeros = vec![0; 65_536];
    for step in steps {
        drain(&mut connection, now, &mut seen, &config);
        match step {
            Step::Receive(incoming) => {
                let near = |number: SequenceNumber, by: i16| {
                    SequenceNumber(number.0.wrapping_add(i32::from(by) as u32))
                };
                let has = |bit: u8| incoming.flags & bit != 0;
                let header = Header {
                    seq: incoming.far.map_or(near(seen.expected, incoming.seq), SequenceNumber),
                    ack: incoming.ack.map(|by| near(seen.next, by)),
                    syn: has(1),
                    fin: has(2),
                    rst: has(4),
                    psh: has(8),
                    urgent: has(16).then_some(incoming.len / 2),
                    window: incoming.window,
                    options: Options::parse(TcpOptions::new(&incoming.options)),
                };
                let payload = &zeros[..usize::from(incoming.len)];
                connection.handle_segment(&Segment { header, payload }, now);
            }
            Step::Answer(len, fin) => {
                let syn = connection.state() == State::SynSent;
                let header = Header {
                    seq: seen.expected,
                    ack: Some(seen.next),
                    syn,
                    fin: fin && !syn,
                    window: 20_000,
                    ..Header::default()
                };
                let payload = &zeros[..if syn { 0 } else { len.into() }];
                connection.handle_segment(&Segment { header, payload }, now);
            }
            Step::Write(len) => {
                let _ = connection.write(&zeros[..len.into()], now);
            }
            Step::WriteUrgent(len) => {
                let _ = connection.write_urgent(&zeros[..len.into()], now);
            }
            Step::TooBig(by, mss) => {
                let quoted = SequenceNumber(seen.next.0.wrapping_add(i32::from(by) as u32));
                connection.handle_too_big(quoted, mss);
            }
            Step::PathMss(mss) => connection.set_path_mss(mss),
            Step::CloseWithin(ms) => {
                connection.close_within(Duration::from_millis(ms.into()), now);
            }
            Step::Read(len) => {
                let _ = connection.read(&mut vec![0; len.into()]);
            }
            Step::Memory(pressure, more) => {
                let limit = usize::from(pressure) + usize::from(more);
                let budget = Arc::new(MemoryBudget::new(pressure.into(), limit));
                connection.set_memory(Some(budget.clone()));
                if let Some(old) = seen.memory.replace(budget) {
                    assert_eq!(old.used(), 0);
                }
            }
            Step::Finish => connection.finish(now),
            Step::Close => connection.close(now),
            Step::Abort => connection.abort(),
            Step::Wait(ms) => now += Duration::from_millis(ms.into()),
            Step::Expire => {
                if let Some(deadline) = connection.next_deadline() {
                    now = deadline.max(now);
                    connection.handle_timeout(now);
                    drain(&mut connection, now, &mut seen, &config);
                    let next = connection.next_deadline();
                    assert!(next.is_none_or(|next| next > now), "a deadline does not pass");
                }
            }
        }
    }
    // Whatever happened, a connection whose peer is silent from now on and whose user closes it comes to an end.
    connection.close(now);
    for _ in 0..200 {
        drain(&mut connection, now, &mut seen, &config);
        match connection.next_deadline() {
            Some(deadline) => {
                now = deadline.max(now);
                connection.handle_timeout(now);
            }
            None => break,
        }
    }
    assert_eq!(connection.state(), State::Closed);
    drop(connection);
    assert!(seen.memory.is_none_or(|memory| memory.used() == 0));
});
