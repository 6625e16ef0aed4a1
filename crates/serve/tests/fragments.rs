//! Segments that arrive in fragments.

use std::time::Duration;

use rheostat_base::DropReason;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{Headers, LinkType, tuple};
use rheostat_serve::echo::Echo;

use crate::rig::{Client, LOCAL_V4, LOCAL_V6, MAC, Plan, Rig};

const SECOND: Duration = Duration::from_secs(1);

/// The fragments of a frame, each with so many bytes of data.
fn cut(frame: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).expect("IP");
    let hosts = tuple::addresses(frame, &headers).expect("IP");
    let transport = &frame[usize::from(headers.l4)..headers.end as usize];
    let protocol = Transport::Protocol(headers.protocol);
    let parts = transport.chunks(size).enumerate().map(|(n, part)| {
        let whole =
            FrameBuilder::new(hosts.first(), hosts.second(), protocol, Payload::Bytes(part));
        let more = (n + 1) * size < transport.len();
        let link = Ethernet { source: [2, 0, 0, 0, 0, 2], destination: MAC, vlan: None };
        FrameBuilder { id, fragment: Some(((n * size) as u16, more)), ..whole }
            .with_ethernet(link)
            .to_vec()
    });
    parts.collect()
}

#[test]
fn a_stream_whose_segments_arrive_in_fragments_is_whole() {
    for (server, peer) in [(LOCAL_V4, "10.0.0.2"), (LOCAL_V6, "fd00::2")] {
        let mut rig = Rig::new(Echo, Plan { lanes: 3, ..Plan::default() });
        let now = rig.now;
        let mut client = Client::connect(server, peer, 1_000, None, now);
        client.outgoing = (0..100_000).map(|at| (at / 3) as u8).collect();
        let (sent, mut id) = (client.outgoing.clone(), 0);
        let mut clients = [client];
        let end = rig.now + 20 * SECOND;
        while clients[0].received.len() < sent.len() {
            assert!(rig.now < end, "{} bytes came back", clients[0].received.len());
            clients[0].tick(rig.now);
            while let Some(frame) = clients[0].poll_frame(rig.now) {
                id += 1;
                // The last first, and each by another queue.
                for (n, part) in cut(&frame, id, 496).into_iter().rev().enumerate() {
                    rig.inject(part, n);
                }
            }
            rig.step(&mut clients);
        }
        assert!(clients[0].received == sent);
        assert_eq!(rig.control.totals().retransmitted, 0);
        let dropped: u64 = rig.sample().dropped.iter().sum();
        assert_eq!(dropped, 0);
        rig.finish();
    }
}

#[test]
fn a_segment_in_fragments_whose_checksum_is_wrong_is_counted_as_such() {
    let mut rig = Rig::new(Echo, Plan::default());
    let mut client = rig.connect(1_000);
    let now = rig.now;
    let mut syn = client.poll_frame(now).expect("a SYN");
    syn[50] ^= 1;
    cut(&syn, 1, 16).into_iter().for_each(|part| rig.inject(part, 0));
    rig.step(&mut []);
    assert_eq!(rig.sample().dropped[DropReason::TcpChecksum as usize], 1);
    rig.finish();
}
