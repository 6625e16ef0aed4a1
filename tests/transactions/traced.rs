//! Packets that are traced have transactions of their own, so that what is noted about one is of that one: also behind addresses.

use std::sync::{Arc, Mutex};

use rheostat::{
    Cx, FunctionSpec, NetworkFunction, Objects, Outcome, Packet, Stage, StateLayout, Verdict,
};
use rheostat_base::{DeviceId, LaneId, ShardId, Time};
use rheostat_io::TxQueue;
use rheostat_ip::{Interface, Network, Policy, Route};
use rheostat_nf::AnyChain;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_packet::{Burst, Headers, LinkType, Mempool, MempoolConfig, PoolCache};
use rheostat_run::{
    Batch, HandoffPacket, Metrics, MetricsPart, Output, PacketInfo, PacketKind, Placement, Routes,
    ShardSet,
};
use rheostat_state::{FlowHasher, FragmentConfig, TableConfig};
use rheostat_steer::{HashKey, Orientation, Steering};

/// Lets everything through.
struct Pass;

impl NetworkFunction for Pass {
    type Flow = ();
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::without_flows()
    }

    fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, (): &mut ()) -> Outcome<Verdict> {
        unreachable!("without a packet set there are no flows")
    }

    fn non_flow(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Verdict> {
        Ok(Verdict::Forward)
    }
}

/// Notes the lengths of what is sent.
struct Lengths(Arc<Mutex<Vec<usize>>>);

impl TxQueue for Lengths {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let count = burst.len();
        for packet in burst.drain(..) {
            self.0.lock().unwrap().push(packet.len());
            pool.free(packet);
        }
        count
    }
}

/// The link address of the machine.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A router with a gateway to everywhere.
fn network() -> Network {
    let interface = Interface {
        addresses: vec!["203.0.113.1/24".parse().unwrap()],
        is_played: true,
        ..Interface::new(DeviceId(0), "lan", MAC)
    };
    let gateway = "203.0.113.254".parse().unwrap();
    let default = Route::via("0.0.0.0/0".parse().unwrap(), gateway);
    let policy = Policy { announce: false, ..Policy::default() };
    let network = Network::new(vec![interface], &[default], policy).unwrap();
    network.set_neighbour(DeviceId(0), gateway, [2, 0, 0, 0, 0, 9]);
    network
}

/// A datagram of so many bytes.
fn frame(payload: usize) -> Vec<u8> {
    let link = Ethernet { source: [2, 0, 0, 0, 0, 7], destination: MAC, vlan: None };
    let ends = ["203.0.113.7", "198.51.100.1"].map(|address| address.parse().unwrap());
    let udp = Transport::Udp { ports: (4_000, 53) };
    let builder = FrameBuilder::new(ends[0], ends[1], udp, Payload::Pattern(payload));
    FrameBuilder { ethernet: Some(link), ..builder }.to_vec()
}

/// Runs a batch of packets, of which those with a mark are traced: how many transactions that takes, and the lengths of what has
/// left.
fn run(marks: &[u8], network: Option<Network>) -> (u64, Vec<usize>) {
    let (objects, mut layout) = (Objects::new(1), StateLayout::new());
    let chain = AnyChain::new(Stage::on_objects(Pass, &objects, &mut layout).unwrap(), layout);
    let orientations = vec![Orientation::Inside];
    let steering = Steering::new(&HashKey::MICROSOFT, 16, 1, orientations).unwrap();
    let steering = Arc::new(chain.steering_for(steering).unwrap());
    let table = TableConfig { capacity: 8, aliases: false };
    let (hasher, fragments) = (FlowHasher::fixed(), FragmentConfig::default());
    let made = chain.make_shards(&steering, table, hasher, fragments, 1);
    let mut shards = ShardSet::new(1);
    made.unwrap().into_iter().for_each(|shard| shards.install(shard));

    let pool = MempoolConfig { buffers: 64, ..MempoolConfig::default() };
    let pool = PoolCache::new(Mempool::new(&pool).unwrap());
    let sent = Arc::new(Mutex::new(Vec::new()));
    let queue: Box<dyn TxQueue> = Box::new(Lengths(sent.clone()));
    let mut out = Output::new(LaneId(0), vec![queue], pool);
    let mut batch = Batch::default();
    for (payload, mark) in (20..).zip(marks) {
        let bytes = frame(payload);
        let mut packet = out.pool().alloc_from(&bytes).unwrap();
        packet.set_link(LinkType::Ethernet);
        packet.set_mark(*mark);
        let headers = Headers::parse_bytes(&bytes, bytes.len(), LinkType::Ethernet).unwrap();
        let placement =
            Placement { shard: ShardId(0), kind: PacketKind::NonFlow, ..Placement::NONE };
        let info = PacketInfo::of(headers, Time::from_secs(1), &placement);
        batch.push(HandoffPacket { packet, info });
    }
    let routes = Routes(vec![DeviceId(0)]);
    let mut service = chain.service(LaneId(0), &routes, network.map(Arc::new).as_ref());
    service.process(&mut batch, &mut shards, &mut out);
    out.flush();
    let mut metrics = Metrics::default();
    service.metrics(MetricsPart::Shared, &mut metrics);
    out.finish();
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    (metrics.get("transactions"), sent)
}

#[test]
fn a_traced_packet_has_a_transaction_of_its_own() {
    for marks in [&[0; 6][..], &[0, 0, 1, 2, 0, 0], &[3, 0, 0, 0, 0, 4], &[5, 6, 7, 8, 9, 10]] {
        // One for each packet that is traced, and for all others in a row.
        let is_traced = |mark: &u8| *mark != 0;
        let rows = marks.chunk_by(|one, other| !is_traced(one) && !is_traced(other));
        let lengths: Vec<_> = (0..marks.len()).map(|packet| frame(20 + packet).len()).collect();
        let expected = (rows.count() as u64, lengths);
        assert_eq!(run(marks, None), expected, "{marks:?}");
        assert_eq!(run(marks, Some(network())), expected, "{marks:?}, behind addresses");
    }
}
