//! Properties of a function that the runtime depends on.

use rheostat_steer::{PacketSet, Steering, SteeringError, Translation};

use crate::function::NetworkFunction;
use crate::replacement::Unlike;

/// Properties of a function, or of the functions of a chain together. The default is a function whose flows are named by
/// addresses, ports and protocol; others differ in some fields:
///
/// ```
/// # use rheostat_nf::FunctionSpec;
/// let spec = FunctionSpec { ends_with_run: true, ..FunctionSpec::five_tuple() };
/// ```
#[derive(Clone, Debug)]
pub struct FunctionSpec {
    /// The function's name in a trace of a packet. Empty for the name of its type.
    pub name: &'static str,
    /// The header fields that name a flow.
    pub packet_set: PacketSet,
    /// The header fields that packets may be placed by, fewer than name a flow; `None` for the same. Whatever keys a flow has,
    /// these fields must lead them to one shard.
    pub steering: Option<PacketSet>,
    /// Whether flows may have a second key (see [`Cx::alias`](crate::Cx::alias)).
    pub aliases: bool,
    /// The endpoints that the function translates, if it does. It changes a packet in nothing but its addresses and ports: when
    /// a function behind it restarts a packet's flow, the packet gets back those that it arrived with.
    pub translation: Option<Translation>,
    /// Whether the state per shard depends on which flows are alive. If so, flows whose time is up are ended before the first
    /// packet of another is presented, so that results do not depend on the scheduling of timers.
    pub depends_on_flows: bool,
    /// Whether the function, in a chain that is put together at run time ([`AnyChain::of`](crate::AnyChain::of)), keeps its flows
    /// in tables of its own, under the keys of packets as they come to it: one that has flows which other functions of the chain
    /// refuse. Costs a lookup per packet.
    pub keeps_own_flows: bool,
    /// Whether the function, in a chain that is put together at run time, decides how long flows live for all its functions: one
    /// that tracks connections. To another function, a flow ends when its own time for it is up, and the next packet is a
    /// [`first`](NetworkFunction::first) one again, while the flow lives on for the others. A flow about which no function
    /// decides ends with the last state.
    pub decides_lifetime: bool,
    /// Whether flows that are alive when the run is over are ended then. Otherwise they are left as they are, and count as alive.
    pub ends_with_run: bool,
    /// Whether the first packet of a flow, when the function has let it through and the table has no room for the flow, passes
    /// all the same; otherwise it is dropped as [`DropReason::TableFull`](rheostat_base::DropReason::TableFull). In a chain it
    /// passes only if every function lets it. The state is [`discarded`](NetworkFunction::discarded) either way.
    pub passes_without_entry: bool,
    /// The counts of the function's fast path, by name: metrics of the run, each of which the general handlers may add to as well.
    pub counts: Vec<&'static str>,
}

impl FunctionSpec {
    /// A function whose flows are named by these header fields.
    pub const fn named_by(packet_set: PacketSet) -> FunctionSpec {
        FunctionSpec {
            name: "",
            packet_set,
            steering: None,
            aliases: false,
            translation: None,
            depends_on_flows: false,
            keeps_own_flows: false,
            decides_lifetime: false,
            ends_with_run: false,
            passes_without_entry: false,
            counts: Vec::new(),
        }
    }

    /// A function whose flows are named by addresses, ports and protocol.
    pub const fn five_tuple() -> FunctionSpec {
        FunctionSpec::named_by(PacketSet::five_tuple())
    }

    /// A function without flows: every packet is one of no flow to it.
    pub const fn without_flows() -> FunctionSpec {
        FunctionSpec::named_by(PacketSet::NONE)
    }

    /// That of a function, with its name.
    pub fn of<F: NetworkFunction>(function: &F) -> FunctionSpec {
        let spec = function.spec();
        let path = std::any::type_name::<F>();
        let path = path.split('<').next().unwrap_or(path);
        let own = path.rsplit("::").next().unwrap_or(path);
        FunctionSpec { name: if spec.name.is_empty() { own } else { spec.name }, ..spec }
    }

    /// The header fields that packets may be placed by.
    pub fn steering(&self) -> PacketSet {
        self.steering.unwrap_or(self.packet_set)
    }

    /// Adapts `steering` to the functions: their sets and their translation.
    ///
    /// # Errors
    /// [`SteeringError::NothingInCommon`] when they cannot agree how to place packets.
    pub fn place(&self, steering: Steering) -> Result<Steering, SteeringError> {
        let steering = steering.with_sets(&self.packet_set, &self.steering())?;
        Ok(match &self.translation {
            Some(translation) => steering.with_translation(translation.clone()),
            None => steering,
        })
    }

    /// Whether functions with `next` can take the place of those with this one while lanes run.
    ///
    /// # Errors
    /// The first property by which they cannot.
    pub(crate) fn continued_by(&self, next: &FunctionSpec) -> Result<(), Unlike> {
        let is_same = [
            (self.packet_set == next.packet_set && self.aliases == next.aliases, Unlike::Naming),
            (self.steering() == next.steering(), Unlike::Steering),
            (self.translation == next.translation, Unlike::Steering),
            (self.keeps_own_flows == next.keeps_own_flows, Unlike::Lifetimes),
            (self.decides_lifetime == next.decides_lifetime, Unlike::Lifetimes),
            (self.counts == next.counts, Unlike::Counts),
        ];
        is_same.into_iter().find(|(is_same, _)| !is_same).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// That of these functions and the `others` behind them. One of them translates at most.
    #[must_use]
    pub fn and(&self, others: &FunctionSpec) -> FunctionSpec {
        FunctionSpec {
            name: self.name,
            packet_set: self.packet_set.finest(&others.packet_set),
            steering: Some(self.steering().common(&others.steering())),
            aliases: self.aliases || others.aliases,
            translation: self.translation.clone().or_else(|| others.translation.clone()),
            depends_on_flows: self.depends_on_flows || others.depends_on_flows,
            keeps_own_flows: self.keeps_own_flows || others.keeps_own_flows,
            decides_lifetime: self.decides_lifetime || others.decides_lifetime,
            ends_with_run: self.ends_with_run || others.ends_with_run,
            passes_without_entry: self.passes_without_entry && others.passes_without_entry,
            counts: [&self.counts[..], &others.counts].concat(),
        }
    }
}

impl Default for FunctionSpec {
    fn default() -> FunctionSpec {
        FunctionSpec::five_tuple()
    }
}
