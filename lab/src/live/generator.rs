//! Sends as fast as the path takes packets, and measures what that costs.

use std::time::{Duration, Instant};

use rheostat_kernel::core_set::pin_current_thread;

use super::error::LiveError;
use super::path::SinkPlace;
use super::programs::{ProgramSource, Sink};
use super::wires::{END, LAN, Wires};
use crate::testbed::Cores;
use crate::testbed::cpu_time::{CpuTime, CpuUse};

/// Frames sent by one call of the kernel: setting one up costs as much as some tens of frames.
const CHUNK: u32 = 512;
/// How long to wait when no more may be under way.
const PAUSE: Duration = Duration::from_micros(20);
/// After so long without arrivals, what is under way counts as lost.
const LOST_AFTER: Duration = Duration::from_millis(200);
/// After so long without arrivals, nothing more is expected.
const QUIET: Duration = Duration::from_millis(50);
/// Bytes of a frame, without its check sequence: 64 on the wire with it.
const FRAME: usize = 60;
/// Time enough for a million flows on the slowest path.
pub(super) const WARM_UP_TIMEOUT: Duration = Duration::from_secs(60);

/// What was sent and arrived in a span, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratorWindow {
    pub(super) sent: u64,
    pub(super) arrived: u64,
    pub(super) cpu: CpuUse,
}

/// A closed loop: never more packets are under way than the path's queues hold, so that nothing is
/// dropped and yet the path always has work.
#[derive(Debug)]
pub(super) struct Generator<'a> {
    wires: &'a Wires,
    source: ProgramSource,
    sink: Sink,
    most_under_way: u64,
    sent: u64,
    lost: u64,
}

impl<'a> Generator<'a> {
    /// `most_under_way` in packets, at least two chunks.
    pub(super) fn new(
        wires: &'a Wires,
        place: SinkPlace,
        flows: u32,
        most_under_way: u32,
    ) -> Result<Generator<'a>, LiveError> {
        let sink = match place {
            SinkPlace::Middle => Sink::attach(&wires.middle, LAN)?,
            SinkPlace::Far => Sink::attach(&wires.sink, END)?,
            SinkPlace::Host => Sink::attach_host(&wires.sink, END)?,
        };
        let source = ProgramSource::new(&wires.source, END, flows, frame())?;
        // On the first core; what is measured has the others.
        // Where that is refused, the figures are only less steady.
        let _ = pin_current_thread(Cores::available()?.first());
        Ok(Generator {
            wires,
            source,
            sink,
            most_under_way: most_under_way.into(),
            sent: 0,
            lost: 0,
        })
    }

    /// Sends every flow twice, so that the path knows them, and waits until all is quiet. A path too slow
    /// for that has `timeout` of time.
    ///
    /// # Errors
    /// [`LiveError::Silent`] when less than half arrives.
    pub(super) fn warm_up(&mut self, flows: u32, timeout: Duration) -> Result<(), LiveError> {
        let least = u64::from(flows) * 2;
        let end = Instant::now() + timeout;
        while self.sent < least && Instant::now() < end {
            self.send_for(Duration::from_millis(100))?;
        }
        let arrived = self.settle()?;
        if arrived * 2 < self.sent {
            let (path, said) = ("the path", String::new());
            return Err(LiveError::Silent { path, sent: self.sent, arrived, said });
        }
        Ok(())
    }

    /// Sends for `span`, and measures until everything has arrived.
    pub(super) fn measure(
        &mut self,
        span: Duration,
        tasks: &[u32],
    ) -> Result<GeneratorWindow, LiveError> {
        let (sent, arrived) = (self.sent, self.settle()?);
        let before = CpuTime::now(tasks)?;
        self.send_for(span)?;
        let cpu = CpuTime::now(tasks)?.since(&before);
        let arrived = self.settle()? - arrived;
        Ok(GeneratorWindow { sent: self.sent - sent, arrived, cpu })
    }

    fn send_for(&mut self, span: Duration) -> Result<(), LiveError> {
        let Generator { wires, source, sink, most_under_way, sent, lost, .. } = self;
        wires.source.enter(|| {
            let end = Instant::now() + span;
            let mut last = (sink.count()?, Instant::now());
            while Instant::now() < end {
                let arrived = sink.count()?;
                if arrived != last.0 {
                    last = (arrived, Instant::now());
                }
                let under_way = sent.saturating_sub(*lost + arrived);
                if under_way + u64::from(CHUNK) <= *most_under_way {
                    *sent += source.send(CHUNK)?;
                } else if last.1.elapsed() > LOST_AFTER {
                    *lost += under_way;
                } else {
                    std::thread::sleep(PAUSE);
                }
            }
            Ok(())
        })?
    }

    /// Waits until nothing arrives any more; how many have arrived so far.
    fn settle(&self) -> Result<u64, LiveError> {
        let mut arrived = self.sink.count()?;
        loop {
            std::thread::sleep(QUIET);
            let now = self.sink.count()?;
            if now == arrived {
                return Ok(now);
            }
            arrived = now;
        }
    }
}

/// The frame that is repeated: a datagram of zeros to the discard service. All addresses, the source port
/// and the checksums are filled in for each.
pub(super) fn frame() -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME);
    frame.resize(12, 0);
    frame.extend([0x08, 0x00]);
    let length = (FRAME - 14) as u16;
    frame.extend([0x45, 0]);
    frame.extend(length.to_be_bytes());
    // No identification, not to be cut, time to live 64, UDP; no checksum, no addresses yet.
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend([0, 0, 0, 9]);
    frame.extend((length - 20).to_be_bytes());
    frame.resize(FRAME, 0);
    frame
}

#[cfg(test)]
mod tests {
    //! Timed: sleep, clock, processes, devices.

    use super::*;
    use crate::live::middle::{Middle, RING};
    use crate::live::path::LivePath;

    #[test]
    fn a_middle_that_does_not_forward_gives_no_figure() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not run: namespaces are made by root only");
            return;
        }
        let wires = Wires::build().expect("namespaces");
        // Takes what comes, so that it can be sent, and sends nothing on.
        let _drops = Sink::attach(&wires.middle, LAN).expect("a program");
        let mut generator = Generator::new(&wires, SinkPlace::Far, 1024, RING).expect("programs");
        // A generator that was kept from the core for so long has sent nothing, and misses nothing.
        let mut attempts = (0..100).map(|_| generator.warm_up(1024, Duration::from_secs(1)));
        let error = attempts.find_map(Result::err).expect("nothing arrives");
        assert!(matches!(error, LiveError::Silent { arrived: 0, .. }), "{error}");
    }

    #[test]
    fn whatever_is_sent_is_counted() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not run: namespaces are made by root only");
            return;
        }
        for path in [LivePath::XdpRedirect, LivePath::XdpBounce, LivePath::NftMasquerade] {
            let wires = Wires::build().expect("namespaces");
            let _middle = Middle::start(path, &wires, 1024, "rheo".as_ref()).expect("a middle");
            let mut generator = Generator::new(&wires, path.sink(), 1024, RING).expect("programs");
            // Where other work keeps the path from its core, queues run over, so that few may arrive, and late.
            let is_slow = |error: &LiveError| matches!(error, LiveError::Silent { .. });
            let warmed = (0..100)
                .map(|_| generator.warm_up(1024, WARM_UP_TIMEOUT))
                .find(|outcome| !outcome.as_ref().is_err_and(is_slow));
            warmed.expect("packets pass").expect("packets pass");
            let mut windows = (0..100)
                .map(|_| generator.measure(Duration::from_millis(50), &[]).expect("a window"));
            // Where the hypervisor takes the processors, it may seem to have taken more than there was.
            let window = windows
                .find(|window| {
                    let packets_pass = window.sent >= u64::from(CHUNK) && window.arrived > 0;
                    packets_pass && window.cpu.busy > 0.0
                })
                .expect("one in which packets pass");
            // What one window is late with arrives in the next.
            assert!(generator.sink.count().unwrap() <= generator.sent, "{}", path.name());
            assert!(window.cpu.tasks > 0.0, "{}: {window:?}", path.name());
        }
    }
}
