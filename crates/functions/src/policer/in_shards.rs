//! The policer whose buckets are beside the flows of a shard: for chains with functions that know single flows, of which one
//! subscriber has many. Packets are placed by the metered address, so that all of these are in one shard.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::Metrics;
use rheostat_state::Handle;

use super::subscriber::Subscriber;
use super::{Bucket, COLOURS, LINGER, Policer, PolicerConfig};
use rheostat_nf::{
    Cx, FunctionSpec, NetworkFunction, Outcome, Packet, ShardInfo, ShardState, Verdict,
};

/// Buckets that are looked at for one that can be forgotten, when there is no room for another.
const TRIED: usize = 16;

/// The policer with buckets beside the flows of a shard.
#[derive(Debug)]
pub struct PolicerInShards {
    policer: Policer,
    /// A bucket that was not touched for so long is full, and a new one is no different.
    lifetime: Duration,
}

/// What the policer keeps in each shard.
#[derive(Debug)]
pub struct Buckets {
    held: HashMap<Subscriber, Bucket>,
    /// Those that have a bucket, each once, with a time at which it was touched.
    touched: VecDeque<(Time, Subscriber)>,
    capacity: usize,
    /// Packets that were metered, by their colour.
    packets: [u64; 3],
}

impl ShardState<PolicerInShards> for Buckets {
    fn of(function: &PolicerInShards, shard: ShardInfo, _: Handle<()>) -> Buckets {
        Buckets {
            held: HashMap::new(),
            touched: VecDeque::new(),
            capacity: function.policer.config.subscribers.div_ceil(shard.shards),
            packets: [0; 3],
        }
    }

    fn follow(&mut self, function: &PolicerInShards, shard: &ShardInfo) {
        self.capacity = function.policer.config.subscribers.div_ceil(shard.shards);
    }
}

impl Buckets {
    /// Makes room for another bucket. Returns whether there is room.
    fn make_room(&mut self, now: Time, lifetime: Duration) -> bool {
        for _ in 0..TRIED {
            if self.held.len() < self.capacity {
                return true;
            }
            let Some((_, subscriber)) = self.touched.pop_front() else { return false };
            let last = self.held.get(&subscriber).map_or(Time::ZERO, Bucket::counted);
            if last + lifetime <= now {
                self.held.remove(&subscriber);
            } else {
                self.touched.push_back((last, subscriber));
            }
        }
        self.held.len() < self.capacity
    }

    /// Forgets buckets that are full, a bounded number of them.
    fn reclaim(&mut self, now: Time, lifetime: Duration) {
        for _ in 0..TRIED {
            let Some((touched, _)) = self.touched.front() else { return };
            if *touched + lifetime > now {
                return;
            }
            let Some((_, subscriber)) = self.touched.pop_front() else { return };
            let last = self.held.get(&subscriber).map_or(Time::ZERO, Bucket::counted);
            if last + lifetime <= now {
                self.held.remove(&subscriber);
            } else {
                self.touched.push_back((last, subscriber));
            }
        }
    }
}

impl PolicerInShards {
    /// A policer with these settings.
    pub fn new(config: PolicerConfig) -> PolicerInShards {
        let lifetime = config.classes.slowest() + LINGER;
        PolicerInShards { policer: Policer::new(config), lifetime }
    }
}

impl NetworkFunction for PolicerInShards {
    type Flow = ();
    type Shard = Buckets;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec {
            name: "Policer",
            steering: Some(self.policer.spec().packet_set),
            ..FunctionSpec::without_flows()
        }
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, Buckets>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        self.non_flow(cx, packet)
    }

    fn non_flow(&self, cx: &mut Cx<'_, Buckets>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        let (subscriber, meter) = match self.policer.metered(packet) {
            Ok(metered) => metered,
            Err(verdict) => return Ok(verdict),
        };
        let (now, before) = (cx.now(), self.policer.colour_before(packet));
        let (buckets, bytes) = (cx.shard(), self.policer.bytes(packet));
        // One search of the map for a bucket that is there.
        let colour = match buckets.held.get_mut(&subscriber) {
            Some(bucket) => {
                // Another meter may have filled it.
                meter.adapt(bucket);
                meter.colour(bucket, now, bytes, before)
            }
            None => {
                if !buckets.make_room(now, self.lifetime) {
                    return Ok(self.policer.without_room());
                }
                let mut bucket = meter.full(now);
                let colour = meter.colour(&mut bucket, now, bytes, before);
                buckets.held.insert(subscriber, bucket);
                buckets.touched.push_back((now, subscriber));
                colour
            }
        };
        buckets.packets[colour as usize] += 1;
        Ok(self.policer.apply(packet, colour))
    }

    fn periodic(&self, cx: &mut Cx<'_, Buckets>) -> Outcome<()> {
        let now = cx.now();
        cx.shard().reclaim(now, self.lifetime);
        Ok(())
    }

    fn metrics(&self, local: &Buckets, metrics: &mut Metrics) {
        for (name, packets) in COLOURS.into_iter().zip(local.packets) {
            metrics.add(name, packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rheostat_packet::FlowKey;
    use rheostat_steer::{Side, Whose};

    use super::super::{Burst, Meter, Rate, Subject};
    use super::*;

    #[test]
    fn a_shard_holds_so_many_buckets_until_one_of_them_is_full() {
        let subject = Subject { whose: Whose::Inner, v4: 32, v6: 64 };
        let subscriber = |last: u8| {
            let (host, peer) = (Ipv4Addr::new(10, 0, 0, last), Ipv4Addr::new(192, 0, 2, 1));
            subject.of(Side::Inside, &FlowKey::v4((host, 0), (peer, 0), 17, 0)).1
        };
        let meter = Meter::plain(Rate::new(8_000).unwrap(), Burst::new(1_500).unwrap()).unwrap();
        let (held, touched, lifetime) = (HashMap::new(), VecDeque::new(), Duration::from_secs(2));
        let mut buckets = Buckets { held, touched, capacity: 2, packets: [0; 3] };
        let mut enter = |last, seconds| {
            let now = Time::ZERO + Duration::from_secs(seconds);
            let has_room = buckets.make_room(now, lifetime);
            if has_room {
                buckets.held.insert(subscriber(last), meter.full(now));
                buckets.touched.push_back((now, subscriber(last)));
            }
            (has_room, buckets.held.len())
        };
        assert_eq!(enter(1, 10), (true, 1));
        assert_eq!(enter(2, 11), (true, 2));
        assert_eq!(enter(3, 11), (false, 2));
        assert_eq!(enter(3, 12), (true, 2), "the first is full by now");
        assert_eq!(enter(1, 12), (false, 2));
    }
}
