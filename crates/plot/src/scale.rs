//! From values to places on an axis, and the round values that are written beside it.

use super::axis::{Axis, AxisKind};

/// An axis laid over pixels.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    kind: AxisKind,
    /// What lies at the ends, as `spread` gives it.
    low: f64,
    high: f64,
    /// The pixels there.
    start: f64,
    end: f64,
    /// Where zeros are drawn on a logarithmic axis, if there are any.
    zero: Option<f64>,
    pub(super) ticks: Vec<f64>,
}

/// So much of a logarithmic axis is for zeros, where there are any.
const FOR_ZEROS: f64 = 0.12;

impl Scale {
    /// The axis over all `values`, its ends being ticks, between two pixels.
    pub(super) fn over(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        (start, end): (f64, f64),
    ) -> Scale {
        let (mut low, mut high, mut zeros) = (f64::INFINITY, f64::NEG_INFINITY, false);
        for value in values.chain(axis.from).filter(|value| value.is_finite()) {
            if axis.kind == AxisKind::Log && value <= 0.0 {
                zeros = true;
                continue;
            }
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = if axis.kind == AxisKind::Linear { (0.0, 1.0) } else { (1.0, 10.0) };
        }
        let ticks = match axis.kind {
            AxisKind::Linear => linear_ticks(low, high),
            AxisKind::Log => log_ticks(low, high),
            AxisKind::Nines => nines(high),
        };
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        let zero = zeros.then_some(start);
        let start = if zeros { start + (end - start) * FOR_ZEROS } else { start };
        let mut scale =
            Scale { kind: axis.kind, low: 0.0, high: 1.0, start, end, zero, ticks: Vec::new() };
        (scale.low, scale.high) = (scale.spread(first), scale.spread(last));
        scale.ticks = match axis.kind {
            AxisKind::Log => thinned(ticks),
            _ => ticks,
        };
        scale
    }

    /// The axis with the values themselves as ticks and some room at both ends, as long as there are few of them and
    /// they lie `apart` pixels from each other; else as [`Scale::over`].
    pub(super) fn at(
        axis: &Axis,
        values: impl Iterator<Item = f64> + Clone,
        (start, end): (f64, f64),
        apart: f64,
    ) -> Scale {
        const FEW: usize = 9;
        let mut kept: Vec<f64> = Vec::new();
        for value in values.clone().filter(|value| value.is_finite()) {
            if !kept.contains(&value) {
                kept.push(value);
            }
            if kept.len() > FEW
                || axis.kind == AxisKind::Nines
                || (axis.kind == AxisKind::Log && value <= 0.0)
            {
                return Scale::over(axis, values, (start, end));
            }
        }
        kept.sort_by(f64::total_cmp);
        let (Some(&first), Some(&last)) = (kept.first(), kept.last()) else {
            return Scale::over(axis, values, (start, end));
        };
        let mut scale = Scale {
            kind: axis.kind,
            low: 0.0,
            high: 1.0,
            start,
            end,
            zero: None,
            ticks: kept.clone(),
        };
        let (low, high) = (scale.spread(first), scale.spread(last));
        let room = if high > low { 0.06 * (high - low) } else { 0.5 };
        (scale.low, scale.high) = (low - room, high + room);
        let close =
            kept.windows(2).any(|pair| (scale.place(pair[1]) - scale.place(pair[0])).abs() < apart);
        if close { Scale::over(axis, values, (start, end)) } else { scale }
    }

    /// The pixel of a value; of one beyond the ends, the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        if let (AxisKind::Log, true, Some(zero)) = (self.kind, value <= 0.0, self.zero) {
            return zero;
        }
        let share = (self.spread(value) - self.low) / (self.high - self.low);
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Where zeros lie, if they have a place apart from the axis.
    pub(super) fn zero(&self) -> Option<f64> {
        self.zero
    }

    /// Whether a value has a place.
    pub(super) fn has(&self, value: f64) -> bool {
        match self.kind {
            AxisKind::Linear => value.is_finite(),
            AxisKind::Log => value.is_finite() && (value > 0.0 || self.zero.is_some()),
            AxisKind::Nines => (0.0..1.0).contains(&value),
        }
    }

    /// Both ends of the axis in pixels, without the place of zeros.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.start, self.end)
    }

    fn spread(&self, value: f64) -> f64 {
        match self.kind {
            AxisKind::Linear => value,
            AxisKind::Log => value.max(f64::MIN_POSITIVE).log10(),
            AxisKind::Nines => -(1.0 - value).max(1e-12).log10(),
        }
    }
}

/// From the last round value below to the first above, four to nine of them.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let (low, high) = if high > low {
        (low, high)
    } else if low == 0.0 {
        (0.0, 1.0)
    } else {
        (low - low.abs() / 2.0, high + high.abs() / 2.0)
    };
    let step = round_up((high - low) / 6.0);
    // What is a tick but for the rounding of floats is that tick.
    let first = (low / step + 1e-9).floor() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    // Divided and not multiplied where steps are below 1: 3 / 10 is 0.3, and 3 × 0.1 is not.
    let tick = |at: i64| {
        if step < 1.0 { at as f64 / (1.0 / step).round() } else { at as f64 * step }
    };
    (first..=last).map(tick).collect()
}

/// The least of 1, 2, 5 and 10 times a power of ten that is not below.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= value * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// 1, 2 and 5 times powers of ten, from the last below to the first above; only powers of ten where there
/// are many.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let least = low.log10().floor() as i32 - 1;
    let most = high.log10().ceil() as i32 + 1;
    let all: Vec<f64> = (least..=most)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)))
        .collect();
    let within = |ticks: &[f64]| {
        let mut first = ticks.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9)).unwrap_or(0);
        let mut last =
            ticks.iter().position(|tick| *tick >= high * (1.0 - 1e-9)).unwrap_or(ticks.len() - 1);
        if first == last {
            first = first.saturating_sub(1);
            last = (last + 1).min(ticks.len() - 1);
        }
        ticks[first..=last].to_vec()
    };
    let fine = within(&all);
    if fine.len() <= 8 {
        return fine;
    }
    let powers: Vec<f64> = (least..=most).map(|power| 10f64.powi(power)).collect();
    within(&powers)
}

/// Every second or third of the powers of ten, where there are too many; the first always.
fn thinned(ticks: Vec<f64>) -> Vec<f64> {
    let every = ticks.len().div_ceil(9);
    ticks.into_iter().step_by(every).collect()
}

/// 50 %, 90 %, 99 % and so on, to the first that `high` does not exceed.
fn nines(high: f64) -> Vec<f64> {
    let mut ticks = vec![0.5, 0.9];
    let mut left = 0.01;
    while ticks[ticks.len() - 1] < high - 1e-9 && ticks.len() < 10 {
        ticks.push(1.0 - left);
        left /= 10.0;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;

    fn ticks(axis: &Axis, values: &[f64]) -> Vec<f64> {
        Scale::over(axis, values.iter().copied(), (0.0, 100.0)).ticks
    }

    #[test]
    fn linear_ticks_are_round_and_cover_the_values() {
        let axis = Axis::linear("", Unit::Plain);
        assert_eq!(ticks(&axis, &[0.8, 0.94]), [0.8, 0.85, 0.9, 0.95]);
        assert_eq!(ticks(&axis.clone().from(0.0), &[61.0]), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(ticks(&axis.clone().from(0.0), &[0.3]), [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]);
        assert_eq!(ticks(&axis, &[-3.0, 4.0]), [-4.0, -2.0, 0.0, 2.0, 4.0]);
    }

    #[test]
    fn whatever_the_values_the_ends_of_the_axis_hold_them() {
        use rand::rngs::SmallRng;
        use rand::{Rng, SeedableRng};
        let mut random = SmallRng::seed_from_u64(1);
        for _ in 0..2_000 {
            let size = 10f64.powf(random.random_range(-9.0..12.0));
            let low = size * random.random::<f64>();
            let high = low + size * random.random::<f64>().powi(3);
            for axis in [Axis::linear("", Unit::Plain), Axis::log("", Unit::Plain)] {
                let scale = Scale::over(&axis, [low, high].into_iter(), (0.0, 100.0));
                let ticks = &scale.ticks;
                assert!((2..=9).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
                assert!(
                    ticks.is_sorted() && ticks[0] <= low * (1.0 + 1e-6),
                    "{low} to {high}: {ticks:?}"
                );
                // Not at an end only because it was put there.
                let inside =
                    |value: f64| scale.spread(value) <= scale.high + 1e-6 * scale.high.abs();
                assert!(inside(high), "{low} to {high}: {ticks:?}");
                for tick in ticks {
                    let digits = format!("{tick:.9e}");
                    let mantissa = digits.split('e').next().unwrap().trim_end_matches('0');
                    // Low ticks of a narrow range far from zero have more digits, each of them needed.
                    let needed = 2 + ((high / (high - low)).log10().max(0.0) as usize);
                    let length = mantissa.chars().filter(char::is_ascii_digit).count();
                    assert!(length <= needed.max(2) + 1, "{low} to {high}: {tick}");
                }
            }
        }
    }

    #[test]
    fn log_ticks_are_powers_of_ten_or_halves_and_fifths_of_them() {
        let axis = Axis::log("", Unit::Microseconds);
        assert_eq!(ticks(&axis, &[3.0, 60.0]), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(&axis, &[3.0, 6_000.0]), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(ticks(&axis, &[10.0]), [5.0, 10.0, 20.0]);
        assert_eq!(ticks(&axis, &[]), [1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn zeros_have_a_place_below_a_logarithmic_axis() {
        let axis = Axis::log("", Unit::Share);
        let scale = Scale::over(&axis, [0.0, 1e-4, 1e-2].into_iter(), (200.0, 0.0));
        assert_eq!(scale.zero(), Some(200.0));
        assert_eq!((scale.place(0.0), scale.place(1e-4), scale.place(1e-2)), (200.0, 176.0, 0.0));
        let scale = Scale::over(&axis, [1e-4, 1e-2].into_iter(), (200.0, 0.0));
        assert!(!scale.has(0.0) && scale.place(1e-4) == 200.0);
    }

    #[test]
    fn few_values_are_their_own_ticks() {
        let axis = Axis::linear("", Unit::Plain);
        let at =
            |values: &[f64]| Scale::at(&axis, values.iter().copied(), (0.0, 300.0), 30.0).ticks;
        assert_eq!(at(&[0.9, 0.8, 0.94]), [0.8, 0.9, 0.94]);
        assert_eq!(at(&[0.8, 0.81, 0.94]), [0.8, 0.85, 0.9, 0.95], "too close to write both");
        assert_eq!(at(&[2.0]), [2.0]);
    }

    #[test]
    fn nines_are_evenly_spaced() {
        let axis = Axis::nines("");
        let scale = Scale::over(&axis, [0.5, 0.9999].into_iter(), (0.0, 100.0));
        assert_eq!(scale.ticks.len(), 5);
        let places: Vec<f64> = [0.9, 0.99, 0.999].iter().map(|&share| scale.place(share)).collect();
        assert!(((places[1] - places[0]) - (places[2] - places[1])).abs() < 1e-6, "{places:?}");
        assert!(!scale.has(1.0));
    }
}
