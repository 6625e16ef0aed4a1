//! Limits the connections that each host opens in a time, over all lanes together.

use std::net::IpAddr;
use std::time::Duration;

use rheostat::serde::Deserialize;
use rheostat::{
    BuildCx, BuildError, Cx, Distributed, FromSettings, FunctionSpec, Map, Metrics,
    NetworkFunction, Outcome, OwnDropReason, Packet, Side, Time, Verdict, settings,
};

static TOO_MANY: OwnDropReason = OwnDropReason::new(
    "synlimit.too_many",
    "The host has opened as many TCP connections as it may in this time.",
);
static NO_ROOM: OwnDropReason =
    OwnDropReason::new("synlimit.no_room", "There are more hosts than the function has room for.");

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(crate = "rheostat::serde", rename_all = "lowercase")]
enum Per {
    Inside,
    Outside,
}

/// `[function.synlimit]`
#[derive(Debug, Deserialize)]
#[serde(crate = "rheostat::serde")]
pub struct Settings {
    /// Connections that a host may open in each window.
    connections: u64,
    #[serde(deserialize_with = "settings::duration")]
    window: Duration,
    /// The hosts that are counted.
    #[serde(default = "inside")]
    per: Per,
    #[serde(default = "many", deserialize_with = "settings::count")]
    hosts: u64,
}

fn inside() -> Per {
    Per::Inside
}

fn many() -> u64 {
    65_536
}

/// Limits the connections that each host opens in a time.
pub struct SynLimit {
    connections: u64,
    window: Duration,
    from: Side,
    /// By the octets of a host's address: when its window ends, in nanoseconds, and connections opened in it.
    hosts: Map<[u8; 16], [u64; 2]>,
    /// Connections opened and refused.
    counts: Distributed<[u64; 2]>,
}

impl NetworkFunction for SynLimit {
    type Flow = ();
    type Shard = ();

    /// All that is known of hosts is in an object that lanes share.
    fn spec(&self) -> FunctionSpec {
        FunctionSpec::without_flows()
    }

    fn packet(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
        self.non_flow(cx, packet)
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let opens = packet.tcp().is_some_and(|tcp| tcp.flags().opens());
        if packet.side() != self.from || !opens {
            return Ok(Verdict::Forward);
        }
        let Some(ends) = packet.addresses() else { return Ok(Verdict::Forward) };
        let host = match ends.first() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        let [ends, opened] = match self.hosts.get(cx, &host)? {
            Some([ends, opened]) if cx.now() < Time::from_nanos(ends) => [ends, opened],
            _ => [(cx.now() + self.window).as_nanos(), 0],
        };
        if opened >= self.connections {
            self.counts.update(cx, |[_, refused]| *refused += 1)?;
            return Ok(Verdict::Drop(TOO_MANY.reason()));
        }
        if self.hosts.set(cx, host, [ends, opened + 1])?.is_err() {
            return Ok(Verdict::Drop(NO_ROOM.reason()));
        }
        self.counts.update(cx, |[opened, _]| *opened += 1)?;
        Ok(Verdict::Forward)
    }

    fn metrics(&self, (): &(), metrics: &mut Metrics) {
        let [opened, refused] = self.counts.total();
        metrics.add("synlimit_opened", opened);
        metrics.add("synlimit_refused", refused);
    }
}

impl FromSettings for SynLimit {
    type Settings = Settings;
    const SUMMARY: &str = "limits the connections that each host opens";
    const DROP_REASONS: &[&OwnDropReason] = &[&TOO_MANY, &NO_ROOM];

    fn from_settings(settings: &Settings, cx: &BuildCx<'_>) -> Result<SynLimit, BuildError> {
        let Settings { connections, window, per, hosts } = *settings;
        let add = |sum: &mut [u64; 2], share: &[u64; 2]| {
            sum.iter_mut().zip(share).for_each(|(sum, share)| *sum += share);
        };
        Ok(SynLimit {
            connections,
            window,
            from: match per {
                Per::Inside => Side::Inside,
                Per::Outside => Side::Outside,
            },
            hosts: Map::new(cx.objects, "synlimit hosts", usize::try_from(hosts)?),
            counts: Distributed::new(cx.objects, "synlimit counts", [0; 2], add, Duration::ZERO),
        })
    }
}
