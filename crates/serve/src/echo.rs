//! An echo service (RFC 862): what a client sends comes back.

use std::net::SocketAddr;

use rheostat_base::LaneId;

use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
use crate::registry::{ApplicationKind, ApplicationRegistration, Program};

/// The longest piece that comes back at once.
const PIECE: usize = 16 << 10;

/// Sends back what it gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echo;

impl Application for Echo {
    type Conn = ();
    type Worker = ();
    type Request = Vec<u8>;
    type Reply = Vec<u8>;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<Vec<u8>, Vec<u8>> {
        let piece = &bytes[..bytes.len().min(PIECE)];
        Parsed::Request { request: piece.to_vec(), len: piece.len(), class: 0 }
    }

    fn handle(&self, (): &mut (), request: Vec<u8>) -> Handled<Vec<u8>, Vec<u8>> {
        Handled::Done(request)
    }

    fn reply_memory(&self, reply: &Vec<u8>) -> usize {
        reply.capacity()
    }

    fn encode(&self, (): &mut (), reply: &mut Vec<u8>, out: &mut ReplyBuffer<'_>) -> Encoded {
        out.put(reply);
        Encoded::Done
    }
}

/// `echo`.
pub fn registration() -> ApplicationRegistration {
    ApplicationKind::<()>::new("echo", "What a client sends comes back", |(), _| {
        Ok(Program::requests(Echo).into())
    })
    .register()
}
