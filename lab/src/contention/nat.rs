//! An endpoint-independent NAT whose external endpoints are scarce (NFOS, section 5.4).

use std::time::Duration;

use rheostat_state::object::{Allocator, Lease, Map, Recipe};
use rheostat_state::txn::{Objects, Outcome, Txn};

use super::Pattern;
use super::pattern::{SEED, drawn};

/// Of so many packets, one opens a mapping (section 5.3: NAT updates aggregate state every ten packets).
const PACKETS_PER_MAPPING: u64 = 10;
/// Mappings alive at a time for each lane, in the mean. How many there are at a moment varies by its root.
const ALIVE: u64 = 2_120;
/// External addresses that would do if lanes always needed alike.
const ADDRESSES: u64 = 53;
/// Endpoints of an address, for each lane. With 53 addresses there are 2.5 % more than are needed in the mean, which is
/// little more than the standard deviation of one lane's need; with 55, three times that.
const PER_ADDRESS: u64 = ALIVE / ADDRESSES + 1;
/// Endpoints whose time is up that a packet takes back at most.
const EXPIRED: usize = 2;
const INTERVAL: Duration = Duration::from_nanos(250);
/// How long a mapping lives: its packets come together, so that is until it is needed by another.
const LIFETIME: Duration =
    Duration::from_nanos(INTERVAL.as_nanos() as u64 * PACKETS_PER_MAPPING * ALIVE);

/// Gives inside endpoints external ones, for a while.
#[derive(Debug)]
pub struct Nat {
    objects: Objects,
    mappings: Map<u64, Lease>,
    endpoints: Allocator<u64>,
}

impl Nat {
    /// A NAT with that many external addresses; 53 are just enough.
    pub fn new(lanes: usize, addresses: u64) -> Nat {
        let objects = Objects::seeded(lanes, SEED);
        let resources = (addresses * PER_ADDRESS) as usize * lanes;
        let mappings = Map::new(&objects, "nat.mappings", 2 * resources);
        // Refreshed at most sixteen times in its life.
        let endpoints =
            Allocator::new(&objects, "nat.endpoints", resources, &[LIFETIME], LIFETIME / 16);
        objects.set_by(endpoints.id(), Recipe::ProvisionMore, "addresses");
        Nat { objects, mappings, endpoints }
    }

    fn translate(&self, txn: &mut Txn, inside: u64) -> Outcome<Option<u32>> {
        if let Some(lease) = self.mappings.get(txn, &inside)?
            && self.endpoints.refresh(txn, lease, 0)?
        {
            return Ok(Some(lease.resource));
        }
        self.map(txn, inside)
    }

    fn map(&self, txn: &mut Txn, inside: u64) -> Outcome<Option<u32>> {
        for _ in 0..EXPIRED {
            let Some((_, former)) = self.endpoints.expired(txn)? else { break };
            self.mappings.remove(txn, &former)?;
        }
        let Some(lease) = self.endpoints.allocate(txn, inside, 0)? else { return Ok(None) };
        // There is room for twice as many.
        let _ = self.mappings.set(txn, inside, lease)?;
        Ok(Some(lease.resource))
    }
}

impl Pattern for Nat {
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn warm_up(&self) -> u64 {
        // Two lifetimes.
        2 * ALIVE * PACKETS_PER_MAPPING
    }

    fn packet(&self, txn: &mut Txn, number: u64) -> Outcome<()> {
        // The packets of an inside endpoint come one after the other, from one that opens to the next.
        let opens = |number: &u64| drawn(txn, *number).is_multiple_of(PACKETS_PER_MAPPING);
        let opened = (0..=number).rev().find(opens).unwrap_or(0);
        let inside = drawn(txn, opened);
        std::hint::black_box(self.translate(txn, inside)?);
        Ok(())
    }
}
