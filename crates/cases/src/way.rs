//! The ways in which every case is run. Its outcome is the same in each.

use std::fmt;

use rheostat_run::Unusual;

/// Lanes, and packets that do not take the fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseWay {
    pub(crate) lanes: usize,
    /// The lanes that share a queue and own its shards together.
    pub(crate) claimants: usize,
    /// The share of packets that do not take the fast path, in per cent.
    percent: u32,
}

impl CaseWay {
    pub(crate) fn unusual(self) -> Unusual {
        Unusual::percent(self.percent, 5)
    }
}

impl fmt::Display for CaseWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CaseWay { lanes, claimants, percent } = *self;
        write!(f, "{lanes} {}", if lanes == 1 { "lane" } else { "lanes" })?;
        if claimants > 1 {
            write!(f, " that share a queue by {claimants}")?;
        }
        if percent > 0 {
            write!(f, ", {percent} % of packets off the fast path")?;
        }
        Ok(())
    }
}

/// All of them.
pub(crate) fn all() -> [CaseWay; 6] {
    [(1, 1, 0), (1, 1, 100), (4, 1, 0), (4, 1, 10), (2, 2, 0), (2, 2, 10)]
        .map(|(lanes, claimants, percent)| CaseWay { lanes, claimants, percent })
}
