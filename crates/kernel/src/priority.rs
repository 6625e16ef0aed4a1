//! The priority of a thread: a real-time class, or a nice value.

use std::fmt;
use std::io;
use std::str::FromStr;

use thiserror::Error;

use crate::sys::scheduling::Scheduling;

/// How the kernel ranks a thread among others on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// SCHED_FIFO at this priority, from 1 to 99: before every thread that is not of a real-time class, and without timer
    /// slack.
    Fifo(u8),
    /// SCHED_OTHER at this nice value, from −20 (the largest share) to 19.
    Nice(i8),
}

/// Text that is no priority.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PriorityError {
    /// Not `fifo:N` or `nice:N`.
    #[error("`{0}` is no priority")]
    Form(String),
    /// Outside of what SCHED_FIFO has.
    #[error("SCHED_FIFO has priorities from 1 to 99, not `{0}`")]
    Fifo(String),
    /// Outside of what nice values there are.
    #[error("nice values go from -20 to 19, not `{0}`")]
    Nice(String),
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Priority, PriorityError> {
        let form = || PriorityError::Form(text.to_owned());
        let (class, number) = text.split_once(':').ok_or_else(form)?;
        match class {
            "fifo" => match number.parse() {
                Ok(priority @ 1..=99) => Ok(Priority::Fifo(priority)),
                _ => Err(PriorityError::Fifo(number.to_owned())),
            },
            "nice" => match number.parse() {
                Ok(nice @ -20..=19) => Ok(Priority::Nice(nice)),
                _ => Err(PriorityError::Nice(number.to_owned())),
            },
            _ => Err(form()),
        }
    }
}

impl Priority {
    fn scheduling(self) -> Scheduling {
        match self {
            Priority::Fifo(priority) => Scheduling::fifo(priority),
            Priority::Nice(nice) => Scheduling::nice(nice),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Priority::Fifo(priority) => write!(f, "fifo:{priority}"),
            Priority::Nice(nice) => write!(f, "nice:{nice}"),
        }
    }
}

/// The kernel refused a priority.
#[derive(Debug, Error)]
#[error(
    "the kernel refused priority {priority} ({source}): run as root, give the process CAP_SYS_NICE, or allow it by \
     limit ({}); in a systemd unit also set RestrictRealtime=no and allow the system calls sched_setscheduler and setpriority",
    limit(*priority)
)]
pub struct PriorityRefused {
    /// What was requested.
    pub priority: Priority,
    /// What the kernel said.
    pub source: io::Error,
}

fn limit(priority: Priority) -> String {
    match priority {
        Priority::Fifo(priority) => format!("ulimit -r {priority}, LimitRTPRIO={priority}"),
        Priority::Nice(nice) => format!("ulimit -e {}, LimitNICE={nice}", 20 - i32::from(nice)),
    }
}

/// The priority of the calling thread, raised until this is dropped. Threads that it starts meanwhile inherit it and keep it:
/// so workers get a priority that they could not ask for themselves, once all rights are given up.
#[derive(Debug)]
pub struct RaisedPriority {
    before: Scheduling,
    /// Not to be dropped on another thread.
    thread: std::marker::PhantomData<*const ()>,
}

impl RaisedPriority {
    /// Gives the calling thread `priority`.
    ///
    /// # Errors
    /// [`PriorityRefused`] when the process may not.
    pub fn new(priority: Priority) -> Result<RaisedPriority, PriorityRefused> {
        let refused = |source| PriorityRefused { priority, source };
        let before = Scheduling::of_this_thread().map_err(refused)?;
        priority.scheduling().set().map_err(refused)?;
        Ok(RaisedPriority { before, thread: std::marker::PhantomData })
    }
}

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        // Back to what it was needs no rights, unless that was higher; then the thread keeps the lower one.
        let _ = self.before.set();
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn priorities_read_and_write() {
        for text in ["fifo:1", "fifo:99", "nice:-20", "nice:0", "nice:19"] {
            assert_eq!(text.parse::<Priority>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<Priority>().unwrap_err();
        assert_eq!(error("10"), PriorityError::Form("10".into()));
        assert_eq!(error("rr:10"), PriorityError::Form("rr:10".into()));
        assert_eq!(error("fifo:0"), PriorityError::Fifo("0".into()));
        assert_eq!(error("fifo:100"), PriorityError::Fifo("100".into()));
        assert_eq!(error("fifo:"), PriorityError::Fifo(String::new()));
        assert_eq!(error("nice:20"), PriorityError::Nice("20".into()));
        assert_eq!(error("nice:high"), PriorityError::Nice("high".into()));
    }

    #[test]
    fn a_thread_inherits_a_priority_and_keeps_it_when_the_other_is_back() {
        let own = || Scheduling::of_this_thread().unwrap();
        let outer = std::thread::spawn(move || {
            let before = own();
            // Lowering needs no privilege.
            let raised = RaisedPriority::new(Priority::Nice(7)).unwrap();
            let (ask, asked) = std::sync::mpsc::channel::<()>();
            let inner = std::thread::spawn(move || {
                asked.recv().unwrap();
                own()
            });
            assert_eq!(own(), Scheduling::nice(7));
            drop(raised);
            ask.send(()).unwrap();
            (before, own(), inner.join().unwrap())
        });
        let (before, after, inherited) = outer.join().unwrap();
        assert_eq!(inherited, Scheduling::nice(7));
        // Without CAP_SYS_NICE the nice value stays where it is.
        assert!(after == before || after == inherited, "{after:?}");
    }

    #[test]
    fn a_refused_priority_names_the_limit() {
        let refused = PriorityRefused {
            priority: Priority::Nice(-20),
            source: io::Error::from_raw_os_error(1),
        };
        let text = refused.to_string();
        assert!(text.contains("nice:-20") && text.contains("LimitNICE=-20"), "{text}");
        assert!(text.contains("ulimit -e 40"), "{text}");
    }
}
