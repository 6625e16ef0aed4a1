//! Selection, copies and traces of packets. A [`Filter`] states which packets of an interface are rheostat's; an [`Expression`]
//! selects packets for a reader outside a run. Every lane has a mirror, which costs a test per burst while there is no reader and
//! copies packets ([`Wanted`]) or notes their steps ([`trace`]) while there is one; [`Pcapng`] writes files of the copies.

pub mod expression;
pub mod filter;
mod flow_expression;
pub mod link_type;
mod mirror;
pub mod pcapng;
pub mod trace;
mod wanted;

pub use expression::{Expression, ExpressionError, Fields};
pub use filter::{Endpoints, Filter, FilterError, Match};
pub use flow_expression::{FlowExpression, FlowExpressionError};
pub use mirror::{Capture, Epoch, LaneMirror, Mirrors, TapBusy, Trace};
pub use pcapng::{Pcapng, Taken};
pub use wanted::{Copied, Point, Wanted};
