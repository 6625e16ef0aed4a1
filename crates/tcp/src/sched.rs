//! How the requests of a TCP service are scheduled over workers: names, stages, and the choices a scheduler makes.
//!
//! A request passes four [stages](Stage): packet delivery, TCP in, the application, TCP out. A [`Scheduler`] maps stages to workers
//! and puts a [queueing model](Queueing) before them. *Inline*: each worker does all stages. *Dispatcher D:A*: D network workers
//! have A ÷ D application workers (*members*) each. There is a model before the network workers, too, and the two are independent:
//! network workers have a receive queue and connections each, or share them (`+receive-cfcfs`, `+receive-ws`).
//!
//! Choices are pure functions of queue lengths ([`rheostat_base::choice`]), so that the runtime and a simulation share them:
//! [`least_loaded_member`] and [`member_of_connection`] (where a dispatcher puts a request), [`choose_theft`] (what an idle worker
//! takes from others), [`IdlePolicy`] (poll, pause or sleep), [`members_to_wake`]. Nothing here allocates but errors and lists of
//! names.
//!
//! | | receive queues | who takes from a queue | locks | who sends the reply |
//! |---|---|---|---|---|
//! | `inline-cfcfs` | 1 | any worker | queue, connection | who completes the oldest reply of the connection |
//! | `inline-dfcfs` | 1 for each worker | its worker | none | its worker |
//! | `inline-ws` | 1 for each worker | its worker, idle workers | queue, connection | who completes the oldest reply of the connection |
//! | `dispatcher-D:A` | D | its dispatcher | none | the dispatcher of the connection |
//! | `…+receive-cfcfs` | 1 | any dispatcher | queue, connection | the dispatcher that completes the oldest reply of the connection |
//! | `…+receive-ws` | D | its dispatcher, idle dispatchers | queue, connection | the dispatcher that completes the oldest reply of the connection |

mod error;
mod name;
mod scheduler;
mod stage;

pub use error::SchedulerError;
pub use name::{Dispatcher, Queueing, SchedulerName, Split};
pub use rheostat_base::choice::{
    IdleAction, IdlePolicy, Outstanding, Theft, choose_theft, least_loaded_member,
    member_of_connection, members_to_wake,
};
pub use scheduler::{Role, Scheduler};
pub use stage::Stage;
