//! A function on shared objects: all flows of a host together may send so many packets, on however many
//! lanes they are.
//!
//!     cargo run --release --example shared_quota

use std::net::IpAddr;
use std::sync::Arc;

use rheostat::{
    Cx, DropReason, Harness, Map, Mix, MixConfig, NetworkFunction, Objects, Outcome, Packet, Stage,
    StateLayout, Verdict,
};

/// Lets each host inside send so many packets.
struct HostQuota {
    packets: u64,
    /// Packets each host has sent. No shard could keep it: a host's flows lie in many.
    sent: Arc<Map<[u8; 16], u64>>,
}

impl HostQuota {
    fn count(&self, cx: &mut Cx<'_, ()>, packet: &Packet<'_>) -> Outcome<Verdict> {
        if !packet.is_forward() {
            return Ok(Verdict::Forward);
        }
        let host = match packet.key().first() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        // Read here, written there, as if no other lane existed. If one was in the way, `?` leaves, the
        // runtime undoes everything, and calls again.
        let sent = self.sent.get(cx, &host)?.unwrap_or(0);
        if sent == self.packets {
            return Ok(Verdict::Drop(DropReason::QuotaExceeded));
        }
        // Hosts for which there is no room are not held to anything.
        let _ = self.sent.set(cx, host, sent + 1)?;
        Ok(Verdict::Forward)
    }
}

impl NetworkFunction for HostQuota {
    type Flow = ();
    type Shard = ();

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        self.count(cx, packet)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let objects = Objects::new(2);
    let sent = Arc::new(Map::new(&objects, "packets by host", 65_536));
    let quota = HostQuota { packets: 20, sent: sent.clone() };
    let mut layout = StateLayout::new();
    let chain = Stage::on_objects(quota, &objects, &mut layout)?;
    let mix = Mix::new(MixConfig { packets: Some(200_000), flows: 5_000, ..Default::default() })?;
    let report = Harness { lanes: 2, ..Harness::new(chain, layout) }.run(mix, |_, ()| {})?;
    let dropped = report.counters.dropped[DropReason::QuotaExceeded as usize];
    println!("{} hosts, {dropped} packets beyond their quotas", sent.count());
    println!("{:?}", objects.profile().total());
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    Ok(())
}
