//! A connection as its two threads share it: one sends, the other receives, opens and closes.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ledger::Expected;

/// A connection, or the place for one.
#[derive(Debug, Default)]
pub(crate) struct LoadLink {
    stream: Option<Arc<TcpStream>>,
    /// Requests without a reply, in order.
    pub(crate) expected: VecDeque<Expected>,
    /// The end of a request that did not fit the socket.
    unsent: Vec<u8>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentRequest {
    /// It is under way.
    Yes,
    /// The connection takes none now.
    No,
}

/// The lock of a link; a thread that panicked left it whole, since nothing in here is half done between calls.
pub(crate) fn lock(link: &Mutex<LoadLink>) -> MutexGuard<'_, LoadLink> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoadLink {
    /// A connection is there.
    pub(crate) fn open(&mut self, stream: Arc<TcpStream>) {
        self.stream = Some(stream);
        self.unsent.clear();
    }

    /// No more requests are sent.
    pub(crate) fn close(&mut self) {
        self.stream = None;
        self.unsent.clear();
    }

    /// Whether it takes requests at all.
    pub(crate) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Sends a request unless so many are under way, or the socket is full. A part that does not fit follows before the next.
    pub(crate) fn send(
        &mut self,
        request: &[u8],
        expected: Expected,
        outstanding: usize,
    ) -> SentRequest {
        let Some(stream) = self.stream.clone() else { return SentRequest::No };
        if self.expected.len() >= outstanding || !self.flush() {
            return SentRequest::No;
        }
        match write(&stream, request) {
            Ok(0) => return SentRequest::No,
            Ok(sent) => self.unsent.extend_from_slice(&request[sent..]),
            // The receiver finds out why.
            Err(_) => {
                self.stream = None;
                return SentRequest::No;
            }
        }
        self.expected.push_back(expected);
        SentRequest::Yes
    }

    /// Sends what did not fit; whether all of it is gone.
    pub(crate) fn flush(&mut self) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        let Some(stream) = self.stream.clone() else { return false };
        match write(&stream, &self.unsent) {
            Ok(sent) => drop(self.unsent.drain(..sent)),
            Err(_) => self.stream = None,
        }
        self.unsent.is_empty()
    }
}

/// Writes what fits, possibly nothing.
fn write(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sockets.

    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    const EXPECTED: Expected = Expected { due: 0, class: 0, number: 0 };

    fn pair() -> (LoadLink, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut link = LoadLink::default();
        assert_eq!(link.send(b"x", EXPECTED, 1), SentRequest::No);
        link.open(Arc::new(client));
        (link, listener.accept().unwrap().0)
    }

    #[test]
    fn so_many_requests_are_under_way_and_no_more() {
        let (mut link, mut server) = pair();
        assert_eq!(
            [(); 3].map(|()| link.send(b"abc", EXPECTED, 2)),
            [SentRequest::Yes, SentRequest::Yes, SentRequest::No]
        );
        let mut bytes = [0; 6];
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"abcabc");
        link.expected.pop_front();
        assert_eq!(link.send(b"abc", EXPECTED, 2), SentRequest::Yes);
    }

    #[test]
    fn a_request_that_does_not_fit_is_sent_whole_and_in_order() {
        let (mut link, mut server) = pair();
        let request: Vec<u8> = (0..1 << 20).map(|at: u32| at as u8 ^ (at >> 8) as u8).collect();
        let mut sent = 0;
        while link.send(&request, EXPECTED, 1_000) == SentRequest::Yes {
            sent += 1;
        }
        assert!(sent > 0 && !link.flush(), "{sent}");
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            server.read_to_end(&mut bytes).unwrap();
            bytes
        });
        while !link.flush() {
            std::thread::yield_now();
        }
        link.close();
        assert!(!link.is_open());
        assert!(reader.join().unwrap() == request.repeat(sent));
    }
}
