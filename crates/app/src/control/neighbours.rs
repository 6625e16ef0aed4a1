//! `rheo neighbours`: the hosts on the links of a running instance's devices.

use std::process::ExitCode;

use rheostat_observe::control::{ListRequest, Listing, NeighbourLine, Page};

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo neighbours --control /run/rheo/nat.sock
  rheo neighbours --sort age,desc --watch

States are those of RFC 4861, as `ip neighbour` shows them; ARP has the same. `age` is the time in seconds since the state was
confirmed or changed, or since the last question to a neighbour that has not answered.
With --json, an array: {device, address, mac, state, age}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    listing::print::<NeighbourLine>(&args.listing, Listing::Neighbours, None)
}

impl Instance {
    /// A page of the neighbours.
    pub(super) fn page_of_neighbours(
        &self,
        request: &ListRequest,
    ) -> Result<Page<NeighbourLine>, String> {
        let network = self.network.as_ref().ok_or_else(|| self.without_network("neighbours"))?;
        let (devices, now) = (self.view.devices(), self.view.now());
        let known = network.known_neighbours();
        listing::select(request, known.iter().map(|known| NeighbourLine::of(known, devices, now)))
    }
}
