//! The live feed: one snapshot a second, encoded once, for all listeners.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use hyper::body::{Body, Bytes, Frame};
use rheostat_observe::live_page::Recorder;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::flow_sampler::FlowSampler;
use super::patience::Patience;
use crate::control::{Answers, Depth};

/// Listeners at the same time; others are refused, so that scrapers find a place.
pub(super) const LISTENERS: usize = 64;
/// Frames that wait for a listener at most: one that is further behind is dropped.
const BEHIND: usize = 8;
/// The milliseconds that a browser waits before it connects again.
const RETRY: u64 = 2_000;

/// The times of a feed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Between two updates.
    pub(super) tick: Duration,
    /// How long a listener may leave an update unread.
    pub(super) stall: Duration,
}

impl Pace {
    pub(super) const USUAL: Pace =
        Pace { tick: Duration::from_secs(1), stall: Duration::from_secs(15) };
}

/// The feed of an instance.
pub(super) struct Feed {
    instance: Arc<dyn Answers>,
    pace: Pace,
    state: Mutex<FeedState>,
}

#[derive(Default)]
struct FeedState {
    recorder: Recorder,
    listeners: Vec<Sender<Bytes>>,
    ticks: u64,
    /// The frame of a new listener, until the next tick.
    first: Option<Bytes>,
}

impl Feed {
    pub(super) fn new(instance: Arc<dyn Answers>, pace: Pace) -> Feed {
        Feed { instance, pace, state: Mutex::default() }
    }

    /// Notes the run at every tick, for ever.
    pub(super) async fn run(self: Arc<Feed>) {
        let mut ticks = interval(self.pace.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let sampler = self.instance.view().cloned().map(FlowSampler::new);
        let sampler = Arc::new(Mutex::new(sampler));
        loop {
            ticks.tick().await;
            let (feed, sampler) = (self.clone(), sampler.clone());
            // A snapshot that panicked is not noted.
            let _ = spawn_blocking(move || {
                feed.tick(sampler.lock().unwrap_or_else(PoisonError::into_inner).as_mut());
            })
            .await;
        }
    }

    /// Notes the run as it is now. Without a listener, no lane is asked for anything.
    fn tick(&self, sampler: Option<&mut FlowSampler>) {
        let (is_heard, rate) = {
            let mut state = self.state();
            state.listeners.retain(|listener| !listener.is_closed());
            (!state.listeners.is_empty(), state.recorder.rate())
        };
        let sample = match (is_heard, sampler) {
            (true, Some(sampler)) => sampler.sample(rate),
            (false, Some(sampler)) => {
                sampler.stop();
                None
            }
            (_, None) => None,
        };
        let depth = if is_heard { Depth::Functions } else { Depth::Counters };
        let now = self.instance.snapshot(depth);
        let mut state = self.state();
        match sample {
            Some(sample) => state.recorder.flows.add(&sample, rate),
            None => state.recorder.flows.clear(),
        }
        state.recorder.note(SystemTime::now(), now, self.instance.events());
        state.ticks += 1;
        state.first = None;
        if !state.listeners.is_empty() {
            let frame = frame(state.ticks, "update", &state.recorder.update());
            state.listeners.retain(|listener| listener.try_send(frame.clone()).is_ok());
        }
    }

    /// A new listener, which gets the whole state first; none when there are as many as may be.
    pub(super) fn listen(&self, patience: Patience) -> Option<Listening> {
        let mut state = self.state();
        state.listeners.retain(|listener| !listener.is_closed());
        if state.listeners.len() >= LISTENERS {
            return None;
        }
        let FeedState { recorder, listeners, ticks, first } = &mut *state;
        let first = first.get_or_insert_with(|| {
            let whole = recorder.state(self.instance.events());
            let frame = frame(*ticks, "state", &whole);
            [format!("retry: {RETRY}\n").as_bytes(), &frame].concat().into()
        });
        let (sender, frames) = channel(BEHIND);
        // There is room for one.
        let _ = sender.try_send(first.clone());
        listeners.push(sender);
        patience.renew(self.pace.stall);
        Some(Listening { frames, patience, stall: self.pace.stall })
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event of the stream (HTML Living Standard, 9.2); `json` is one line.
fn frame(id: u64, event: &str, json: &str) -> Bytes {
    format!("id: {id}\nevent: {event}\ndata: {json}\n\n").into()
}

/// The body of a reply that goes on while its client reads.
#[derive(Debug)]
pub(super) struct Listening {
    frames: Receiver<Bytes>,
    patience: Patience,
    stall: Duration,
}

impl Body for Listening {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.frames.poll_recv(cx);
        if let Poll::Ready(Some(_)) = next {
            // The connection has taken what came before.
            self.patience.renew(self.stall);
        }
        next.map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
    }
}

#[cfg(test)]
mod tests;
