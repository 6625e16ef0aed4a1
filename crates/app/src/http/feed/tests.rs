//! Timed: clock.

use std::task::Waker;

use super::*;
use crate::http::counted::Counted;

fn feed() -> (Feed, Arc<Counted>) {
    let instance = Arc::new(Counted::default());
    (Feed::new(instance.clone(), Pace::USUAL), instance)
}

/// The frames that are there, until the listener is dropped or has taken all.
fn taken(listening: &mut Listening) -> (usize, bool) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut frames = 0;
    loop {
        match Pin::new(&mut *listening).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(_))) => frames += 1,
            Poll::Ready(_) => return (frames, true),
            Poll::Pending => return (frames, false),
        }
    }
}

#[test]
fn a_listener_that_does_not_read_is_dropped_and_others_go_on() {
    let (feed, _) = feed();
    let listen = || feed.listen(Patience::new(Duration::from_secs(60))).unwrap();
    let (mut stalled, mut reading) = (listen(), listen());
    for _ in 0..3 * BEHIND {
        feed.tick(None);
        assert!(!taken(&mut reading).1, "it has read everything");
    }
    assert_eq!(taken(&mut stalled), (BEHIND, true), "what waits is bounded");
    assert_eq!(feed.state().listeners.len(), 1);
}

#[test]
fn lanes_are_asked_while_somebody_listens_and_once_for_all() {
    let (feed, instance) = feed();
    feed.tick(None);
    assert_eq!(instance.asked(), 0);
    let listening: Vec<_> =
        (0..LISTENERS).map_while(|_| feed.listen(Patience::new(Duration::ZERO))).collect();
    assert_eq!(listening.len(), LISTENERS);
    assert!(feed.listen(Patience::new(Duration::ZERO)).is_none());
    feed.tick(None);
    assert_eq!(instance.asked(), 1);
    drop(listening);
    feed.tick(None);
    assert_eq!((instance.asked(), feed.state().listeners.len()), (1, 0));
}
