//! The control socket: the running instance's end of it, and the commands that use the other.

mod backends;
mod client;
mod connections;
mod explain;
mod fitting;
mod flows;
mod instance;
mod keep;
mod lanes;
mod listing;
mod nat;
mod neighbours;
mod peer;
mod profile;
mod reload;
mod routes;
mod rules;
mod server;
mod shards;
mod socket;
mod status;
mod stop;
mod table;
mod watch;

pub(crate) use backends::{
    Args as BackendsArgs, OldArgs as BackendArgs, run as backends, run_old as backend,
};
pub(crate) use client::{ClientError, ControlClient, Target};
pub(crate) use connections::{Args as ConnectionsArgs, run as connections};
pub(crate) use flows::{Args as FlowsArgs, run as flows};
pub(crate) use instance::{Instance, by_name};
pub(crate) use keep::{Args as KeepArgs, confirm, run as keep};
pub(crate) use lanes::{Args as LanesArgs, run as lanes};
pub(crate) use nat::{Args as NatArgs, MappingPlace, run as nat};
pub(crate) use neighbours::{Args as NeighboursArgs, run as neighbours};
pub(crate) use peer::Peer;
pub(crate) use reload::{Args as ReloadArgs, run as reload};
pub(crate) use routes::{Args as RoutesArgs, run as routes};
pub(crate) use rules::{Args as RulesArgs, run as rules};
pub(crate) use server::{Answers, Depth, Server};
pub(crate) use shards::{Args as ShardsArgs, run as shards};
pub(crate) use socket::{ControlSocket, SocketError};
pub(crate) use status::{Args as StatusArgs, run as status};
pub(crate) use stop::{Args as StopArgs, run as stop};
pub(crate) use table::{Args as TableArgs, run as table};
