//! Packets that do not fit into one buffer, to and from sockets of the kernel.
//!
//! Timed: processes, devices, sockets.

use std::net::UdpSocket;
use std::time::Duration;

use rheostat_packet::Burst;

use super::rig::{Rig, config, pool, veth};
use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::numbered::{HEADERS, udp};

#[test]
fn nine_thousand_bytes_both_ways() {
    isolated(module_path!(), "nine_thousand_bytes_both_ways", || {
        let pool = pool(8_192);
        veth("rxdp0", "rxdp1", 1, 9_000);
        shell(
            "ip link set rxdp0 address 02:00:00:00:00:02
             ip addr add 10.9.0.2/24 dev rxdp0
             ip neigh add 10.9.0.1 lladdr 02:00:00:00:00:01 dev rxdp0",
        );
        let mut rig = Rig::open(config("rxdp1", 2), &pool);
        let notes = rig.monitor().notes();
        assert!(notes[0].contains("long packets in several buffers"), "{notes:?}");
        let kernel = UdpSocket::bind("10.9.0.2:5000").unwrap();
        kernel.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        for (round, len) in [8, 1_700, 1_792, 3_000, 8_000, 8_971, 8_972].into_iter().enumerate() {
            let payload: Vec<u8> = (0..len).map(|i: usize| (i * 31 + round) as u8).collect();
            kernel.send_to(&payload, "10.9.0.1:9999").unwrap();
            let arrived = rig.collect(1);
            assert_eq!(arrived.len(), 1, "{len}: {:?}", rig.monitor().counters());
            let mut burst = Burst::new();
            for (_, mut packet) in arrived {
                let bytes = packet.to_vec();
                assert_eq!(bytes.len(), HEADERS + len);
                assert_eq!(bytes[HEADERS..], payload);
                assert_eq!(packet.is_chained(), bytes.len() > 1_792);
                assert_eq!(packet.wire_len() as usize, bytes.len());
                // Back as it came, but for the headers: a chain of buffers as the kernel made it.
                let (from, to) = (([10, 9, 0, 1], 9_999), ([10, 9, 0, 2], 5_000));
                let header = udp([2, 0, 0, 0, 0, 2], from, to, &payload);
                packet.data_mut()[..HEADERS].copy_from_slice(&header[..HEADERS]);
                burst.push(packet);
            }
            rig.send_all(0, &mut burst);
            let mut heard = vec![0; 9_100];
            let (count, from) = kernel.recv_from(&mut heard).unwrap();
            assert_eq!((&heard[..count], from.port()), (&payload[..], 9_999));
        }
        assert_eq!(rig.monitor().counters().copied, 0);
        rig.close();
        assert_eq!(pool.available(), 8_192);
    });
}
