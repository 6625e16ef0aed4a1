//! Following a real kernel's routes, in a network namespace of the test's own.
//!
//! Timed: sleep, clock, processes, devices.

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::DeviceId;
use rheostat_control::KernelFollower;
use rheostat_ip::KnownNeighbours;
use rheostat_ip::{Hop, Interface, Network, Policy, Route};
use rheostat_testkit::namespace::{isolated, shell};

/// How long to wait for what happens at once on a machine that is not overloaded.
const TIMEOUT: Duration = Duration::from_secs(120);

fn ip(arguments: &str) -> bool {
    let run = Command::new("ip").args(arguments.split_whitespace()).output();
    run.is_ok_and(|output| output.status.success())
}

#[test]
fn routes_are_those_of_the_kernel_while_they_change() {
    isolated(module_path!(), "routes_are_those_of_the_kernel_while_they_change", inside);
}

fn inside() {
    // Routes by way of this interface are of both families.
    shell("sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0");
    for command in [
        "link add lan type veth peer name lan-peer",
        "link set lan up",
        "link set lan-peer up",
        "address add 192.0.2.1/24 dev lan",
        "address add 2001:db8::1/64 dev lan nodad",
        "route add default via 192.0.2.254",
    ] {
        assert!(ip(command), "ip {command}");
    }
    let mut lan = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
    lan.addresses = vec!["192.0.2.1/24".parse().unwrap(), "2001:db8::1/64".parse().unwrap()];
    let given = Route::via("10.9.0.0/16".parse().unwrap(), "192.0.2.9".parse().unwrap());
    let network = Arc::new(Network::new(vec![lan], &[given], Policy::default()).unwrap());
    let devices = vec![("lan".to_owned(), DeviceId(0))];
    let report = |text: &str| println!("{text}");
    let follower = KernelFollower::start(
        network.clone(),
        devices,
        vec![given],
        KnownNeighbours::Permanent,
        report,
    );
    let _follower = follower.unwrap();
    let becomes = |to: &str, gateway: Option<&str>| {
        let address: IpAddr = to.parse().unwrap();
        let expected = gateway.map(|gateway| Hop::Gateway(DeviceId(0), gateway.parse().unwrap()));
        let start = Instant::now();
        loop {
            let routes = network.routes();
            let hop = routes.hop(routes.lookup(address));
            if hop == expected.unwrap_or(Hop::None) {
                return;
            }
            assert!(start.elapsed() < TIMEOUT, "the way to {to} is {hop:?}, not {expected:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    becomes("8.8.8.8", Some("192.0.2.254"));
    becomes("10.9.0.1", Some("192.0.2.9"));
    for (command, to, gateway) in [
        ("route add 10.0.0.0/8 via 192.0.2.7", "10.1.1.1", Some("192.0.2.7")),
        ("route replace 10.0.0.0/8 via 192.0.2.8", "10.1.1.1", Some("192.0.2.8")),
        ("route add 10.9.0.0/16 via 192.0.2.8", "10.9.0.1", Some("192.0.2.9")),
        ("route add 10.0.0.0/8 via 192.0.2.7 metric 50", "10.1.1.1", Some("192.0.2.8")),
        ("route delete 10.0.0.0/8 via 192.0.2.8", "10.1.1.1", Some("192.0.2.7")),
        ("route delete 10.0.0.0/8", "10.1.1.1", Some("192.0.2.254")),
        ("route add 2001:db8:7::/48 via 2001:db8::7", "2001:db8:7::1", Some("2001:db8::7")),
        ("route delete 2001:db8:7::/48", "2001:db8:7::1", None),
        ("route delete default", "8.8.8.8", None),
    ] {
        assert!(ip(command), "ip {command}");
        becomes(to, gateway);
    }
    // Many at once, faster than they are taken maybe: whatever is lost is requested again.
    let batch: String = (0..3_000)
        .map(|n| {
            format!("route add 100.{}.{}.0/24 via 192.0.2.{}\n", 64 + n / 256, n % 256, 2 + n % 5)
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batch");
    std::fs::write(&file, batch).unwrap();
    assert!(ip(&format!("-batch {}", file.display())));
    becomes("100.75.183.1", Some("192.0.2.6"));
    becomes("100.64.0.1", Some("192.0.2.2"));
    // The interface goes down, and all its routes with it.
    assert!(ip("link set lan down"));
    becomes("100.64.0.1", None);
}
