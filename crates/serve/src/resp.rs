//! A store of keys and values that speaks the protocol of Redis (RESP2): `GET`, `SET` with `EX`, `PX`, `NX` and `XX`, `DEL`,
//! `EXISTS`, `INCR`, `INCRBY`, `DECR`, `DECRBY`, `MGET`, `MSET`, `EXPIRE`, `PEXPIRE`, `TTL`, `PTTL`, `DBSIZE`, `PING`, `ECHO`, `QUIT`.
//!
//! All lanes share the store, which is locked by stripes of keys.

mod command;
mod execution;
mod reply;
mod store;
mod value;

use std::net::SocketAddr;
use std::sync::Arc;

use rheostat_base::{ClockSource, LaneId};

pub use self::command::Command;
use self::command::{ParseError, Progress};
pub use self::reply::RespReply;
use self::store::Store;
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// Serves a store.
pub struct Resp {
    store: Store,
    clock: Arc<dyn ClockSource>,
}

/// What is known of a connection: how much of an unfinished command has been looked at.
#[derive(Debug, Default)]
pub struct RespConn(Progress);

impl Resp {
    /// An empty store that takes at most so many bytes for keys and values. Times to live go by `clock`.
    pub fn new(bytes: usize, clock: Arc<dyn ClockSource>) -> Resp {
        Resp { store: Store::new(bytes), clock }
    }
}

impl Application for Resp {
    /// A command sees what those before it have done.
    const SERIAL: bool = true;
    type Conn = RespConn;
    type Worker = ();
    type Request = Command;
    type Reply = RespReply;

    fn worker(&self, _: LaneId) {}

    fn accept(&self, _: SocketAddr) -> RespConn {
        RespConn::default()
    }

    fn parse(&self, conn: &mut RespConn, bytes: &[u8]) -> Parsed<Command, RespReply> {
        match Command::parse(bytes, &mut conn.0) {
            Ok((request, len)) => Parsed::Request { request, len, class: 0 },
            Err(ParseError::Partial(needed)) => Parsed::Need(needed),
            Err(ParseError::Wrong(what)) => {
                let mut reply = RespReply::from(format!("-ERR Protocol error: {what}\r\n"));
                reply.ends = true;
                Parsed::Refuse(reply)
            }
        }
    }

    fn handle(&self, (): &mut (), request: Command) -> Handled<Command, RespReply> {
        let mut reply = RespReply::default();
        execution::execute(&request, &self.store, self.clock.now(), &mut reply);
        reply.ends = request.is(b"QUIT");
        Handled::Done(reply)
    }

    fn reply_memory(&self, reply: &RespReply) -> usize {
        reply.memory()
    }

    fn too_large(&self) -> Option<RespReply> {
        let text = "-ERR the reply takes more memory than one reply may\r\n";
        Some(RespReply::from(text.to_owned()))
    }

    fn encode(
        &self,
        _: &mut RespConn,
        reply: &mut RespReply,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded {
        match (reply.write(out), reply.ends) {
            (true, true) => Encoded::Close,
            (true, false) => Encoded::Done,
            (false, _) => Encoded::More,
        }
    }
}

impl std::fmt::Debug for Resp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resp").field("store", &self.store).finish_non_exhaustive()
    }
}
