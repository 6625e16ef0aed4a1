//! TCP services in the lanes of a run: connections that shards own, and so move with them; listeners, of which every lane has
//! all; and the interface that services are written against, [`Application`].
//!
//! [`TcpService`] is what a lane runs. Segments for this machine's addresses reach it in the burst, where they lie, with the
//! shard they belong to; it looks the connection up in the shard, passes it the segment, lets the application take what has
//! arrived, and sends what there is to be sent, all before it looks at the next packet.
#![forbid(unsafe_code)]

mod application;
mod budget;
mod config;
mod connections;
mod conversation;
mod counters;
pub mod echo;
mod egress;
mod ends;
mod entry;
pub mod http;
mod index;
mod listeners;
mod rehearsal;
pub mod resp;
mod segment;
mod server;
mod service;
mod shared;

pub use application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
pub use config::{ListenerConfig, ServeConfig};
pub use counters::Totals;
pub use rehearsal::{Ended, Rehearsal, rehearse};
pub use server::{ServeError, TcpServer};
pub use service::TcpService;
pub use shared::ServeControl;
