//! `rheo lanes`: the lanes of a running instance.

use std::process::ExitCode;

use rheostat_observe::control::{LaneLine, ListRequest, Listing, Page};

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo lanes --control /run/rheo/nat.sock
  rheo lanes --sort load,desc --watch

All counts are since the start. `load` is the busy share of the time, and `busy` the share of polls that found work. `queued`
adds up the packets that wait for a fragment, a neighbour, a shard or a pool; the JSON has each. `core` is shown where a lane
keeps to one.
With --json, an array: {lane, core, load, busy, packets, bytes, sent, dropped, flows, shards, queued: {fragments, neighbour, shard,
pool}, polling}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    listing::print::<LaneLine>(&args.listing, Listing::Lanes, None)
}

impl Instance {
    /// A page of the lanes.
    pub(super) fn page_of_lanes(&self, request: &ListRequest) -> Result<Page<LaneLine>, String> {
        let sample = self.view.sample();
        let mut shards = vec![0; sample.lanes.len()];
        for owner in self.view.migrator().owners() {
            if let Some(count) = shards.get_mut(owner.index()) {
                *count += 1;
            }
        }
        listing::select(request, LaneLine::of(&sample, &self.cores, &shards))
    }
}
