//! Kernel busy polling, which virtual Ethernet pairs do not offer.
//!
//! Timed: devices.

use rheostat_io::{XdpConfig, XdpDevice};
use rheostat_kernel::napis;

use super::rig::{Rig, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell};

#[test]
fn a_driver_that_links_no_queue_with_its_instances_is_refused_and_left_as_it_was() {
    let name = "a_driver_that_links_no_queue_with_its_instances_is_refused_and_left_as_it_was";
    isolated(module_path!(), name, || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 1_500);
        shell("ethtool -K rxdp1 gro on");
        let index = shell("cat /sys/class/net/rxdp1/ifindex").trim().parse().unwrap();
        let Ok(before) = napis(index) else {
            println!("not run: this kernel lists no NAPI instances");
            return;
        };
        let polled = XdpConfig { busy_poll: Some(64), ..config("rxdp1", 2) };
        let Err(error) = XdpDevice::open(polled, &pool) else { panic!("it was opened") };
        let said = error.to_string();
        assert!(said.contains("`busy_poll`") && said.contains("NAPI"), "{said}");
        assert_eq!(napis(index).unwrap(), before);
        let mut source = Rig::open(config("rxdp0", 1), &pool);
        let mut sink = Rig::open(config("rxdp1", 2), &pool);
        sink.expect_from(&mut source);
        sink.close();
        source.close();
        assert_eq!(pool.available(), 8_192);
    });
}
