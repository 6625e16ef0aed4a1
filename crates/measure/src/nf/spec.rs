//! Which rows there are.

use std::ops::Range;

use rheostat_functions::{ANTIDDOS, PORTSCAN};
use rheostat_run::LoadReporting;
use rheostat_traffic::Distribution;

use super::{FunctionChain, Measuring};
use crate::memory::{FrameSize, Load, Servers, SourceKind};

/// Shards of a row, unless it is about their number: those of a run by default.
pub const SHARDS: usize = 128;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    /// Source and sink alone.
    Harness,
    /// A chain without functions, whose packets can move to other lanes: receive, place in shards, count, send.
    Empty,
    /// A chain without functions, whose packets stay on the lane that receives them: receive and send.
    EmptyRss,
    /// What every stateful chain pays before its first function: packets are placed in shards, but no flow
    /// is looked up.
    Placed,
    /// The stateful firewall.
    Firewall,
    /// The NAT, with endpoint-independent mapping.
    Nat,
    /// The NAT, with address- and port-dependent mapping.
    NatSymmetric,
    /// The NAT on objects that all lanes share.
    NatShared,
    /// The firewall before the NAT, as in `configs/nat.toml`.
    FirewallNat,
    /// The firewall, in a chain that is put together at run time.
    FirewallDynamic,
    /// The firewall before the NAT, put together at run time.
    FirewallNatDynamic,
    /// The policer: two rates for each inner address.
    Policer,
    /// The monitor, with rankings and without a log.
    Monitor,
    /// The router with a route to either side, each through one next hop.
    Router,
    /// The router with ten thousand routes through 32 next hops.
    RouterWide,
    /// The router with a million routes, about what the internet has.
    RouterFull,
    /// The load balancer: what clients send leaves with one more IP header, answers pass.
    Lb,
    /// The detector of attacks with many flows, which only counts.
    AntiDdos,
    /// The detector of port scans, which only counts.
    Portscan,
    /// The learning bridge of two ports: each address is a station.
    Bridge,
    /// A chain of registered functions, put together as `rheo run` does.
    Functions(&'static FunctionChain),
}

impl ChainKind {
    /// Those that come along, from the least to the most.
    pub const ALL: [ChainKind; 20] = [
        ChainKind::Harness,
        ChainKind::EmptyRss,
        ChainKind::Empty,
        ChainKind::Placed,
        ChainKind::Router,
        ChainKind::RouterWide,
        ChainKind::RouterFull,
        ChainKind::Policer,
        ChainKind::Monitor,
        ChainKind::AntiDdos,
        ChainKind::Portscan,
        ChainKind::Firewall,
        ChainKind::FirewallDynamic,
        ChainKind::Nat,
        ChainKind::NatSymmetric,
        ChainKind::NatShared,
        ChainKind::FirewallNat,
        ChainKind::FirewallNatDynamic,
        ChainKind::Lb,
        ChainKind::Bridge,
    ];
    /// Those of them that work on shared objects.
    const SHARED: [ChainKind; 4] =
        [ChainKind::AntiDdos, ChainKind::Portscan, ChainKind::NatShared, ChainKind::Bridge];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            ChainKind::Functions(chain) => &chain.name,
            ChainKind::Harness => "harness",
            ChainKind::Empty => "empty",
            ChainKind::EmptyRss => "empty-rss",
            ChainKind::Placed => "placed",
            ChainKind::Firewall => "firewall",
            ChainKind::Nat => "nat",
            ChainKind::NatSymmetric => "nat-apd",
            ChainKind::NatShared => "nat-eim",
            ChainKind::FirewallNat => "fw-nat",
            ChainKind::FirewallDynamic => "firewall-dynamic",
            ChainKind::FirewallNatDynamic => "fw-nat-dynamic",
            ChainKind::Policer => "policer",
            ChainKind::Monitor => "monitor",
            ChainKind::Router => "router",
            ChainKind::RouterWide => "router-10k",
            ChainKind::RouterFull => "router-1m",
            ChainKind::Lb => "lb",
            ChainKind::AntiDdos => ANTIDDOS.name,
            ChainKind::Portscan => PORTSCAN.name,
            ChainKind::Bridge => "bridge",
        }
    }

    /// What it is, for people.
    pub const fn description(self) -> &'static str {
        match self {
            ChainKind::Harness => "Source and sink alone",
            ChainKind::Empty => "A chain without functions, packets placed in shards",
            ChainKind::EmptyRss => "A chain without functions, packets not told apart",
            ChainKind::Placed => "Packets placed in shards, and nothing looked up",
            ChainKind::Router => "The router with a route to either side",
            ChainKind::RouterWide => "The router with ten thousand routes",
            ChainKind::RouterFull => "The router with a million routes",
            ChainKind::Firewall => "The stateful firewall",
            ChainKind::Nat => "The NAT, endpoint-independent mapping",
            ChainKind::NatSymmetric => "The NAT, address- and port-dependent mapping",
            ChainKind::NatShared => "The NAT on objects that all lanes share",
            ChainKind::FirewallNat => "The firewall before the NAT",
            ChainKind::FirewallDynamic => "The firewall, its chain put together at run time",
            ChainKind::FirewallNatDynamic => {
                "The firewall before the NAT, put together at run time"
            }
            ChainKind::Policer => "The policer",
            ChainKind::Monitor => "The monitor",
            ChainKind::Lb => "The load balancer",
            ChainKind::AntiDdos => "The detector of attacks with many flows",
            ChainKind::Portscan => "The detector of port scans",
            ChainKind::Bridge => "The learning bridge",
            ChainKind::Functions(_) => "Registered functions",
        }
    }

    /// The servers that the flows of its rows go to.
    fn servers(self) -> Servers {
        match self {
            ChainKind::Functions(chain) => chain.servers(),
            ChainKind::Lb => Servers::One,
            ChainKind::Bridge => Servers::Stations,
            _ => Servers::Many,
        }
    }

    /// Whether it keeps flows in shards, which lanes can own together.
    fn owns_flows(self) -> bool {
        if let ChainKind::Functions(chain) = self {
            return chain.owns_flows();
        }
        use ChainKind::{Firewall, FirewallDynamic, FirewallNat, FirewallNatDynamic};
        use ChainKind::{Lb, Monitor, Nat, NatSymmetric, Policer};
        matches!(self, Firewall | FirewallDynamic | FirewallNat | FirewallNatDynamic)
            || matches!(self, Lb | Monitor | Nat | NatSymmetric | Policer)
    }

    /// What lanes have to report of their load at least.
    pub(super) const fn reporting(self) -> LoadReporting {
        match self {
            ChainKind::Empty => LoadReporting::Shards,
            _ => LoadReporting::Nothing,
        }
    }

    /// Whether servers see other endpoints than those of the clients.
    fn translates(self) -> bool {
        if let ChainKind::Functions(chain) = self {
            return chain.translates();
        }
        use ChainKind::{FirewallNat, FirewallNatDynamic, Nat, NatShared, NatSymmetric};
        matches!(self, Nat | NatSymmetric | NatShared | FirewallNat | FirewallNatDynamic)
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// What is measured.
    pub chain: ChainKind,
    /// The packets.
    pub load: Load,
    /// On how many lanes, each with a core of its own.
    pub lanes: usize,
    /// Shards of all lanes together, a power of two.
    pub shards: usize,
    /// Of a row on one lane: which packets come, if not those of all flows.
    pub part: Option<Part>,
    /// What lanes measure, where packets are stamped when they arrive; they are not without it, and nothing is measured.
    pub measuring: Option<Measuring>,
}

/// The packets that one lane of a wider row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The lane, counted from 0.
    pub lane: usize,
    /// How many lanes the wider row has.
    pub of: usize,
}

impl Spec {
    /// The lanes whose packets come.
    pub(super) fn own(&self) -> Range<usize> {
        self.part.map_or(0..self.lanes, |part| part.lane..part.lane + 1)
    }

    /// The lanes among which the flows are divided.
    pub(super) fn among(&self) -> usize {
        self.part.map_or(self.lanes, |part| part.of)
    }

    /// The same row on lanes that own all shards together, if it has several lanes and flows in shards.
    pub fn with_joint_shards(self) -> Option<Spec> {
        let load = Load { joint_shards: true, ..self.load };
        (self.lanes > 1 && self.chain.owns_flows()).then_some(Spec { load, ..self })
    }

    /// The same row with lanes that measure this, and packets that are stamped when they arrive.
    pub(super) fn measuring(self, measuring: Measuring) -> Spec {
        Spec { measuring: Some(measuring), ..self }
    }

    /// How many lanes own the shards of each together.
    pub(super) fn claimants(&self) -> usize {
        if self.load.joint_shards && self.chain.owns_flows() { self.lanes } else { 1 }
    }

    /// The arguments with which `rheo` measures this row.
    pub(super) fn arguments(&self) -> Vec<String> {
        let Load { flows, distribution, size, source, new_flow_share, .. } = self.load;
        let spread = match distribution {
            Distribution::Uniform => "uniform".into(),
            Distribution::Zipf(exponent) => format!("zipf-{exponent}"),
        };
        let size = match size {
            FrameSize::Smallest => "64",
            FrameSize::Tagged => "vlan",
            FrameSize::Ipv6 => "ipv6",
            FrameSize::Mix => "mix",
        };
        let options = [
            ("--chain", self.chain.name().into()),
            ("--flows", flows.to_string()),
            ("--spread", spread),
            ("--size", size.into()),
            ("--source", source.name().into()),
            ("--new", new_flow_share.to_string()),
            ("--lanes", self.lanes.to_string()),
        ];
        let config = match self.chain {
            ChainKind::Functions(FunctionChain { config: Some(config), .. }) => {
                Some(("--config", config.display().to_string()))
            }
            _ => None,
        };
        let shards = (self.shards != SHARDS).then(|| ("--shards", self.shards.to_string()));
        let part = self.part.map(|Part { lane, of }| ("--part", format!("{lane}/{of}")));
        let measured = self.measuring.map(|measuring| ("--measured", measuring.name().into()));
        let options = options.into_iter().chain(config).chain(shards).chain(part).chain(measured);
        let options = options.flat_map(|(name, value)| [name.into(), value]);
        let joint = self.load.joint_shards.then(|| "--joint".into());
        ["bench", "nf"].map(String::from).into_iter().chain(options).chain(joint).collect()
    }
}

/// The rows that a caller wants: each list crossed with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Chains.
    pub chains: Vec<ChainKind>,
    /// Numbers of flows.
    pub flows: Vec<u32>,
    /// How packets are spread over flows.
    pub distributions: Vec<Distribution>,
    /// Packet sizes.
    pub sizes: Vec<FrameSize>,
    /// Where packets come from. None are replayed where some open a flow.
    pub sources: Vec<SourceKind>,
    /// Shares of packets that open a flow.
    pub new_flow_shares: Vec<f64>,
    /// Numbers of lanes.
    pub lanes: Vec<usize>,
    /// Numbers of shards, powers of two.
    pub shards: Vec<usize>,
    /// What everything random is drawn from.
    pub seed: u64,
}

impl Selection {
    /// All rows.
    pub fn specs(&self) -> Vec<Spec> {
        let mut specs = Vec::new();
        for &lanes in &self.lanes {
            for &size in &self.sizes {
                for &new_flow_share in &self.new_flow_shares {
                    for &flows in &self.flows {
                        for &distribution in &self.distributions {
                            let kinds = (flows, distribution, size, new_flow_share);
                            specs.extend(self.of_sources(lanes, kinds));
                        }
                    }
                }
            }
        }
        specs
    }

    /// The rows of one kind of packets, from each source.
    fn of_sources(
        &self,
        lanes: usize,
        (flows, distribution, size, new_flow_share): (u32, Distribution, FrameSize, f64),
    ) -> impl Iterator<Item = Spec> {
        let opens = new_flow_share > 0.0;
        let sources = self.sources.iter().filter(move |&&s| !(opens && s == SourceKind::Replay));
        let kinds =
            sources.flat_map(|&source| self.shards.iter().map(move |&shards| (source, shards)));
        kinds.flat_map(move |(source, shards)| {
            self.chains.iter().map(move |&chain| {
                let load = Load {
                    flows,
                    distribution,
                    size,
                    servers: chain.servers(),
                    joint_shards: false,
                    source,
                    translated: chain.translates(),
                    new_flow_share,
                    seed: self.seed,
                };
                Spec { chain, load, lanes, shards, part: None, measuring: None }
            })
        })
    }

    /// Smallest packets of flows that stay, written anew, on one lane.
    fn smallest(chains: Vec<ChainKind>, flows: Vec<u32>, seed: u64) -> Selection {
        Selection {
            chains,
            flows,
            distributions: vec![Distribution::Zipf(1.1), Distribution::Uniform],
            sizes: vec![FrameSize::Smallest],
            sources: vec![SourceKind::Converse],
            new_flow_shares: vec![0.0],
            lanes: vec![1],
            shards: vec![SHARDS],
            seed,
        }
    }

    /// What shows in a few minutes where a build stands: the chains of which most is expected, on one lane and on two,
    /// conversing and replayed, with new flows and with the mix of sizes.
    pub fn usual(seed: u64, lanes: &[usize]) -> Vec<Spec> {
        use ChainKind::{
            Bridge, Empty, EmptyRss, Firewall, FirewallNat, Harness, Lb, Nat, NatSymmetric,
            Policer, Router, RouterWide,
        };
        let chains = vec![
            Harness,
            EmptyRss,
            Empty,
            Router,
            RouterWide,
            Policer,
            Firewall,
            Nat,
            NatSymmetric,
            FirewallNat,
            Lb,
            Bridge,
        ];
        let base = Selection::smallest(chains, vec![64_000], seed);
        let zipf = vec![Distribution::Zipf(1.1)];
        let few =
            Selection { chains: vec![Harness, Firewall, Nat], distributions: zipf, ..base.clone() };
        let many_flows = Selection {
            flows: vec![1_000_000],
            distributions: vec![Distribution::Uniform],
            ..few.clone()
        };
        let replayed = Selection {
            chains: vec![Harness, Empty, Firewall, Nat],
            sources: vec![SourceKind::Replay],
            ..few.clone()
        };
        let others = vec![FrameSize::Mix, FrameSize::Ipv6, FrameSize::Tagged];
        let mix = Selection { sizes: others, ..few.clone() };
        let new = Selection { new_flow_shares: vec![0.1], ..few.clone() };
        let wide = lanes.iter().copied().filter(|&lanes| lanes != 1).collect();
        let wide = Selection { lanes: wide, ..few };
        let sets = [base, many_flows, replayed, mix, new, wide];
        let wanted = |spec: &Spec| lanes.contains(&spec.lanes);
        sets.iter().flat_map(Selection::specs).filter(wanted).collect()
    }

    /// The rows for which `docs/performance.md` states aims: smallest packets on one lane for each
    /// number of flows and each distribution, then one load each with longer packets, with new flows, and on two lanes.
    pub fn full(seed: u64, lanes: &[usize]) -> Vec<Spec> {
        let zipf = Distribution::Zipf(1.1);
        let of_shards = |chain: &ChainKind| !ChainKind::SHARED.contains(chain);
        let chains = ChainKind::ALL.into_iter().filter(of_shards).collect();
        let base = Selection::smallest(chains, vec![64_000, 1_000_000, 10_000_000], seed);
        let replayed = Selection { sources: vec![SourceKind::Replay], ..base.clone() };
        let mix = Selection {
            flows: vec![64_000, 1_000_000],
            sizes: vec![FrameSize::Mix, FrameSize::Ipv6, FrameSize::Tagged],
            ..base.clone()
        };
        let new = Selection {
            chains: vec![
                ChainKind::Harness,
                ChainKind::Firewall,
                ChainKind::Nat,
                ChainKind::NatSymmetric,
                ChainKind::Lb,
            ],
            flows: vec![64_000, 1_000_000],
            distributions: vec![zipf],
            new_flow_shares: vec![0.01, 0.1],
            ..base.clone()
        };
        let wide = Selection {
            flows: vec![64_000, 1_000_000],
            lanes: lanes.iter().copied().filter(|&lanes| lanes != 1).collect(),
            ..base.clone()
        };
        // On each number of lanes, which is what they are about.
        let shared = Selection {
            chains: [&[ChainKind::Harness][..], &ChainKind::SHARED].concat(),
            flows: vec![64_000, 1_000_000],
            lanes: lanes.to_vec(),
            ..base.clone()
        };
        let sets = [base, replayed, mix, new, wide, shared];
        let wanted = |spec: &Spec| lanes.contains(&spec.lanes);
        sets.iter().flat_map(Selection::specs).filter(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_the_product_of_its_lists() {
        let selection = Selection {
            chains: ChainKind::ALL.to_vec(),
            flows: vec![64_000, 1_000_000, 10_000_000],
            distributions: vec![Distribution::Uniform, Distribution::Zipf(1.1)],
            sizes: vec![FrameSize::Smallest, FrameSize::Mix],
            sources: vec![SourceKind::Converse, SourceKind::Replay],
            new_flow_shares: vec![0.0, 0.01, 0.1],
            lanes: vec![1, 2],
            shards: vec![SHARDS],
            seed: 1,
        };
        let specs = selection.specs();
        let chains = ChainKind::ALL.len();
        // With new flows, only one source.
        assert_eq!(specs.len(), chains * 3 * 2 * 2 * (3 + 1) * 2);
        // Chains of one load stand together, so that they share a baseline: those that see clients as
        // they are, those that translate them, those of one server, and those of stations.
        let loads: Vec<Load> = specs.iter().map(|spec| spec.load).collect();
        assert_eq!(loads.chunk_by(|a, b| a == b).count() * chains, specs.len() * 4);
    }

    #[test]
    fn the_usual_rows_keep_to_the_lanes_asked_for() {
        for rows in [Selection::usual, Selection::full] {
            assert!(rows(1, &[1]).iter().all(|spec| spec.lanes == 1));
            assert!(rows(1, &[2]).iter().all(|spec| spec.lanes == 2));
            assert!(!rows(1, &[2]).is_empty());
        }
    }
}
