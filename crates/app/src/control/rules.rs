//! `rheo rules`: the rules of a running instance's functions, and how often each has decided.

use std::process::ExitCode;

use rheostat_observe::control::{ListRequest, Listing, Page, RuleLine};
use rheostat_run::Metrics;

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo rules --control /run/rheo/fw.sock
  rheo rules --sort hits,desc --limit 10
  rheo rules --json | jq '.[] | select(.hits == 0) | .rule'

A rule is evaluated on the first packet of a flow, and on packets that open no flow. `hits` counts these, and `bytes` adds up
their bytes with link headers: not those of the flows that the rule admits. `last_hit` is the age of the last one in seconds, by
the clock of the run; that of a capture is the time of its packets.
With --json, an array: {place, function, number, rule, hits, bytes, last_hit, text}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    listing::print::<RuleLine>(&args.listing, Listing::Rules, None)
}

impl Instance {
    /// A page of the rules.
    pub(super) fn page_of_rules(&self, request: &ListRequest) -> Result<Page<RuleLine>, String> {
        if self.service.is_some() {
            return Err(self.without("rules"));
        }
        let metrics = match self.rules.needs_metrics() {
            true => self.view.metrics(super::instance::COUNT).metrics,
            false => Metrics::counts(),
        };
        listing::select(request, self.rules.lines(self.view.now(), |name| metrics.get(name)))
    }
}
