//! Lanes, workers, hand-off and polling.
