//! Any packets through the firewall on two lanes: what leaves is what came in or what the firewall itself
//! wrote.
#![no_main]

mod lanes;

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use rheostat_nf::{AnyChain, Stage};
use rheostat_functions::Firewall;
use rheostat_functions::firewall::{Action, FirewallConfig, RuleSet, TcpOptions};
use rheostat_state::StateLayout;
use rheostat_steer::{HashKey, Steering};

/// The steering, whose tables take long to make.
fn steering() -> &'static Arc<Steering> {
    static STEERING: OnceLock<Arc<Steering>> = OnceLock::new();
    STEERING.get_or_init(|| {
        Arc::new(Steering::new(&HashKey::MICROSOFT, 128, 4, lanes::orientations()).unwrap())
    })
}

fuzz_target!(|input: (bool, Vec<(u16, Vec<u8>)>)| {
    let (pickup, frames) = input;
    if !lanes::is_small(&frames) {
        return;
    }
    let tcp = TcpOptions { pickup, ..TcpOptions::default() };
    // What comes from outside unasked is answered: the way that writes packets is taken, too.
    let rules = RuleSet { default_outside: Action::Reject, ..RuleSet::default() };
    let config = FirewallConfig { rules, tcp, ..FirewallConfig::default() };
    let mut layout = StateLayout::new();
    let firewall = Stage::new(Firewall::new(config), &mut layout).unwrap();
    let chain = AnyChain::new(firewall, layout);
    let (left, counted) = lanes::run(&chain, steering(), &frames);
    let came_in = |bytes: &Vec<u8>| frames.iter().any(|(_, frame)| frame == bytes);
    let written = left.iter().filter(|packet| !came_in(&packet.bytes)).count() as u64;
    let originated = counted.originated;
    assert!(written <= originated, "{written} packets were changed or made, {originated} counted");
});
