//! Routes of the network layer, as the control socket shows them.

use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_ip::{Hop, Network};
use rheostat_steer::Prefix;
use serde::{Deserialize, Serialize};

use super::listing::{Column, ListingRow, SortKey};

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteLine {
    /// The addresses that it leads to, such as `10.0.0.0/8`.
    pub prefix: String,
    /// What becomes of packets to them.
    pub kind: RouteWord,
    /// The router that they are passed to; none where their host is on the link.
    pub next_hop: Option<IpAddr>,
    /// The device that they leave on; none for addresses of the machine.
    pub device: Option<String>,
    /// Where the route comes from.
    pub origin: RouteOrigin,
    /// The order of the listing.
    #[serde(skip)]
    order: SortKey,
}

/// What becomes of packets to a route's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteWord {
    /// They go to a router.
    Gateway,
    /// Their host is on the device's link.
    OnLink,
    /// They are for the machine itself.
    Local,
    /// The machine answers for the address on behalf of the chain, which gets its packets.
    Proxied,
    /// They are for all hosts on a link, and go no further.
    Broadcast,
}

/// Where a route comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteOrigin {
    /// The configuration.
    Configured,
    /// The kernel, whose routes are followed.
    Kernel,
    /// The addresses of a device.
    Interface,
}

impl RouteWord {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            RouteWord::Gateway => "gateway",
            RouteWord::OnLink => "on_link",
            RouteWord::Local => "local",
            RouteWord::Proxied => "proxied",
            RouteWord::Broadcast => "broadcast",
        }
    }
}

impl RouteOrigin {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            RouteOrigin::Configured => "configured",
            RouteOrigin::Kernel => "kernel",
            RouteOrigin::Interface => "interface",
        }
    }
}

impl RouteLine {
    /// The routes of a network; `devices` are the names of the run's, and `is_followed` states of a given prefix whether it is the
    /// kernel's.
    pub fn of(
        network: &Network,
        devices: &[String],
        is_followed: impl Fn(&Prefix) -> bool,
    ) -> Vec<RouteLine> {
        let routes = network.routes();
        let own: Vec<Prefix> = network
            .interfaces()
            .iter()
            .flat_map(|interface| interface.addresses.iter().map(|address| address.prefix()))
            .collect();
        let given = |prefix: &Prefix| match is_followed(prefix) {
            true => RouteOrigin::Kernel,
            false => RouteOrigin::Configured,
        };
        let name = |device: DeviceId| {
            devices.get(device.index()).cloned().unwrap_or_else(|| device.to_string())
        };
        let line = |(prefix, hop): (Prefix, Hop)| {
            let (kind, next_hop, device, origin) = match hop {
                Hop::None => return None,
                Hop::Local { .. } => (RouteWord::Local, None, None, RouteOrigin::Interface),
                Hop::Proxied => (RouteWord::Proxied, None, None, RouteOrigin::Interface),
                Hop::Broadcast => (RouteWord::Broadcast, None, None, RouteOrigin::Interface),
                Hop::OnLink(device) => {
                    let is_own = own.contains(&prefix);
                    let origin = if is_own { RouteOrigin::Interface } else { given(&prefix) };
                    (RouteWord::OnLink, None, Some(name(device)), origin)
                }
                Hop::Gateway(device, router) => {
                    (RouteWord::Gateway, Some(router), Some(name(device)), given(&prefix))
                }
            };
            let order = SortKey::address(prefix.address()).and(SortKey::number(prefix.length()));
            Some(RouteLine { prefix: prefix.to_string(), kind, next_hop, device, origin, order })
        };
        routes.ways().filter_map(line).collect()
    }
}

impl ListingRow for RouteLine {
    const COLUMNS: &'static [Column<RouteLine>] = &[
        Column::left("prefix", |line| line.prefix.clone(), |line| line.order.clone()),
        Column::left(
            "kind",
            |line| line.kind.name().to_owned(),
            |line| SortKey::text(line.kind.name()),
        ),
        Column::left(
            "next_hop",
            |line| line.next_hop.map_or_else(|| "-".to_owned(), |router| router.to_string()),
            |line| line.next_hop.map_or_else(SortKey::none, SortKey::address),
        ),
        Column::left(
            "device",
            |line| line.device.clone().unwrap_or_else(|| "-".to_owned()),
            |line| line.device.as_deref().map_or_else(SortKey::none, SortKey::text),
        ),
        Column::left(
            "origin",
            |line| line.origin.name().to_owned(),
            |line| SortKey::text(line.origin.name()),
        ),
    ];

    fn id(&self) -> SortKey {
        self.order.clone()
    }
}
