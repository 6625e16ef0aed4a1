//! Single flows leave their lane for another one and come home, while packets arrive: nothing is lost or doubled, flows keep their
//! order, and no lane waits for another. `docs/offloading.md` states why it works. (The idea is Dyssect's: its section 5.1.2.)
//!
//! The *home* of a flow is the lane that owns its shard. An *offloading lane* works on flows whose shards stay where they are. A
//! flow of home H goes to the offloading lane K and comes back:
//!
//! | step | lane | what |
//! |---|---|---|
//! | 1 | H | at the end of a poll, when all that it has sent has left, detaches the flow from its table and sends it to K |
//! | 2 | H | sends the flow's packets to K, behind the flow |
//! | 3 | K | processes them as long as every function of the chain can do without the shard; from the first packet on of which one cannot, *refuses* all: they go back to H, in order and untouched |
//! | 4 | H | to end it, or when the first refused packet comes: holds the flow's new packets, and sends a `Recall` message behind the last packet |
//! | 5 | K | on this message, which comes when all packets of the flow have been processed or sent back, waits until all that it has sent has left, and sends the flow back, behind all refused packets |
//! | 6 | H | on the flow, attaches it to its table again, and processes the refused packets, then those held |
//!
//! The flow is a value that is with one lane, or on its way. What has to be known of others is in messages, which have room of
//! their own. So there is no state that two lanes change.
//!
//! | file | what it does |
//! |---|---|
//! | `number` | names a flow that is away |
//! | `home` | what a home knows of its flows that are away: the protocol, without flows or lanes |
//! | `away` | the flows that are with an offloading lane: the other side of it |
//! | `hops` | how long packets are on their way there, where a measurement requests it |

mod away;
mod home;
mod hops;
#[cfg(all(test, loom))]
mod models;
mod number;

use rheostat_state::DetachedFlow;

pub(crate) use away::Away;
pub(crate) use home::Home;
pub(crate) use hops::HopMeter;
pub use number::FlowNumber;

/// The flows of other lanes with which an offloading lane works.
#[derive(Debug, Default)]
pub struct OffloadedFlows(pub(crate) Away<DetachedFlow>);

impl OffloadedFlows {
    /// The flow; `None` once one of its packets was refused, so that all later ones are.
    #[inline]
    pub fn get_mut(&mut self, number: FlowNumber) -> Option<&mut DetachedFlow> {
        self.0.get_mut(number)
    }

    /// Refuses all further packets of a flow: they go home, and so will the flow.
    pub fn refuse(&mut self, number: FlowNumber) {
        self.0.refuse(number);
    }
}
