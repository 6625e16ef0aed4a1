//! `rheo routes`: the routes of a running instance.

use std::process::ExitCode;

use rheostat_observe::control::{ListRequest, Listing, Page, RouteLine};

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo routes --control /run/rheo/nat.sock
  rheo routes --sort device --json

`origin` is `configured` for routes of the configuration, `kernel` for those that follow the kernel's (follow_kernel), and
`interface` for what follows from the addresses of devices. Packets to `local` addresses are for the machine itself; packets to
`proxied` ones, for which it answers on the link, are for the chain.
With --json, an array: {prefix, kind, next_hop, device, origin}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    listing::print::<RouteLine>(&args.listing, Listing::Routes, None)
}

impl Instance {
    /// A page of the routes.
    pub(super) fn page_of_routes(&self, request: &ListRequest) -> Result<Page<RouteLine>, String> {
        let network = self.network.as_ref().ok_or_else(|| self.without_network("routes"))?;
        let followed = self.followed.as_ref().map(|routes| routes.of_kernel());
        let is_followed =
            |prefix: &_| followed.as_ref().is_some_and(|known| known.contains(prefix));
        listing::select(request, RouteLine::of(network, self.view.devices(), is_followed))
    }
}
