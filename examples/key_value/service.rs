//! The store: what each client has set, and the answers.
//!
//! Keys belong to the client's endpoint, so a shard has all that its clients may request, and no other
//! lane touches it. The digest of a value takes a while, so a pool computes it. A request that needs none waits
//! behind those that do: its answer may depend on theirs.

use std::collections::HashMap;

use rheostat::service::{
    AnyPoolClient, Batch, DeferredWork, HandoffPacket, Output, PacketClient, PacketKind, Reply,
    Service, ShardSet,
};
use rheostat::service::{
    Ethernet, FrameBuilder, LinkType, Payload, Transport, Validity, evaluate_packet,
};
use rheostat::wire::{EthernetFrame, UdpDatagram, protocol, udp};
use rheostat::{DropReason, FlowKey};

use super::request::{Command, Refusal, Request};

/// Where the service listens.
pub(crate) const PORT: u16 = 7_411;
/// Keys in a shard at most.
const MOST_KEYS: usize = 10_000;

/// What a shard remembers: by client and key, the digest and the value.
pub(crate) type Store = HashMap<(FlowKey, String), (u64, String)>;

/// What the client gives back: a request with the digest of its value, or why it is none.
pub(crate) type Work = Result<(Request, u64), Refusal>;

/// What a member of the pool does.
pub(crate) fn work(request: Request) -> Work {
    let digest = match &request.command {
        Command::Set(value) => digest(value),
        Command::Get | Command::Delete => 0,
    };
    Ok((request, digest))
}

/// FNV-1a over a value, again and again: the longer the value, the more often.
pub(crate) fn digest(value: &str) -> u64 {
    let again = value.len().pow(2) / 8 + 1;
    let bytes = (0..again).flat_map(|_| value.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Does what `client` asks, and says what came of it.
fn carry_out(store: &mut Store, client: FlowKey, request: Request, digest: u64) -> String {
    let Request { number, key, command } = request;
    let key = (client, key);
    match command {
        Command::Set(_) if store.len() >= MOST_KEYS && !store.contains_key(&key) => {
            format!("{number} ERROR the store is full: delete something")
        }
        Command::Set(value) => {
            store.insert(key, (digest, value));
            format!("{number} STORED {digest:016x}")
        }
        Command::Get => match store.get(&key) {
            Some((digest, value)) => format!("{number} VALUE {digest:016x} {value}"),
            None => format!("{number} NONE"),
        },
        Command::Delete => match store.remove(&key) {
            Some(_) => format!("{number} DELETED"),
            None => format!("{number} NONE"),
        },
    }
}

/// The service of one lane.
pub(crate) struct KeyValue {
    pub(crate) client: PacketClient<Request, Work>,
}

impl Service for KeyValue {
    fn process(&mut self, batch: &mut Batch, _: &mut ShardSet, out: &mut Output) {
        for (packet, &info) in batch.drain() {
            let placed = HandoffPacket { packet, info };
            let request = data(&placed).map(Request::parse);
            let (refused, reason) = match request {
                Err(reason) => (Some(placed), reason),
                Ok(Ok(request @ Request { command: Command::Set(_), .. })) => {
                    (self.client.submit(placed, request), DropReason::PoolFull)
                }
                Ok(other) => {
                    let reply = other.map(|request| (request, 0));
                    (self.client.complete(placed, reply), DropReason::PoolFull)
                }
            };
            if let Some(HandoffPacket { packet, .. }) = refused {
                out.drop(packet, reason);
            }
        }
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        Some(self)
    }
}

impl DeferredWork for KeyValue {
    fn pool_client(&mut self) -> Option<&mut dyn AnyPoolClient> {
        Some(&mut self.client)
    }

    fn settle(&mut self, shards: &mut ShardSet, out: &mut Output) {
        while let Some(Reply { placed, outcome }) = self.client.next_reply() {
            let HandoffPacket { packet, info } = &placed;
            let text = match outcome {
                Ok(Ok((request, digest))) => {
                    let shard = shards.get_mut(info.shard).expect("a reply meets its shard");
                    carry_out(shard.split().1, info.key(), request, digest)
                }
                Ok(Err(refusal)) => refusal.to_string(),
                Err(_lost) => {
                    let reason = DropReason::HandlerAbort;
                    out.drop(placed.packet, reason);
                    continue;
                }
            };
            let answer = answer(&placed, &text);
            let (device, link) = (packet.device(), packet.link());
            // First the buffer of the request, which the answer can have.
            out.consume(placed.packet);
            if let Some(mut packet) = out.originate(&answer) {
                packet.set_link(link);
                out.send(device, packet);
            }
        }
    }
}

/// The data of a datagram to the service.
fn data(HandoffPacket { packet, info }: &HandoffPacket) -> Result<&[u8], DropReason> {
    let headers = &info.headers;
    let is_whole = info.kind() == PacketKind::Flow && headers.fragment.is_none();
    let is_tagged = headers.zone != 0;
    if !is_whole || is_tagged || headers.protocol != protocol::UDP || packet.is_chained() {
        return Err(DropReason::NoListener);
    }
    if evaluate_packet(packet, headers).is_none_or(|validity| validity == Validity::Invalid) {
        return Err(DropReason::Malformed);
    }
    let transport = packet.data().get(headers.l4.into()..).ok_or(DropReason::Malformed)?;
    let datagram = UdpDatagram::new(transport).map_err(|_| DropReason::Malformed)?;
    if datagram.destination_port() != PORT {
        return Err(DropReason::NoListener);
    }
    transport.get(udp::HEADER..datagram.stated_len().into()).ok_or(DropReason::Malformed)
}

/// The frame that answers a request.
fn answer(HandoffPacket { packet, info }: &HandoffPacket, text: &str) -> Vec<u8> {
    let (key, forward) = (info.key(), info.forward());
    let key = if forward { key.reversed() } else { key };
    let udp = Transport::Udp { ports: (key.first_port(), key.second_port()) };
    let frame = FrameBuilder::new(key.first(), key.second(), udp, Payload::Bytes(text.as_bytes()));
    match EthernetFrame::new(packet.data()) {
        Ok(link) if packet.link() == LinkType::Ethernet => {
            let (source, destination) = (link.destination(), link.source());
            frame.with_ethernet(Ethernet { source, destination, vlan: None }).to_vec()
        }
        _ => frame.to_vec(),
    }
}
