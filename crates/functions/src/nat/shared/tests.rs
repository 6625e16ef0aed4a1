//! What two lanes do to each other, step by step, on one thread.

use std::net::Ipv4Addr;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rheostat_base::{LaneId, Time};
use rheostat_state::object::{Cause, Recipe};
use rheostat_state::txn::{Objects, Txn};

use super::*;

const SERVER: Endpoint = (Ipv4Addr::new(198, 51, 100, 1), 53);

/// Two lanes, and a NAT whose external addresses have two even ports each.
struct World {
    nat: SharedNat,
    objects: Objects,
    lanes: [Txn; 2],
}

impl World {
    fn new(addresses: u8) -> World {
        // With most other seeds, too, names of flows fall into different buckets.
        let objects = Objects::seeded(2, 1);
        let config = NatConfig {
            ports: 1_024..=1_027,
            ..NatConfig::new((1..=addresses).map(|n| Ipv4Addr::new(203, 0, 113, n)).collect())
        };
        let sharing = Sharing { flows: 64, ..Sharing::default() };
        let mut rng = StdRng::seed_from_u64(1);
        let nat = SharedNat::new(config, sharing, &objects, &mut rng).unwrap();
        let lanes = [0, 1].map(|lane| {
            let mut txn = Txn::new(&objects, LaneId(lane));
            txn.sample_every(1);
            txn
        });
        World { nat, objects, lanes }
    }

    /// A host opens a flow in the transaction that runs on a lane.
    fn open(&mut self, lane: usize, host: u8) -> Outcome<Result<Endpoint, DropReason>> {
        let inner = (Ipv4Addr::new(10, 0, 0, host), 5_000);
        let key = FlowKey::v4(inner, SERVER, 17, 0);
        let txn = &mut self.lanes[lane];
        let flow = match self.nat.bind(txn, &key, (inner, SERVER))? {
            Ok(flow) => flow,
            Err(reason) => return Ok(Err(reason)),
        };
        self.nat.count_in(txn, &flow)?;
        assert!(self.nat.flows.open(txn, &flow)?, "there is room");
        Ok(Ok(flow.ends().external))
    }

    fn begin(&mut self, lane: usize) {
        self.lanes[lane].begin(Time::from_secs(1));
    }
}

/// A lane whose ports are used up takes another lane's, and that is in its way: the NAT of NFOS with 53 addresses,
/// and with 55 (section 5.4).
#[test]
fn ports_that_run_short_make_lanes_conflict_and_more_addresses_end_that() -> Outcome<()> {
    for (addresses, conflicts) in [(1, true), (16, false)] {
        let mut world = World::new(addresses);
        world.begin(0);
        let first = world.open(0, 1)?.expect("a port");
        world.lanes[0].commit()?;
        // Both at the same time: lane 0 has none left, lane 1 one of its own.
        world.begin(0);
        world.begin(1);
        let second = world.open(0, 2)?.expect("a port");
        let third = world.open(1, 3)?.expect("a port");
        world.lanes[0].commit()?;
        let outcome = world.lanes[1].commit();
        assert_eq!(outcome.is_err(), conflicts, "{addresses} addresses");
        let profile = world.objects.profile();
        assert_eq!(profile.total().aborts, u64::from(conflicts));
        if !conflicts {
            assert!(first != second && second != third && first != third);
            continue;
        }
        let [noted] = &profile.conflicts[..] else { panic!("{:?}", profile.conflicts) };
        let object = &world.objects.infos()[usize::from(noted.conflict.object.0)];
        assert_eq!(object.name, "UDP ports of 203.0.113.1, even");
        let cause = Cause::of(object.kind, &noted.conflict);
        assert_eq!(cause, Cause::PoolExhausted);
        assert!(cause.recipes().contains(&Recipe::ProvisionMore), "{:?}", cause.recipes());
        // Run again, it finds that only odd ones are left.
        world.begin(1);
        let third = world.open(1, 3)?.expect("a port");
        assert_eq!(third.1 % 2, 1);
        world.lanes[1].commit()?;
        assert!(first != second && second != third && first != third);
    }
    Ok(())
}

/// A transaction that is given up gives out nothing and counts nothing.
#[test]
fn what_is_rolled_back_never_was() -> Outcome<()> {
    let mut world = World::new(1);
    for _ in 0..20 {
        world.begin(0);
        world.open(0, 1)?.expect("a port");
        world.lanes[0].roll_back();
    }
    for host in 1..=4 {
        world.begin(0);
        world.open(0, host)?.expect("a port");
        world.lanes[0].commit()?;
    }
    world.begin(0);
    assert_eq!(world.open(0, 5)?, Err(DropReason::PortsExhausted));
    world.lanes[0].commit()?;
    let mut metrics = Metrics::default();
    world.nat.metrics(&(), &mut metrics);
    assert_eq!((metrics.get("endpoints_created"), metrics.get("endpoints_ended")), (4, 0));
    Ok(())
}

/// Whatever lane took part in it, a flow whose time is up gives back its name, its endpoint and its permission.
#[test]
fn everything_is_given_back() -> Outcome<()> {
    let mut world = World::new(1);
    for (lane, host) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
        world.begin(lane);
        world.open(lane, host)?.expect("a port");
        world.lanes[lane].commit()?;
    }
    let nat = &world.nat;
    assert_eq!((nat.mappings.count(), nat.flows.len()), (4, 4));
    for lane in &mut world.lanes {
        lane.begin(Time::from_secs(302));
        nat.sweep(lane, SWEPT_REGULARLY)?;
        lane.commit()?;
    }
    assert_eq!((nat.mappings.count(), nat.flows.len(), nat.permissions.len()), (0, 0, 0));
    // The endpoints rest, and then all can be had again.
    for (now, expected) in [(302 + 119, 0), (302 + 121, 4)] {
        let txn = &mut world.lanes[0];
        txn.begin(Time::from_secs(now));
        let inner = |host| Inner::new((Ipv4Addr::new(10, 0, 1, host), 5_000), 17, 0);
        let given: Vec<_> = (1..=5)
            .map(|host| nat.endpoints.allocate(txn, 0, record::Mapping::new(inner(host))))
            .collect::<Outcome<_>>()?;
        assert_eq!(given.iter().flatten().count(), expected);
        txn.roll_back();
    }
    Ok(())
}
