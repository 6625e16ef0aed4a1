//! Chains on shared objects: whatever a transaction did is undone when it conflicts, nothing is done twice,
//! nothing is lost, and a packet that always conflicts gets through in the end.

mod alone;
mod disturbed;
mod erratic;
mod panics;
mod prefetch;
mod threads;
mod traced;
mod undone;
