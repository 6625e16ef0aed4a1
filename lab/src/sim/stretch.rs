//! The time of a source, told in that of a run.

use std::time::Duration;

use crate::scenario::ScenarioStep;

/// Stretches the time of a source, so that the same packets come at another rate; the rate may change at steps.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// Stretches of equal pace, the first at the start of the run.
    pieces: Vec<StretchPiece>,
    /// The piece that the last packet was in.
    current: usize,
}

/// From here on, `pace` nanoseconds of the source pass in each of the run.
#[derive(Clone, Copy, Debug)]
struct StretchPiece {
    source: f64,
    run: f64,
    pace: f64,
}

impl Stretch {
    /// A source's time passes `pace` times as fast as the run's, and after each of `steps`, which are counted from
    /// `start`, as many times faster as its factor states.
    pub(super) fn new(pace: f64, steps: &[ScenarioStep], start: Duration) -> Stretch {
        let mut pieces = vec![StretchPiece { source: 0.0, run: 0.0, pace }];
        for step in steps {
            let last = pieces[pieces.len() - 1];
            let run = (start + step.at).as_nanos() as f64;
            let source = last.source + (run - last.run) * last.pace;
            pieces.push(StretchPiece { source, run, pace: pace * step.factor });
        }
        Stretch { pieces, current: 0 }
    }

    /// When something happens in the run that happens at `source` on the source's clock. Called with times that
    /// never go back.
    pub(super) fn time_of(&mut self, source: u64) -> u64 {
        let source = source as f64;
        let beyond = |piece: &StretchPiece| piece.source <= source;
        while self.pieces.get(self.current + 1).is_some_and(beyond) {
            self.current += 1;
        }
        let StretchPiece { source: from, run, pace } = self.pieces[self.current];
        // Where nothing comes any more, what is still to come comes never.
        (run + (source - from) / pace) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_stretched_piece_by_piece() {
        let step = |ms, factor| ScenarioStep { at: Duration::from_millis(ms), factor };
        let mut stretch = Stretch::new(
            2.0,
            &[step(1, 0.5), step(2, 0.0), step(3, 4.0)],
            Duration::from_millis(1),
        );
        // Twice as fast until 2 ms, then as fast, then for 1 ms nothing, then eight times as fast.
        let times = [0, 1_000_000, 4_000_000, 4_500_000, 4_999_999, 5_000_000, 5_000_008];
        let told = times.map(|time| stretch.time_of(time));
        assert_eq!(told, [0, 500_000, 2_000_000, 2_500_000, 2_999_999, 4_000_000, 4_000_001]);
    }
}
