//! CUBIC (RFC 9438). Windows are counted in segments here, as there.

use std::time::Duration;

use rheostat_base::Time;

use super::slow_start::SlowStart;
use super::{Acked, Congestion, initial_window};

/// How fast the window grows (RFC 9438, 5).
const C: f64 = 0.4;
/// What a loss leaves of the window.
const BETA: f64 = 0.7;
/// The increase per round trip with which this decrease is as fair as Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// What the window grows by in a round trip between the first slow start and the first loss, as on Linux: no less than a segment.
/// Slow start may end long before the path is full, as beside another connection, and the cubic function is flat there.
const PROBE: f64 = 0.05;

/// A window that grows as a cubic function of the time since the last loss.
#[derive(Clone, Debug)]
pub struct Cubic {
    mss: u32,
    /// Infinite until a loss, or the first slow start, has set it.
    threshold: f32,
    window: f64,
    start: SlowStart,
    /// Few connections have seen one.
    loss: Option<Box<Loss>>,
}

/// What the last loss has left behind, which congestion avoidance goes by.
#[derive(Clone, Debug, Default)]
struct Loss {
    /// The window before the last reduction (cwnd_prior).
    prior: f64,
    /// The window at which growth is slowest (W_max).
    plateau: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the window is `origin` again (K).
    rise: f64,
    origin: f64,
    /// What Reno would have (W_est).
    estimate: f64,
}

impl Cubic {
    /// With the initial window for segments of `mss` bytes.
    pub fn new(mss: u32) -> Cubic {
        let window = f64::from(initial_window(mss)) / f64::from(mss);
        let start = SlowStart::default();
        Cubic { mss, threshold: f32::INFINITY, window, start, loss: None }
    }

    /// W_max with fast convergence, and the threshold.
    fn reduce(&mut self, in_flight: u32) {
        let window = self.window;
        let loss = self.loss.get_or_insert_default();
        loss.prior = window;
        loss.plateau = if window < loss.plateau { window * (1.0 + BETA) / 2.0 } else { window };
        loss.epoch = None;
        let in_flight = f64::from(in_flight) / f64::from(self.mss);
        self.threshold = (in_flight.min(window) * BETA).max(2.0) as f32;
        self.start.end();
    }

    /// The first slow start leaves when delays rise (RFC 9406); later ones have the threshold.
    fn start_slowly(&mut self, acked: &Acked) {
        if self.threshold < f32::INFINITY {
            self.window += self.to_segments(acked.bytes).min(1.0);
            return;
        }
        let growth = self.start.on_ack(acked, self.window(), self.mss);
        self.window += self.to_segments(growth.bytes);
        if growth.is_over {
            self.threshold = self.window as f32;
        }
    }

    fn to_segments(&self, bytes: u32) -> f64 {
        f64::from(bytes) / f64::from(self.mss)
    }

    /// Congestion avoidance begins anew.
    fn end_epoch(&mut self) {
        if let Some(loss) = &mut self.loss {
            loss.epoch = None;
        }
    }

    fn avoid(&mut self, segments: f64, now: Time, round_trip: Duration) {
        let window = self.window;
        let Some(loss) = &mut self.loss else {
            self.window += segments * PROBE.max(1.0 / window);
            return;
        };
        let epoch = loss.epoch.get_or_insert_with(|| {
            let origin = loss.plateau.max(window);
            Epoch { start: now, rise: ((origin - window) / C).cbrt(), origin, estimate: window }
        });
        let growth = if epoch.estimate >= loss.prior { 1.0 } else { ALPHA };
        epoch.estimate += growth * segments / window;
        let at = |seconds: f64| C * (seconds - epoch.rise).powi(3) + epoch.origin;
        let elapsed = now.since(epoch.start).as_secs_f64();
        if at(elapsed) < epoch.estimate {
            self.window = epoch.estimate.max(window);
            return;
        }
        let target = at(elapsed + round_trip.as_secs_f64()).clamp(window, 1.5 * window);
        self.window += (target - window) / window * segments;
    }

    fn to_bytes(&self, segments: f64) -> u32 {
        (segments * f64::from(self.mss)) as u32
    }
}

impl Congestion for Cubic {
    fn window(&self) -> u32 {
        self.to_bytes(self.window)
    }

    fn threshold(&self) -> u32 {
        self.to_bytes(self.threshold.into())
    }

    fn on_mss(&mut self, mss: u32) {
        *self = Cubic::new(mss);
    }

    fn on_segment_size(&mut self, mss: u32) {
        let scale = f64::from(self.mss) / f64::from(mss);
        self.mss = mss;
        self.window = (self.window * scale).max(1.0);
        self.threshold *= scale as f32;
        if let Some(loss) = &mut self.loss {
            loss.prior *= scale;
            loss.plateau *= scale;
            loss.epoch = None;
        }
    }

    fn on_ack(&mut self, acked: Acked) {
        if self.window < self.threshold.into() {
            self.start_slowly(&acked);
        } else {
            let segments = self.to_segments(acked.bytes);
            self.avoid(segments, acked.now, acked.round_trip.unwrap_or_default());
        }
    }

    fn on_loss(&mut self, in_flight: u32, _: Time) {
        self.reduce(in_flight);
        self.window = self.threshold.into();
    }

    fn on_timeout(&mut self, in_flight: u32, is_first: bool, _: Time) {
        if is_first {
            self.reduce(in_flight);
        }
        self.end_epoch();
        self.window = 1.0;
    }

    fn on_idle(&mut self) {
        let initial = f64::from(initial_window(self.mss)) / f64::from(self.mss);
        self.window = self.window.min(initial);
        self.end_epoch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::SequenceNumber;

    const MSS: u32 = 1_000;
    const ROUND_TRIP: Duration = Duration::from_millis(100);

    fn acked(now: Time) -> Acked {
        let (una, next) = (SequenceNumber(0), SequenceNumber(0));
        Acked { bytes: MSS, now, round_trip: Some(ROUND_TRIP), sample: None, una, next }
    }

    /// Acknowledges whole windows, one per round trip, and returns the window after each.
    fn run(controller: &mut Cubic, start: Time, trips: u32) -> Vec<u32> {
        let mut windows = Vec::new();
        for trip in 0..trips {
            let now = start + ROUND_TRIP * trip;
            for _ in 0..controller.window() / MSS {
                controller.on_ack(acked(now));
            }
            windows.push(controller.window());
        }
        windows
    }

    fn after_a_loss_at(segments: u32) -> Cubic {
        let mut controller = Cubic::new(MSS);
        controller.window = segments.into();
        controller.on_loss(segments * MSS, Time::ZERO);
        controller
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        let controller = after_a_loss_at(100);
        assert_eq!((controller.window(), controller.threshold()), (70 * MSS, 70 * MSS));
    }

    #[test]
    fn the_window_is_back_after_the_cube_root_of_what_was_lost() {
        // K = cbrt(1000 * 0.3 / 0.4) = 9.09 s.
        let mut controller = after_a_loss_at(1_000);
        let windows = run(&mut controller, Time::ZERO, 150);
        let at = |seconds: f64| windows[(seconds * 10.0) as usize];
        assert!((960_000..=1_001_000).contains(&at(8.5)), "{}", at(8.5));
        assert!((990_000..=1_010_000).contains(&at(9.1)), "{}", at(9.1));
        assert!(at(14.9) > 1_060_000, "convex behind the plateau: {}", at(14.9));
    }

    #[test]
    fn small_windows_grow_as_reno_would() {
        let mut controller = after_a_loss_at(10);
        let windows = run(&mut controller, Time::ZERO, 10);
        // 0.53 segments a round trip; the cubic function would have added less than one in a second.
        assert!(windows[9] >= 11 * MSS, "{windows:?}");
    }

    #[test]
    fn until_the_first_loss_the_window_grows_by_a_twentieth_in_a_round_trip() {
        let mut controller = Cubic::new(MSS);
        (controller.window, controller.threshold) = (1_000.0, 1_000.0);
        let windows = run(&mut controller, Time::ZERO, 3);
        assert!((1_048_000..=1_052_000).contains(&windows[0]), "{windows:?}");
        assert!((1_150_000..=1_165_000).contains(&windows[2]), "{windows:?}");
        controller.on_loss(1_000 * MSS, Time::ZERO);
        let before = controller.window();
        let windows = run(&mut controller, Time::from_secs(1), 1);
        assert!(windows[0] < before + before / 20, "{before} {windows:?}");
    }

    #[test]
    fn a_second_loss_below_the_plateau_lowers_it() {
        let mut controller = after_a_loss_at(100);
        controller.on_loss(70 * MSS, Time::ZERO);
        let plateau = controller.loss.unwrap().plateau;
        assert!((plateau - 59.5).abs() < 0.01, "{plateau}");
    }

    #[test]
    fn a_timeout_leaves_one_segment() {
        let mut controller = after_a_loss_at(100);
        controller.on_timeout(70 * MSS, true, Time::ZERO);
        assert_eq!((controller.window(), controller.threshold()), (MSS, 49 * MSS));
    }
}
