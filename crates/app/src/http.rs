//! What a running instance serves over HTTP while it goes on: its metrics, and a page that follows it. Everything is read only.

mod assets;
#[cfg(test)]
mod counted;
mod feed;
mod flow_sampler;
mod listener;
mod patience;
mod policy;
mod server;

pub(crate) use listener::{HttpError, HttpListener};
pub(crate) use server::HttpServer;
