//! `rheo nat`: the mappings of a running NAT, and what the instance does when it is asked for them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_capture::FlowExpression;
use rheostat_functions::nat::{Mapping, NatFunction};
use rheostat_observe::control::{
    ListRequest, Listing, MappingLine, MappingsRequest, Page, Selection,
};
use rheostat_packet::FlowKey;
use rheostat_run::listing::{Record, Subject, WalkRequest};
use thiserror::Error;

use super::ClientError;
use super::flows::{PATIENCE, end_with};
use super::instance::Instance;
use super::listing::{self, ListingArgs};
use super::peer::Peer;
use crate::app::App;
use crate::{nat_host, nat_log};

/// The name of the NAT in a chain.
const NAT: &str = "nat";

/// Where the NAT of a chain keeps its mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MappingPlace {
    /// In tables of its own in shards.
    #[default]
    Shards,
    /// In flows, each of which has its own.
    Flows,
    /// In objects that all lanes share, which are not listed.
    Objects,
}

impl MappingPlace {
    /// The place by the settings of the NAT, if there is one.
    pub(crate) fn of(nat: Option<&NatFunction>) -> MappingPlace {
        match nat {
            Some(NatFunction { sharing: Some(_), .. }) => MappingPlace::Objects,
            Some(NatFunction { nat, .. }) if nat.mapping == Mapping::AddressAndPortDependent => {
                MappingPlace::Flows
            }
            _ => MappingPlace::Shards,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo nat --control /run/rheo/nat.sock
  rheo nat --external 203.0.113.1:4711
  rheo nat 'host 10.0.0.5' --json
  rheo nat --sort flows,desc --limit 20
  rheo nat --log mappings.jsonl --external 203.0.113.1:4711
  rheo nat --config gateway.toml --external 203.0.113.1:4711

A mapping is `shared` by all flows of an endpoint inside, the `own` one of a flow (mapping = \"address-and-port-dependent\"), or a
`forward` of the configuration.
With --json, an array: {protocol, inside, external, peer, kind, state, flows, timeout, lane, shard}; timeout in seconds.
--config and --log need no running instance; the exit status is 1 when the endpoint belongs to no host.")]
pub(crate) struct Args {
    #[command(flatten)]
    listing: ListingArgs,
    /// Which mappings, by the endpoint inside or the external one; all without it.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// The mapping with this external endpoint, such as 203.0.113.1:4711: which host has it?
    #[arg(long, value_name = "ADDRESS:PORT")]
    external: Option<SocketAddr>,
    /// Search this log of a NAT for the hosts that have had the external endpoint.
    #[arg(long, value_name = "FILE", requires = "external", conflicts_with_all = FOR_INSTANCES)]
    log: Option<PathBuf>,
    /// Compute the host from this configuration, whose NAT gives each host a block of ports (`deterministic = true`).
    #[arg(long, value_name = "FILE", requires = "external", conflicts_with_all = FOR_INSTANCES, conflicts_with = "log")]
    config: Option<PathBuf>,
}

/// The arguments that need a running instance.
const FOR_INSTANCES: [&str; 7] = ["filter", "control", "watch", "count", "sort", "limit", "cursor"];

/// Why nothing was printed.
#[derive(Debug, Error)]
pub(crate) enum NatError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Host(#[from] nat_host::Error),
    #[error(transparent)]
    Log(#[from] nat_log::Error),
    #[error("the NAT translates IPv4: {0} is no external endpoint of it")]
    Family(SocketAddr),
}

/// Asks and prints; with a log or a configuration, searches that.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, NatError> {
    let json = args.listing.json;
    if let (Some(log), Some(external)) = (&args.log, args.external) {
        return Ok(nat_log::search(log, external, json)?);
    }
    if let (Some(config), Some(external)) = (&args.config, args.external) {
        let SocketAddr::V4(external) = external else { return Err(NatError::Family(external)) };
        return Ok(nat_host::print(app, config, &[external], json)?);
    }
    Ok(list(args)?)
}

fn list(args: &Args) -> Result<ExitCode, ClientError> {
    let filter = Some(args.filter.join(" ")).filter(|filter| !filter.is_empty());
    let of = Listing::Mappings(MappingsRequest { external: args.external });
    listing::print::<MappingLine>(&args.listing, of, filter)
}

impl Instance {
    /// A page of the mappings that are meant, and how many lanes have not answered.
    pub(super) fn page_of_mappings(
        &self,
        request: &MappingsRequest,
        page: &ListRequest,
        peer: &Peer,
    ) -> Result<(Page<MappingLine>, u64), String> {
        if !self.functions.iter().any(|function| function == NAT) {
            return Err(self.without("mappings"));
        }
        if self.mappings == MappingPlace::Objects {
            return Err(
                "the mappings of this NAT are in objects that all lanes share (`state = \"shared\"`), which are not listed"
                    .to_owned(),
            );
        }
        let mut selection = Selection::new(page).map_err(|error| error.to_string())?;
        let filter = page.filter.as_deref().map(FlowExpression::new).transpose();
        let filter = filter.map_err(|error| error.to_string())?;
        let is_meant = |line: &MappingLine| {
            request.external.is_none_or(|external| external == line.external)
                && filter.as_ref().is_none_or(|filter| matches(filter, line))
        };
        let mut silent = 0;
        for subject in [Subject::Entries(NAT.to_owned()), Subject::Flows] {
            let mut walk = self.begin_walk(WalkRequest::of(subject))?;
            while let Some(records) = walk.read(PATIENCE) {
                let lines = records.iter().filter_map(|record| match record {
                    Record::Entry(entry) => MappingLine::of_entry(entry),
                    Record::Flow(flow) => MappingLine::of_flow(flow),
                });
                selection.extend(lines.filter(is_meant));
                end_with(peer)?;
            }
            silent = silent.max(self.silent_lanes(&walk));
            if self.mappings != MappingPlace::Flows {
                break;
            }
        }
        Ok((selection.finish(), silent))
    }
}

/// Whether an expression means a mapping, by the endpoints that it joins.
fn matches(filter: &FlowExpression, line: &MappingLine) -> bool {
    let key = |end: SocketAddr| {
        let peer = line.peer;
        match (end, peer) {
            (SocketAddr::V4(end), Some(SocketAddr::V4(peer))) => FlowKey::v4(
                (*end.ip(), end.port()),
                (*peer.ip(), peer.port()),
                line.protocol_number,
                0,
            ),
            (SocketAddr::V4(end), _) => {
                let any = (std::net::Ipv4Addr::UNSPECIFIED, 0);
                FlowKey::v4((*end.ip(), end.port()), any, line.protocol_number, 0)
            }
            (SocketAddr::V6(end), _) => {
                let any = (std::net::Ipv6Addr::UNSPECIFIED, 0);
                FlowKey::v6((*end.ip(), end.port()), any, line.protocol_number, 0)
            }
        }
    };
    filter.matches(&key(line.inside), Some(&key(line.external)))
}
