//! Threads that use connections as those of the standard library, between two services at the ends of a cable.
//!
//! Timed: threads, clock.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

use rheostat::tcp::{
    Blocking, BlockingConfig, BlockingStream, Client, CloseReason, ConnectError, RunningServer,
    Server, StreamError, with_client,
};

const PORT: u16 = 7;
const LONG: Duration = Duration::from_secs(20);

/// A service of threads on two lanes, and a client of it.
struct Pair {
    sockets: Blocking,
    running: RunningServer,
    client: Client,
}

impl Pair {
    fn new(config: BlockingConfig) -> Pair {
        let sockets = Blocking::new(config);
        let server = Server::blocking(&sockets).listen(PORT).lanes(2);
        let (running, client) = with_client(server, &[]).expect("both start");
        Pair { sockets, running, client }
    }

    /// The two ends of a new connection: the client's first.
    fn connect(&self) -> [BlockingStream; 2] {
        let near = self.client.connect(PORT).expect("it is accepted");
        let (far, peer) = self.sockets.listen(PORT).accept().expect("it has arrived");
        assert_eq!((peer, far.peer_addr()), (near.local_addr().unwrap(), peer));
        assert_eq!(far.local_addr().unwrap(), near.peer_addr());
        [near, far]
    }

    /// Ends both; nothing was lost on the way, and nothing is left.
    fn finish(self) {
        let reports = [self.client.finish(LONG).unwrap(), self.running.finish(LONG).unwrap()];
        for report in reports {
            assert!(report.violations.is_empty(), "{:?}", report.violations);
        }
    }
}

fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 251 + seed * 7) as u8).collect()
}

/// The reason of an error, as a program gets at it.
fn reason(error: &std::io::Error) -> StreamError {
    *error.get_ref().expect("a reason").downcast_ref::<StreamError>().expect("it is typed")
}

#[test]
fn streams_of_many_threads_arrive_as_they_were_sent() {
    // Small pipes, so that both ends wait for each other again and again.
    let pair = Pair::new(BlockingConfig { buffer: 3_000, ..BlockingConfig::default() });
    let listener = pair.sockets.listen(PORT);
    thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming().take(16) {
                scope.spawn(move || {
                    let mut piece = [0; 1_000];
                    while let Ok(read @ 1..) = (&stream).read(&mut piece) {
                        (&stream).write_all(&piece[..read]).expect("the client reads");
                    }
                });
            }
        });
        for number in 0..16 {
            let client = pair.client.sockets();
            scope.spawn(move || {
                let service = SocketAddr::from(([10, 0, 0, 1], PORT));
                let stream = client.connect(service).expect("it is accepted");
                let sent = pattern(number, 200_000 + number);
                let mut received = Vec::new();
                thread::scope(|both| {
                    let stream = stream.try_clone().unwrap();
                    let sent = &sent;
                    both.spawn(move || {
                        (&stream).write_all(sent).expect("the service reads");
                        stream.shutdown(Shutdown::Write).expect("it is open");
                    });
                });
                (&stream).read_to_end(&mut received).expect("the service ends in good order");
                assert!(received == sent, "stream {number}");
            });
        }
    });
    pair.finish();
}

#[test]
fn a_reader_that_waits_bounds_what_is_written() {
    let config = BlockingConfig { buffer: 4_096, ..BlockingConfig::default() };
    let pair = Pair::new(config);
    let [mut near, mut far] = pair.connect();
    near.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = pattern(1, 10_000);
    let mut written = Vec::new();
    let error = loop {
        match near.write(&piece) {
            Ok(taken) => written.extend_from_slice(&piece[..taken]),
            Err(error) => break error,
        }
        assert!(written.len() < 4 << 20, "nothing bounds it");
    };
    assert_eq!((error.kind(), reason(&error)), (ErrorKind::TimedOut, StreamError::TimedOut));
    // Two pipes, of which the client's is as by default, and the buffers of both connections.
    assert!(written.len() <= 4_096 + (64 << 10) + 2 * (256 << 10), "{} bytes", written.len());
    near.shutdown(Shutdown::Write).unwrap();
    let mut read = Vec::new();
    far.read_to_end(&mut read).unwrap();
    assert!(read == written, "{} bytes of {}", read.len(), written.len());
    drop((near, far));
    pair.finish();
}

#[test]
fn each_direction_ends_by_itself() {
    let pair = Pair::new(BlockingConfig::default());
    let [mut near, mut far] = pair.connect();
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let error = near.write(b"more").unwrap_err();
    assert_eq!((error.kind(), reason(&error)), (ErrorKind::BrokenPipe, StreamError::Finished));
    let mut text = String::new();
    far.read_to_string(&mut text).unwrap();
    assert_eq!(text, "question");
    far.write_all(b"answer").unwrap();
    drop(far);
    let mut text = String::new();
    near.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer");
    drop(near);
    pair.finish();
}

#[test]
fn a_stream_that_is_dropped_with_unread_bytes_is_reset() {
    let pair = Pair::new(BlockingConfig::default());
    let [mut near, far] = pair.connect();
    // More than the pipe takes, so that some is still with the connection.
    near.write_all(&pattern(2, 200_000)).unwrap();
    let mut first = [0];
    (&far).read_exact(&mut first).unwrap();
    drop(far);
    let error = near.read(&mut first).unwrap_err();
    let expected = StreamError::Closed(CloseReason::Reset);
    assert_eq!((error.kind(), reason(&error)), (ErrorKind::ConnectionReset, expected));
    drop(near);
    pair.finish();
}

#[test]
fn unread_bytes_in_the_pipe_alone_reset_a_dropped_stream() {
    let pair = Pair::new(BlockingConfig::default());
    let [mut near, far] = pair.connect();
    near.write_all(b"question").unwrap();
    // All of it is in the pipe once its first byte can be read.
    (&far).read_exact(&mut [0]).unwrap();
    (&far).write_all(b"an answer that may be lost").unwrap();
    drop(far);
    let error = near.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(reason(&error), StreamError::Closed(CloseReason::Reset));
    drop(near);
    pair.finish();
}

#[test]
fn shutting_reads_down_ends_those_that_wait_and_discards_what_comes() {
    let pair = Pair::new(BlockingConfig { buffer: 4_096, ..BlockingConfig::default() });
    let [mut near, mut far] = pair.connect();
    thread::scope(|scope| {
        let (waits, waiting) = std::sync::mpsc::channel();
        let reader = far.try_clone().unwrap();
        let read = scope.spawn(move || {
            waits.send(()).expect("the test goes on");
            (&reader).read(&mut [0])
        });
        waiting.recv().expect("the thread has begun");
        far.shutdown(Shutdown::Read).unwrap();
        assert_eq!(read.join().unwrap().unwrap(), 0);
    });
    // More than all buffers of both ends take: none of it waits for a reader.
    near.write_all(&pattern(3, 2_000_000)).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
    far.write_all(b"answer").unwrap();
    drop(far);
    let mut text = String::new();
    near.read_to_string(&mut text).unwrap();
    assert_eq!(text, "answer", "nothing was unread");
    drop(near);
    pair.finish();
}

#[test]
fn shutting_reads_down_discards_what_was_not_read() {
    let pair = Pair::new(BlockingConfig::default());
    let [mut near, mut far] = pair.connect();
    near.write_all(b"question").unwrap();
    far.read_exact(&mut [0]).unwrap();
    far.shutdown(Shutdown::Both).unwrap();
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
    assert_eq!(reason(&far.write(b"more").unwrap_err()), StreamError::Finished);
    drop(far);
    assert_eq!(near.read(&mut [0]).unwrap(), 0, "the end, and no reset");
    drop(near);
    pair.finish();
}

#[test]
fn a_read_that_times_out_takes_nothing() {
    let pair = Pair::new(BlockingConfig::default());
    let [mut near, mut far] = pair.connect();
    near.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let error = near.read(&mut [0]).unwrap_err();
    assert_eq!((error.kind(), reason(&error)), (ErrorKind::TimedOut, StreamError::TimedOut));
    assert_eq!(
        near.set_read_timeout(Some(Duration::ZERO)).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    near.set_read_timeout(None).unwrap();
    far.write_all(b"late").unwrap();
    let mut read = [0; 4];
    near.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"late");
    drop((near, far));
    pair.finish();
}

#[test]
fn connections_that_come_to_nothing_have_a_reason() {
    let pair = Pair::new(BlockingConfig { backlog: 1, ..BlockingConfig::default() });
    let refused = pair.client.connect(PORT + 1).unwrap_err();
    assert_eq!(refused, StreamError::Closed(CloseReason::Refused));
    assert_eq!(std::io::Error::from(refused).kind(), ErrorKind::ConnectionRefused);
    let nowhere: SocketAddr = "192.0.2.1:7".parse().unwrap();
    let error = pair.sockets.connect(nowhere).unwrap_err();
    assert_eq!(error, StreamError::Connect(ConnectError::NoRoute(nowhere.ip())));
    // One waits to be accepted; the other has no place to wait. Their lanes decide which.
    let mut both = [(); 2].map(|()| pair.client.connect(PORT).unwrap());
    both.iter().for_each(|one| one.set_read_timeout(Some(Duration::from_millis(20))).unwrap());
    let mut turn = 0;
    let error = loop {
        let error = both[turn].read(&mut [0]).unwrap_err();
        if error.kind() != ErrorKind::TimedOut {
            break error;
        }
        turn = 1 - turn;
    };
    assert_eq!(reason(&error), StreamError::Closed(CloseReason::Reset));
    let (far, _) = pair.sockets.listen(PORT).accept().unwrap();
    drop((both, far));
    pair.finish();
}

#[test]
fn threads_that_wait_learn_that_the_service_ends() {
    let pair = Pair::new(BlockingConfig::default());
    let [near, far] = pair.connect();
    let listener = pair.sockets.listen(PORT);
    let timeout = Duration::from_millis(20);
    assert_eq!(listener.accept_timeout(timeout).unwrap_err(), StreamError::TimedOut);
    let (accepting, reading) = thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().unwrap_err());
        let reading = scope.spawn(|| reason(&(&far).read(&mut [0]).unwrap_err()));
        let report = pair.running.finish(Duration::ZERO).unwrap();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        (accepting.join().unwrap(), reading.join().unwrap())
    });
    assert_eq!(accepting, StreamError::Ended);
    assert!(
        matches!(reading, StreamError::Ended | StreamError::Closed(CloseReason::Aborted)),
        "{reading:?}"
    );
    let late = pair.sockets.connect("10.0.0.2:7".parse().unwrap()).unwrap_err();
    assert_eq!(late, StreamError::NotRunning);
    drop(near);
    assert!(pair.client.finish(LONG).unwrap().violations.is_empty());
}
