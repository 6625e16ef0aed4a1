//! Keeps lanes that take packets of one sequence near each other.

use std::hint::spin_loop;
use std::thread;

use rheostat_base::Counter;

/// How often a lane looks whether it may go on before it lets others have the core.
const LOOKS: u32 = 1_000;

/// Keeps lanes together, as a source does that fills their queues in turn and waits while one is full.
#[derive(Debug)]
pub(crate) struct LoadPace {
    /// By lane, the position of the packet it is about to take; the greatest number once it has none.
    positions: Vec<Position>,
    /// Packets of the sequence by which a lane may be ahead of another: as many as lie in all queues.
    ahead: u64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Position(Counter);

impl LoadPace {
    /// All lanes before position 0, with queues of `queue` packets.
    pub(crate) fn new(lanes: usize, queue: u32) -> LoadPace {
        let positions = (0..lanes).map(|_| Position::default()).collect();
        LoadPace { positions, ahead: lanes as u64 * u64::from(queue) }
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> u64 {
        self.positions.len() as u64
    }

    /// What `lane` asks before it takes packets.
    pub(crate) fn of(&self, lane: usize) -> PaceTurn<'_> {
        PaceTurn { pace: self, own: &self.positions[lane].0 }
    }
}

/// A lane's part in the pace. Once it is dropped, the lane has no packet left, and no other lane waits for it.
pub(crate) struct PaceTurn<'a> {
    pace: &'a LoadPace,
    own: &'a Counter,
}

impl PaceTurn<'_> {
    /// Waits until all lanes are near `position`, which this one is about to take. The lane that is
    /// furthest behind never waits, so that there is no deadlock.
    pub(crate) fn wait(&self, position: u64) {
        self.own.set(position);
        let is_far = |other: &Position| other.0.get().saturating_add(self.pace.ahead) < position;
        let mut looks = 0_u32;
        while self.pace.positions.iter().any(is_far) {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                thread::yield_now();
            }
            spin_loop();
        }
    }
}

impl Drop for PaceTurn<'_> {
    fn drop(&mut self) {
        self.own.set(u64::MAX);
    }
}
