//! What services do in a measurement: as little as an application can.

use std::net::SocketAddr;

use rheostat_base::LaneId;
use rheostat_serve::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// Bytes of a request.
pub(super) const REQUEST: usize = 128;
/// Bytes of a long reply that are written at once.
const PIECE: usize = 16 << 10;

/// Sends each request back.
pub(super) struct Repeat;

impl Application for Repeat {
    type Conn = ();
    type Worker = ();
    type Request = [u8; REQUEST];
    type Reply = [u8; REQUEST];

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<[u8; REQUEST], [u8; REQUEST]> {
        match bytes.first_chunk() {
            Some(request) => Parsed::Request { request: *request, len: REQUEST, class: 0 },
            None => Parsed::Need(REQUEST),
        }
    }

    fn handle(&self, (): &mut (), request: [u8; REQUEST]) -> Handled<[u8; REQUEST], [u8; REQUEST]> {
        Handled::Done(request)
    }

    fn encode(&self, (): &mut (), reply: &mut [u8; REQUEST], out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

/// Sends so many bytes for each request.
pub(super) struct Give {
    pub(super) bytes: usize,
    pub(super) piece: Box<[u8; PIECE]>,
}

impl Give {
    pub(super) fn new(bytes: u32) -> Give {
        Give { bytes: bytes as usize, piece: Box::new([7; PIECE]) }
    }
}

impl Application for Give {
    type Conn = ();
    type Worker = ();
    type Request = ();
    /// Bytes left.
    type Reply = usize;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<(), usize> {
        match bytes.len() >= REQUEST {
            true => Parsed::Request { request: (), len: REQUEST, class: 0 },
            false => Parsed::Need(REQUEST),
        }
    }

    fn handle(&self, (): &mut (), (): ()) -> Handled<(), usize> {
        Handled::Done(self.bytes)
    }

    fn encode(&self, (): &mut (), left: &mut usize, out: &mut ReplyBuffer<'_>) -> Encoded {
        while *left > 0 && out.room() > 0 {
            let piece = PIECE.min(*left).min(out.room());
            out.put(&self.piece[..piece]);
            *left -= piece;
        }
        if *left == 0 { Encoded::Done } else { Encoded::More }
    }
}
