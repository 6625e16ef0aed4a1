//! What a running instance serves over HTTP while it goes on: its metrics. Everything is read only.

mod listener;
mod policy;
mod server;

pub(crate) use listener::{HttpError, HttpListener};
pub(crate) use server::HttpServer;
