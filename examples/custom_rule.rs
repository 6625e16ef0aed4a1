//! A rule of one's own before the firewall: new connections to plain web servers are dropped above a number per shard and second.
//!
//!     cargo run --release --example custom_rule

use rheostat::{
    Admission, Chain2, Cx, DropReason, Firewall, FirewallConfig, Harness, Mix, MixConfig,
    NetworkFunction, Outcome, Packet, Side, Stage, StateLayout, Time, Verdict,
};

/// Refuses flows from inside to TCP port 80.
struct NoPlainWeb {
    grace_per_second: u32,
}

/// What a shard keeps: whatever limits belongs to a shard, so that the outcome is the same for any
/// number of lanes.
#[derive(Default)]
struct Grace {
    second: Time,
    /// Connections in this second.
    opened: u32,
    refused: u64,
}

impl NetworkFunction for NoPlainWeb {
    type Flow = ();
    type Shard = Grace;

    fn first(&self, cx: &mut Cx<'_, Grace>, packet: &mut Packet<'_>) -> Outcome<Admission<()>> {
        let key = packet.key();
        let is_web = key.protocol() == 6 && key.second_port() == 80;
        if packet.side() == Side::Outside || !is_web {
            return Ok(Admission::Admit((), Verdict::Forward));
        }
        let now = cx.now();
        let grace = cx.shard();
        if now.since(grace.second).as_secs() > 0 {
            (grace.second, grace.opened) = (now, 0);
        }
        if grace.opened == self.grace_per_second {
            grace.refused += 1;
            return Ok(Admission::Refuse(DropReason::Denied));
        }
        grace.opened += 1;
        Ok(Admission::Admit((), Verdict::Forward))
    }

    fn packet(&self, _: &mut Cx<'_, Grace>, _: &mut Packet<'_>, (): &mut ()) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for grace_per_second in [1_000, 1, 0] {
        let mut layout = StateLayout::new();
        let rule = Stage::new(NoPlainWeb { grace_per_second }, &mut layout)?;
        let firewall = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout)?;
        let mix = Mix::new(MixConfig { packets: Some(100_000), ..Default::default() })?;
        let mut refused = 0;
        let report = Harness::new(Chain2(rule, firewall), layout)
            .run(mix, |_, (grace, _)| refused += grace.refused)?;
        let (passed, all) = (report.counters.sent, report.counters.received);
        println!("grace {grace_per_second}: {refused} refused, {passed} of {all} packets passed");
    }
    Ok(())
}
