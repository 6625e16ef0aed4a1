//! Synthetic work: each request takes a service time that is drawn from a distribution, spent on square roots or on reads of
//! memory. Schedulers are compared by it.
//!
//! A client sends [`WorkRequest`]s and gets [`WorkReply`]s, which say the class of the request, the time it should have taken and
//! the time it took. [`calibration`] finds how many operations take a time.

pub mod buffer;
pub mod calibration;
pub mod computation;
pub mod frame;
mod kind;
mod meter;
mod operations;
pub mod service_times;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rheostat_base::{Clock, CoreId, LaneId};
use rheostat_kernel::core_set::pin_current_thread;

pub use self::buffer::BufferSize;
pub use self::computation::Computation;
pub use self::frame::{WorkReply, WorkRequest};
pub use self::kind::WorkKind;
pub use self::meter::{ClassTimes, WorkMonitor};
pub use self::operations::Operations;
pub use self::service_times::ServiceTimes;
pub use self::settings::{
    WorkConfig, application, buffer_bytes, calibrated, program, wrong_buffer,
};

use self::frame::FrameError;
use self::meter::Meter;
use crate::application::{Application, Encoded, Handled, Parsed, ReplyBuffer};

/// An application whose requests take as long as is wanted.
pub struct Work {
    kind: WorkKind,
    times: ServiceTimes,
    operations: Operations,
    buffer: usize,
    cores: Vec<CoreId>,
    clock: Clock,
    monitor: WorkMonitor,
}

/// What a worker has: its buffer, and what it measures.
#[derive(Debug)]
pub struct WorkWorker {
    computation: Computation,
    meter: Arc<Meter>,
}

impl Work {
    /// `buffer` bytes per worker are read by work that reads memory; other work has none. Worker `n` runs on `cores[n]`, where
    /// there is one: its buffer is written there first, so that it lies on that core's node.
    pub fn new(
        config: &WorkConfig,
        operations: Operations,
        buffer: usize,
        cores: Vec<CoreId>,
    ) -> Work {
        Work {
            kind: config.work,
            times: config.service_time.clone(),
            operations,
            buffer: if config.work.reads_memory() { buffer } else { 0 },
            cores,
            clock: Clock::new(),
            monitor: WorkMonitor::default(),
        }
    }

    /// Reads what requests took.
    pub fn monitor(&self) -> WorkMonitor {
        self.monitor.clone()
    }

    fn computation(&self, lane: LaneId) -> Computation {
        let seed = u64::from(lane.0) + 1;
        let Some(&core) = self.cores.get(lane.index()) else {
            return Computation::new(self.kind, self.buffer, seed);
        };
        let (kind, buffer) = (self.kind, self.buffer);
        let made = thread::spawn(move || {
            // Refused, the buffer lies wherever this thread runs.
            let _ = pin_current_thread(core);
            Computation::new(kind, buffer, seed)
        });
        made.join().unwrap_or_else(|_| Computation::new(kind, buffer, seed))
    }
}

impl Application for Work {
    type Conn = ();
    type Worker = WorkWorker;
    /// The reply, without the time that the request takes.
    type Request = WorkReply;
    type Reply = Option<WorkReply>;

    fn worker(&self, lane: LaneId) -> WorkWorker {
        WorkWorker { computation: self.computation(lane), meter: self.monitor.add() }
    }

    fn accept(&self, _: SocketAddr) {}

    fn parse(&self, (): &mut (), bytes: &[u8]) -> Parsed<WorkReply, Option<WorkReply>> {
        match WorkRequest::parse(bytes) {
            Ok(request) => {
                let (class, target) = match request.time {
                    0 => self.times.draw(request.draw),
                    time => (request.class, time),
                };
                let WorkRequest { number, length, .. } = request;
                let request = WorkReply { number, length, class, target, took: 0 };
                Parsed::Request { request, len: length as usize, class }
            }
            Err(FrameError::Partial(needed)) => Parsed::Need(needed),
            Err(FrameError::Wrong(_)) => Parsed::Refuse(None),
        }
    }

    fn handle(
        &self,
        worker: &mut WorkWorker,
        request: WorkReply,
    ) -> Handled<WorkReply, Option<WorkReply>> {
        let WorkReply { class, target, .. } = request;
        let start = self.clock.cycles();
        worker.computation.run(self.operations.of(target));
        let took = self.clock.nanos_between(start, self.clock.cycles());
        worker.meter.record(class, target, took);
        Handled::Done(Some(WorkReply { took, ..request }))
    }

    fn encode(
        &self,
        (): &mut (),
        reply: &mut Option<WorkReply>,
        out: &mut ReplyBuffer<'_>,
    ) -> Encoded {
        match reply {
            Some(reply) => {
                reply.write(|bytes| out.put(bytes));
                Encoded::Done
            }
            None => Encoded::Close,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ended, rehearse};

    fn work(times: &str) -> Work {
        let config = WorkConfig {
            work: WorkKind::Chase,
            service_time: times.parse().unwrap(),
            ..WorkConfig::default()
        };
        Work::new(&config, Operations::new([(1_000, 10)]), 4_096, Vec::new())
    }

    fn replies(mut bytes: &[u8]) -> Vec<WorkReply> {
        let mut replies = Vec::new();
        while let Ok(reply) = WorkReply::parse(bytes) {
            bytes = &bytes[reply.length as usize..];
            replies.push(reply);
        }
        assert!(bytes.is_empty());
        replies
    }

    #[test]
    fn replies_name_request_class_and_time_however_requests_are_cut() {
        let work = work("0.5:1us,0.5:100us");
        let request = |number, draw| WorkRequest { number, length: 128, draw, time: 0, class: 0 };
        let mut sent = Vec::new();
        request(1, 0).write(|bytes| sent.extend_from_slice(bytes));
        request(2, u64::MAX).write(|bytes| sent.extend_from_slice(bytes));
        let own = WorkRequest { number: 3, length: 40, draw: 0, time: 7_000, class: 5 };
        own.write(|bytes| sent.extend_from_slice(bytes));
        for piece in [1, 7, 40, 128, 500] {
            let pieces: Vec<&[u8]> = sent.chunks(piece).collect();
            let rehearsal = rehearse(&work, &pieces);
            assert_eq!(rehearsal.ended, None);
            let replies = replies(&rehearsal.said);
            let named: Vec<_> =
                replies.iter().map(|r| (r.number, r.length, r.class, r.target)).collect();
            assert_eq!(named, [(1, 128, 0, 1_000), (2, 128, 1, 100_000), (3, 40, 5, 7_000)]);
        }
        let times = work.monitor().classes();
        assert_eq!(
            times.iter().map(|t| (t.class, t.requests)).collect::<Vec<_>>(),
            [(0, 5), (1, 5), (5, 5)]
        );
        assert_eq!((times[0].target_ns, times[2].target_ns), (1_000.0, 7_000.0));
    }

    #[test]
    fn bytes_that_are_no_request_end_the_connection_without_a_reply() {
        let rehearsal = rehearse(&work("1us"), &[b"GET / HTTP/1.1\r\n\r\n"]);
        assert_eq!((rehearsal.said.len(), rehearsal.ended), (0, Some(Ended::Closed)));
        let too_long = WorkRequest {
            number: 1,
            length: 40,
            draw: 0,
            time: service_times::LONGEST + 1,
            class: 0,
        };
        let mut bytes = Vec::new();
        too_long.write(|piece| bytes.extend_from_slice(piece));
        assert_eq!(rehearse(&work("1us"), &[&bytes]).ended, Some(Ended::Closed));
    }

    #[test]
    fn a_worker_gets_its_buffer_on_its_core() {
        let config = WorkConfig { work: WorkKind::Random, ..WorkConfig::default() };
        let core = rheostat_kernel::CoreSet::available().unwrap().cores()[0];
        let work = Work::new(&config, Operations::new([(1_000, 1)]), 4_096, vec![core]);
        assert_eq!(work.worker(LaneId(0)).computation.buffer(), 4_096);
        assert_eq!(work.worker(LaneId(1)).computation.buffer(), 4_096);
    }
}
