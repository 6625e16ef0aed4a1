//! TCP services in the lanes of a run: connections that shards own, and so move with them; listeners, of which every lane has
//! all; and the interfaces that services are written against: [`Application`], which sees requests, and [`Handler`], which sees
//! events of connections, reads and writes them, and opens some.
//!
//! [`TcpServer`] makes what a lane runs. Segments for this machine's addresses reach it in the burst, where they lie, with the
//! shard they belong to; it looks the connection up in the shard, passes it the segment, lets the program take what has
//! arrived, and sends what there is to be sent, all before it looks at the next packet.
#![forbid(unsafe_code)]

mod application;
pub mod blocking;
mod budget;
mod config;
mod connections;
mod connector;
mod conversation;
mod cookies_under_way;
mod counters;
mod driver;
mod due;
pub mod echo;
mod egress;
mod ends;
mod entry;
mod half_open;
mod handler;
pub mod host;
pub mod http;
mod index;
mod inspection;
mod listeners;
mod ports;
mod readiness;
pub mod registry;
mod rehearsal;
pub mod relay;
pub mod resp;
mod scarcity;
pub mod scheduler;
mod segment;
mod server;
mod service;
mod shared;
mod slab;
mod sockets;
mod times;
pub mod work;

pub use application::{Application, Encoded, Handled, Parsed, ReplyBuffer};
pub use config::{ListenerConfig, OutgoingConfig, ServeConfig, SynCookieMode};
pub use connections::ConnectionId;
pub use connector::ConnectError;
pub use counters::Totals;
pub use handler::{Handler, SocketEvent};
pub use inspection::{ConnectionFilter, ConnectionList, ConnectionRecord};
pub use ports::steering_for_connecting;
pub use rehearsal::{Ended, Rehearsal, rehearse};
pub use rheostat_tcp::State as ConnectionState;
pub use scheduler::AvailableScheduler;
pub use server::{MembersError, ServeError, StepMembers, TcpServer};
pub use shared::ServeControl;
pub use sockets::Sockets;
pub use times::{RequestStage, RequestTimes, StageSummary, TimedRequest, TimesConfig};
