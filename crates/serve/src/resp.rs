//! A store of keys and values that speaks the protocol of Redis (RESP2 and RESP3). The commands are those of `catalogue`.
//!
//! All lanes share the store, which is locked by stripes of keys.

mod catalogue;
mod clients;
mod command;
mod execution;
mod introspection;
mod refusal;
mod reply;
mod settings;
mod store;
mod value;

use std::net::SocketAddr;
use std::sync::Arc;

use rheostat_base::{ClockSource, LaneId, Time};

use self::clients::{Clients, Registration};
pub use self::command::Command;
use self::command::{ParseError, Progress};
pub use self::reply::RespReply;
pub use self::settings::{RespConfig, registration};
use self::store::Store;
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// Serves a store.
pub struct Resp {
    store: Store,
    clients: Arc<Clients>,
    config: RespConfig,
    clock: Arc<dyn ClockSource>,
    started: Time,
}

/// What is known of a connection: how much of an unfinished command has been looked at, and the client.
#[derive(Debug)]
pub struct RespConn {
    progress: Progress,
    registration: Registration,
}

impl Resp {
    /// An empty store. Times to live go by `clock`.
    pub fn new(config: RespConfig, clock: Arc<dyn ClockSource>) -> Resp {
        let (store, clients) = (Store::new(config.memory), Arc::new(Clients::new()));
        Resp { store, clients, config, started: clock.now(), clock }
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

    fn accept(&self, peer: SocketAddr) -> RespConn {
        let registration = self.clients.register(peer, self.clock.now());
        RespConn { progress: Progress::default(), registration }
    }

    fn parse(&self, conn: &mut RespConn, bytes: &[u8]) -> Parsed<Command, RespReply> {
        match command::parse(bytes, &mut conn.progress, self.config.longest_value) {
            Ok((words, len)) => {
                let client = &conn.registration.client;
                let request = Command::new(words, client.protocol(), client);
                Parsed::Request { request, len, class: 0 }
            }
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
        reply.ends = request.is(b"QUIT");
        execution::execute(request, self, self.clock.now(), &mut reply);
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
