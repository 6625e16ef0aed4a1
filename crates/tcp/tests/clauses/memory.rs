//! Sizes of buffers, and budgets for many of them.

use std::sync::Arc;

use rheostat_tcp::{Config, Event, MemoryBudget, Segment, SpareBuffers, WriteError};

use crate::script::{Script, plain};

fn with_budget(pressure: usize, limit: usize) -> (Script, Arc<MemoryBudget>) {
    let mut script = Script::established(plain());
    let budget = Arc::new(MemoryBudget::new(pressure, limit));
    script.connection.set_memory(Some(budget.clone()));
    (script, budget)
}

/// The peer sends a segment of 1,000 bytes after so many bytes. Returns what is acknowledged and the window.
fn segment(script: &mut Script, after: u32) -> (u32, u16) {
    script.receive(1 + after, Some(1), &[0; 1_000]);
    script.receive(1 + after, Some(1), &[0; 1_000]);
    let sent = script.sent_one();
    (sent.acks().unwrap() - 1, sent.header.window)
}

#[test]
fn the_window_grows_to_twice_what_is_read_in_a_round_trip_and_no_further_than_allowed() {
    let config = Config { initial_receive_buffer: 4_000, receive_buffer: 9_000, ..plain() };
    let mut script = Script::established(config);
    let mut windows = Vec::new();
    for trip in 0..4 {
        for part in 0..3 {
            script.receive(1 + 3_000 * trip + 1_000 * part, Some(1), &[0; 1_000]);
        }
        script.wait(100);
        assert_eq!(script.read(100_000), 3_000);
        windows.push(script.sent().last().unwrap().header.window);
    }
    assert_eq!(windows, [4_000, 6_000, 6_000, 6_000]);
    // More is read, and the largest size is reached.
    for part in 0..6 {
        script.receive(12_001 + 1_000 * part, Some(1), &[0; 1_000]);
    }
    script.wait(100);
    script.read(100_000);
    script.sent();
    script.receive(18_001, Some(1), &[0; 1_000]);
    script.read(100_000);
    assert_eq!(script.sent().last().unwrap().header.window, 9_000);
}

#[test]
fn a_window_whose_data_is_not_read_does_not_grow() {
    let mut script = Script::established(Config { initial_receive_buffer: 4_000, ..plain() });
    for part in 0..4 {
        script.wait(100);
        script.receive(1 + 1_000 * part, Some(1), &[0; 1_000]);
    }
    assert_eq!(script.sent().last().unwrap().header.window, 0);
}

#[test]
fn under_pressure_a_window_of_one_segment_opens_again_when_one_with_stamps_was_read() {
    let mut script = Script::established(Config { timestamps: true, ..plain() });
    let mss = script.connection.config().mss;
    let budget = Arc::new(MemoryBudget::new(0, 1 << 20));
    script.connection.set_memory(Some(budget.clone()));
    budget.charge(1);
    let carried = u32::from(mss) - 12;
    let mut seq = 1;
    // The window that was offered before is used up.
    while script.connection.info().receive_window != u32::from(mss) {
        let len = script.connection.info().receive_window.min(carried);
        script.receive(seq, Some(1), &vec![0; len as usize]);
        (seq, _) = (seq + len, script.read(100_000));
        script.wait(1_000);
        script.sent();
    }
    for _ in 0..3 {
        assert_eq!(script.connection.info().receive_window, u32::from(mss));
        script.receive(seq, Some(1), &vec![0; carried as usize]);
        seq += carried;
        script.wait(1_000);
        script.sent();
        assert_eq!(script.read(100_000), carried as usize);
        assert_eq!(script.sent_one().header.window, mss, "the peer need not probe");
    }
}

#[test]
fn what_may_be_written_grows_with_the_congestion_window() {
    let config = Config { initial_send_buffer: 4_000, send_buffer: 23_000, ..plain() };
    let mut script = Script::established(config);
    assert_eq!(script.connection.write(&[0; 50_000], script.now), Ok(4_000));
    script.sent();
    script.receive(1, Some(4_001), b"");
    assert_eq!(script.events(), [Event::Writable]);
    let window = script.connection.info().congestion_window as usize;
    assert_eq!(script.connection.write(&[0; 50_000], script.now), Ok(2 * window));
    let mut end = 4_001;
    for _ in 0..3 {
        end += script.sent().iter().map(|sent| sent.payload.len() as u32).sum::<u32>();
        script.receive(1, Some(end), b"");
        let _ = script.connection.write(&[0; 50_000], script.now);
    }
    assert_eq!(script.connection.info().unacknowledged, 23_000);
}

#[test]
fn under_pressure_windows_close_and_nothing_is_dropped() {
    let (mut script, budget) = with_budget(3_000, 100_000);
    let mut told = Vec::new();
    for part in 0..10 {
        let (acked, window) = segment(&mut script, 1_000 * part);
        assert_eq!(acked, 1_000 * (part + 1), "nothing is dropped");
        told.push(u32::from(window));
    }
    // What was promised in the handshake is kept; the window closes as it is used up.
    assert_eq!(told, (0..10).rev().map(|left| 1_000 * left).collect::<Vec<_>>());
    assert!(budget.is_under_pressure() && budget.refused() == 0);
    // What is read makes room in memory that is held, as long as there is pressure, and then it is given back.
    script.read(4_000);
    assert_eq!(script.sent_one().header.window, 4_000);
    script.read(100_000);
    assert_eq!(script.connection.info().allocated, 0);
    assert!(!budget.is_under_pressure());
}

#[test]
fn under_pressure_an_empty_buffer_is_offered_one_segment_and_nothing_without_memory() {
    for (limit, window) in [(100_000, 1_000), (0, 0)] {
        let (mut script, _budget) = with_budget(0, limit);
        script.connection.set_memory(None);
        for part in 0..10 {
            script.receive(1 + 1_000 * part, Some(1), &[0; 1_000]);
        }
        assert_eq!(script.sent().last().unwrap().header.window, 0);
        script.connection.set_memory(Some(Arc::new(MemoryBudget::new(0, limit))));
        script.read(100_000);
        script.receive(10_000, Some(1), b"x");
        assert_eq!(script.sent_one().header.window, window);
        // With memory again, the next answer opens the window.
        script.connection.set_memory(None);
        script.receive(10_000, Some(1), b"x");
        assert_eq!(script.sent_one().header.window, 10_000);
    }
}

#[test]
fn under_pressure_a_writer_gets_one_segment() {
    let (mut script, budget) = with_budget(1_400, 100_000);
    assert_eq!(script.connection.write(&[0; 1_400], script.now), Ok(1_400));
    assert!(budget.is_under_pressure());
    assert_eq!(script.connection.write(&[0; 5_000], script.now), Err(WriteError::Blocked));
    let mut other = Script::established(plain());
    other.connection.set_memory(Some(budget.clone()));
    assert_eq!(other.connection.write(&[0; 5_000], other.now), Ok(1_000));
    assert_eq!(budget.used(), 2_400);
    script.sent();
    script.receive(1, Some(1_401), b"");
    assert_eq!((budget.used(), script.events()), (1_000, vec![Event::Writable]));
}

#[test]
fn data_beyond_the_limit_is_not_acknowledged_until_there_is_memory() {
    let (mut script, budget) = with_budget(1_500, 2_500);
    assert_eq!(segment(&mut script, 0).0, 1_000);
    assert_eq!(segment(&mut script, 1_000).0, 2_000);
    assert_eq!(segment(&mut script, 2_000).0, 2_000);
    assert!(budget.used() <= 2_500 && budget.refused() > 0);
    script.read(100_000);
    script.sent();
    assert_eq!(segment(&mut script, 2_000).0, 3_000);
    drop(script);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_writer_that_finds_no_memory_is_told_to_try_again() {
    let (mut script, budget) = with_budget(100, 100);
    assert_eq!(script.connection.write(&[0; 500], script.now), Err(WriteError::Blocked));
    assert_eq!(budget.used(), 0);
    assert_eq!((script.expire(), script.events()), (100, vec![Event::Writable]));
    script.connection.set_memory(None);
    script.write(500);
    assert_eq!(script.sent_ranges(), [(1, 500)]);
}

/// Writes so much, and has it acknowledged.
fn write_and_acknowledge(script: &mut Script, len: usize) {
    let before = script.connection.info().unacknowledged;
    script.write(len);
    assert_eq!(before, 0);
    let end = script.sent().last().map(|sent| sent.at() + sent.payload.len() as u32);
    script.receive(1, end, b"");
    assert_eq!(script.connection.info().unacknowledged, 0);
}

#[test]
fn an_idle_connection_gives_its_send_buffer_to_the_next_that_has_something_to_send() {
    let (mut first, budget) = with_budget(1_000, 1_000);
    let mut second = Script::established(plain());
    second.connection.set_memory(Some(budget.clone()));
    let mut spares = SpareBuffers::new(budget.clone());
    spares.lend(&mut first.connection);
    assert_eq!((first.connection.allocated(), budget.used()), (0, 0), "there is none yet");
    first.write(100);
    spares.take_back(&mut first.connection);
    assert_eq!(first.connection.allocated(), 128, "what is not acknowledged stays");
    first.sent();
    first.receive(1, Some(101), b"");
    spares.take_back(&mut first.connection);
    assert_eq!((first.connection.allocated(), budget.used()), (0, 128));
    spares.lend(&mut second.connection);
    assert_eq!((second.connection.allocated(), budget.used()), (128, 128));
    write_and_acknowledge(&mut second, 128);
    assert_eq!(budget.used(), 128, "the spare one was used");
    spares.take_back(&mut second.connection);
    drop((first, second));
    assert_eq!(budget.used(), 128);
    drop(spares);
    assert_eq!(budget.used(), 0);
}

#[test]
fn grown_buffers_those_of_others_and_all_under_pressure_are_no_spares() {
    let (mut script, budget) = with_budget(1_000, 1_000);
    let mut others = SpareBuffers::new(Arc::new(MemoryBudget::new(1_000, 1_000)));
    let mut spares = SpareBuffers::new(budget.clone());
    write_and_acknowledge(&mut script, 100);
    others.take_back(&mut script.connection);
    assert_eq!(script.connection.allocated(), 128, "it charges another budget");
    spares.take_back(&mut script.connection);
    spares.rest();
    assert_eq!((script.connection.allocated(), budget.used()), (0, 0));
    spares.lend(&mut script.connection);
    assert_eq!((script.connection.allocated(), budget.used()), (128, 128), "it has rested");
    spares.take_back(&mut script.connection);
    spares.rest();
    write_and_acknowledge(&mut script, 129);
    spares.take_back(&mut script.connection);
    assert_eq!(script.connection.allocated(), 129, "it has grown");
    let (mut script, budget) = with_budget(1_000, 1_000);
    let mut spares = SpareBuffers::new(budget.clone());
    write_and_acknowledge(&mut script, 100);
    budget.charge(900);
    spares.take_back(&mut script.connection);
    assert_eq!((script.connection.allocated(), budget.used()), (0, 900), "it is freed");
    budget.release(900);
}

/// Requests and answers of 100 bytes on each of so many connections, one after the other.
fn exchanges(connections: usize, budget: &Arc<MemoryBudget>) -> Vec<Script> {
    let mut spares = SpareBuffers::new(budget.clone());
    let mut all = Vec::new();
    for _ in 0..connections {
        let mut script = Script::established(Config { timestamps: true, ..Config::default() });
        script.connection.set_memory(Some(budget.clone()));
        for exchange in 0..2 {
            let header = script.header(1 + 100 * exchange, Some(1 + 100 * exchange));
            let mut read = Vec::new();
            let request = Segment { header, payload: &[0; 100] };
            script.connection.handle_segment_reading(&request, &mut read, script.now);
            spares.lend(&mut script.connection);
            script.write(100);
            script.sent();
            script.receive(101 + 100 * exchange, Some(101 + 100 * exchange), b"");
            spares.take_back(&mut script.connection);
        }
        all.push(script);
    }
    all
}

#[test]
fn ten_thousand_idle_connections_hold_no_buffers() {
    let budget = Arc::new(MemoryBudget::new(1 << 30, 1 << 30));
    let idle = exchanges(10_000, &budget);
    assert!(idle.iter().all(|script| script.connection.allocated() == 0));
    assert_eq!(budget.used(), 0, "spare buffers ended with their owner");
}
