//! `rheo flows`: the flows of a running chain, and what the instance does when it is asked for them.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId};
use rheostat_capture::FlowExpression;
use rheostat_observe::control::{
    DeleteFlowsRequest, FlowLine, FlowsRequest, ListRequest, Listing, Page, Reply, Request,
    Selection,
};
use rheostat_run::listing::{FlowFilter, Record, Subject, WalkHandle, WalkRequest};

use super::ClientError;
use super::instance::Instance;
use super::listing::{self, ListingArgs};
use super::peer::Peer;

/// How long lanes may not get on with a walk: a lane that polls gets on every millisecond.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo flows --control /run/rheo/nat.sock
  rheo flows 'tcp port 443' --sort timeout --limit 20
  rheo flows 'host 10.0.0.5 or 10.0.0.6' --json
  rheo flows --count --watch
  rheo flows --delete 'host 10.0.0.5'

A filter is an expression of pcap-filter(7). It means a flow if it matches its packets in either direction, before or after
translation; words about single packets (less, greater, fragment) are refused.
Age, packets and bytes are known where a function counts them: the monitor does, since its last record of the flow.
With --json, an array: {protocol, source, destination, opened_by, translated: {source, destination}, vlan, state, timeout, age,
packets, bytes, lane, shard, away, rule, functions: {NAME: {…}}}; timeout and age in seconds.
--delete ends flows as a time-out does: functions are notified, logs are written, and nothing is sent.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
    /// Which flows; all without it.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// On this lane.
    #[arg(long, value_name = "N")]
    lane: Option<u16>,
    /// Of this shard.
    #[arg(long, value_name = "N")]
    shard: Option<u16>,
    /// In this state, such as established.
    #[arg(long, value_name = "STATE", conflicts_with = "delete")]
    state: Option<String>,
    /// Delete the flows, and print how many.
    #[arg(long, conflicts_with_all = ["watch", "count", "sort", "cursor"])]
    delete: bool,
    /// With --delete, delete all flows.
    #[arg(long, requires = "delete", conflicts_with = "filter")]
    all: bool,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    let filter = Some(args.filter.join(" ")).filter(|filter| !filter.is_empty());
    if args.delete {
        return delete(args, filter);
    }
    let of = Listing::Flows(FlowsRequest {
        lane: args.lane,
        shard: args.shard,
        state: args.state.clone(),
    });
    listing::print::<FlowLine>(&args.listing, of, filter)
}

fn delete(args: &Args, filter: Option<String>) -> Result<ExitCode, ClientError> {
    let reply = args.listing.target.ask(&Request::DeleteFlows(DeleteFlowsRequest {
        filter,
        all: args.all,
        lane: args.lane,
        shard: args.shard,
        limit: args.listing.limit.map(u64::from),
    }))?;
    let Reply::FlowsDeleted { flows, silent } = reply else {
        return Err(ClientError::Unexpected);
    };
    match args.listing.json {
        true => out!("{{\"deleted\":{flows}}}"),
        false => out!("{flows} flows deleted"),
    }
    if silent > 0 {
        err!("{silent} lanes have not answered in time: flows of theirs are left");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

impl Instance {
    /// A page of the flows that are meant, and how many lanes have not answered.
    pub(super) fn page_of_flows(
        &self,
        request: &FlowsRequest,
        page: &ListRequest,
        peer: &Peer,
    ) -> Result<(Page<FlowLine>, u64), String> {
        let mut selection = Selection::new(page).map_err(|error| error.to_string())?;
        let counts_only = page.count && request.state.is_none();
        let subject = if counts_only { Subject::FlowCount } else { Subject::Flows };
        let mut walk = self.begin_walk(WalkRequest {
            filter: filter(page.filter.as_deref())?,
            lane: request.lane.map(LaneId),
            shard: request.shard.map(ShardId),
            ..WalkRequest::of(subject)
        })?;
        while let Some(records) = walk.read(PATIENCE) {
            for record in records {
                let Record::Flow(flow) = record else { continue };
                let line = FlowLine::of(&flow);
                if request.state.is_none() || request.state == line.state {
                    selection.add(line);
                }
            }
            end_with(peer)?;
        }
        let mut page = selection.finish();
        if counts_only {
            page.matched = walk.result().matched;
        }
        Ok((page, self.silent_lanes(&walk)))
    }

    /// Deletes flows, and says how many.
    pub(super) fn delete_flows(
        &self,
        request: &DeleteFlowsRequest,
        peer: &Peer,
    ) -> Result<Reply, String> {
        if request.filter.is_none() && !request.all {
            return Err(
                "name the flows to delete by a filter, such as 'host 10.0.0.5', or all of them by --all"
                    .to_owned(),
            );
        }
        let mut walk = self.begin_walk(WalkRequest {
            filter: filter(request.filter.as_deref())?,
            lane: request.lane.map(LaneId),
            shard: request.shard.map(ShardId),
            most: request.limit,
            ..WalkRequest::of(Subject::Deletion)
        })?;
        while walk.read(PATIENCE).is_some() {
            end_with(peer)?;
        }
        let flows = walk.result().matched;
        Ok(Reply::FlowsDeleted { flows, silent: self.silent_lanes(&walk) })
    }

    /// Begins a walk, if the instance has flows.
    pub(super) fn begin_walk(&self, request: WalkRequest) -> Result<WalkHandle, String> {
        let Some(walks) = &self.walks else {
            return Err(match (&self.service, self.functions.as_slice()) {
                (None, functions @ [_, ..]) => format!(
                    "the functions {} keep no flows in shards; what they keep in objects that all lanes share is not listed",
                    functions.join(", ")
                ),
                _ => self.without("flows"),
            });
        };
        let mut migrator = self.view.migrator();
        let shards = migrator.owners().len();
        let walk = WalkHandle::begin(walks, request, self.view.lanes(), shards);
        migrator.call_services();
        walk.map_err(|error| error.to_string())
    }

    /// The lanes that have shards which a walk is missing.
    pub(super) fn silent_lanes(&self, walk: &WalkHandle) -> u64 {
        if walk.result().missing_shards == 0 {
            return 0;
        }
        let owners = self.view.migrator().owners().to_vec();
        let missing = walk.missing();
        let lanes: BTreeSet<_> =
            missing.iter().filter_map(|shard| owners.get(shard.index())).collect();
        lanes.len().max(1) as u64
    }
}

/// A filter of flows in the language of expressions.
pub(super) fn filter(text: Option<&str>) -> Result<Option<Box<FlowFilter>>, String> {
    let Some(text) = text else { return Ok(None) };
    let expression = FlowExpression::new(text).map_err(|error| error.to_string())?;
    Ok(Some(Box::new(move |key, alias| expression.matches(key, alias))))
}

/// Ends an answer for which nobody waits.
pub(super) fn end_with(peer: &Peer) -> Result<(), String> {
    match peer.run_is_over() || peer.has_gone() {
        true => Err("the run is over".to_owned()),
        false => Ok(()),
    }
}
