//! Offloads that lose packets.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use rheostat_testkit::namespace::{isolated, shell};

use super::instance::Instance;
use super::place::{Place, pairs};

#[test]
fn lossy_offloads_of_a_peer_are_told_at_the_start() {
    isolated(module_path!(), "lossy_offloads_of_a_peer_are_told_at_the_start", || {
        pairs();
        shell("for i in va vb vc; do ethtool -K $i tx off tso off gso off; done");
        let place = Place::new();
        place.config("af_xdp", ["va", "vc"], "");
        let mut instance = Instance::start(place);
        instance.stop();
        let log = instance.log();
        let warned = log.lines().find(|line| line.contains("warning: device `wan`"));
        assert!(warned.is_some_and(|line| line.contains("`ethtool -K vd tx off")), "{log}");
        assert!(!log.contains("warning: device `lan`"), "{log}");
    });
}
