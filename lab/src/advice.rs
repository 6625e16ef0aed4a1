//! `rheo bench advice`: what it brings to follow the profiler's recipes, by the three case studies of the NFOS paper
//! (sections 4.8 and 5.4), on real lanes and on as many simulated ones as the paper has cores.
//!
//! Each case is the [pattern](crate::contention) of a function with a setting, before and after: first as its
//! semantics want it, then as the recipe states. The numbers of the paper are of other machines, and of whole
//! functions with packets from a wire.

mod case;
mod row;

use rheostat_measure::confidence::Median;
use rheostat_observe::profile::{Observed, ScalingProfile};
use rheostat_state::txn::Profile;

use crate::contention::{Cost, Pattern, RealLanes, SimulatedLanes};
use crate::error::BenchError;
pub use case::AdviceCase;
pub use row::AdviceRow;

/// Measures and simulates cases.
#[derive(Clone, Debug)]
pub struct AdviceBench {
    /// Windows per real row; the median counts, and one more comes first and does not count.
    pub windows: usize,
    /// Packets of each lane per window, and in a simulation.
    pub packets: u64,
    /// Packets of a transaction at most.
    pub batch: u64,
    /// Pseudo-random numbers drawn per packet, which stand for the rest of its processing; one takes a nanosecond or
    /// two.
    pub work: u32,
    /// Numbers of real lanes.
    pub real: Vec<usize>,
    /// Numbers of simulated lanes.
    pub simulated: Vec<usize>,
}

impl Default for AdviceBench {
    fn default() -> AdviceBench {
        AdviceBench {
            windows: 9,
            packets: 100_000,
            batch: 32,
            work: 60,
            real: vec![1, 2],
            simulated: vec![1, 2, 4, 8, 12, 16, 23],
        }
    }
}

impl AdviceBench {
    /// Runs cases before and after, and calls `done` for each row.
    ///
    /// # Errors
    /// [`BenchError`] when there are fewer cores than real lanes.
    pub fn run(
        &self,
        cases: &[AdviceCase],
        mut done: impl FnMut(&AdviceRow),
    ) -> Result<Vec<AdviceRow>, BenchError> {
        let mut rows: Vec<AdviceRow> = Vec::new();
        for &case in cases {
            let real = self.real.iter().map(|&lanes| (lanes, false));
            for (lanes, simulated) in real.chain(self.simulated.iter().map(|&lanes| (lanes, true)))
            {
                let mut base = None;
                for advised in [false, true] {
                    let mut row = match simulated {
                        true => self.simulate(case, lanes, advised)?,
                        false => self.measure(case, lanes, advised)?,
                    };
                    row.setting = case.setting(advised).to_owned();
                    row.advised = advised;
                    row.gain = base.map(|base| row.mpps / base);
                    base = base.or(Some(row.mpps));
                    done(&row);
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    fn measure(
        &self,
        case: AdviceCase,
        count: usize,
        advised: bool,
    ) -> Result<AdviceRow, BenchError> {
        let pattern = case.pattern(count, advised);
        let mut lanes = RealLanes::new(&*pattern, count, self.batch, self.work)?;
        lanes.require_cores()?;
        let before = pattern.objects().profile();
        let mut mpps = Vec::new();
        for window in 0..=self.windows {
            let measured = lanes.run(self.packets, 1)?;
            if window > 0 {
                mpps.push(measured.mpps());
            }
        }
        let profile = pattern.objects().profile().since(&before);
        Ok(AdviceRow::new(
            case,
            count,
            false,
            Median::of(mpps).value,
            &profile_of(&*pattern, &profile),
        ))
    }

    fn simulate(
        &self,
        case: AdviceCase,
        count: usize,
        advised: bool,
    ) -> Result<AdviceRow, BenchError> {
        let measured = case.pattern(count, advised);
        let cost = Cost::measure(&*measured, self.packets.min(20_000), self.work)?;
        // One lane of that has moved on: begin anew.
        let pattern = case.pattern(count, advised);
        let simulated = SimulatedLanes::new(&*pattern, self.batch, cost).run(self.packets);
        let profile = profile_of(&*pattern, &simulated.profile);
        Ok(AdviceRow::new(case, count, true, simulated.mpps(), &profile))
    }
}

/// The profile that `rheo profile` would show.
pub fn profile_of(pattern: &dyn Pattern, transactions: &Profile) -> ScalingProfile {
    let infos = pattern.objects().infos();
    ScalingProfile::of(&Observed {
        functions: &[],
        seconds: 0.0,
        lanes: &[],
        shared: Some((&infos, transactions)),
    })
}
