//! `rheo shards`: the shards of a running instance.

use std::process::ExitCode;

use rheostat_base::ShardId;
use rheostat_observe::control::{ListRequest, Listing, Page, ShardLine};
use rheostat_run::LiveMetrics;

use super::ClientError;
use super::instance::{COUNT, Instance};
use super::listing::{self, ListingArgs};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo shards --control /run/rheo/nat.sock
  rheo shards --sort load,desc --limit 10
  rheo shards --sort moves,desc --watch

`load` is a shard's share of the packets of all shards since the start. Packets are counted by shard where a policy may move
shards, and in instances with a control socket.
With --json, an array: {shard, lane, moving, moves, packets, bytes, load, flows}.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    listing::print::<ShardLine>(&args.listing, Listing::Shards, None)
}

impl Instance {
    /// A page of the shards, and how many have not answered.
    pub(super) fn page_of_shards(
        &self,
        request: &ListRequest,
    ) -> Result<(Page<ShardLine>, u64), String> {
        let LiveMetrics { flows, missing_shards, .. } = self.view.metrics(COUNT);
        let sum = |counts: &dyn Fn(&rheostat_run::ShardLoads) -> Vec<u64>| {
            let lanes = self.view.loads().iter().map(counts);
            lanes.fold(Vec::new(), |mut sum: Vec<u64>, lane| {
                sum.resize(lane.len().max(sum.len()), 0);
                sum.iter_mut().zip(lane).for_each(|(sum, count)| *sum += count);
                sum
            })
        };
        let (packets, bytes) = (sum(&|lane| lane.packets()), sum(&|lane| lane.bytes()));
        let all = packets.iter().sum::<u64>().max(1) as f64;
        let migrator = self.view.migrator();
        let shards = (0..).zip(migrator.owners().iter().zip(migrator.moves()));
        let lines: Vec<_> = shards
            .map(|(shard, (lane, moves))| {
                let index = usize::from(shard);
                ShardLine {
                    shard,
                    lane: lane.0,
                    moving: migrator.is_moving(ShardId(shard)),
                    moves: u64::from(*moves),
                    packets: packets.get(index).copied(),
                    bytes: bytes.get(index).copied(),
                    load: packets.get(index).map(|packets| *packets as f64 / all),
                    flows: flows.get(index).copied().flatten(),
                }
            })
            .collect();
        drop(migrator);
        Ok((listing::select(request, lines)?, missing_shards as u64))
    }
}
