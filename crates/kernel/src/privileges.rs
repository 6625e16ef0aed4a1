//! Giving up what a process may do beyond what it needs.
//!
//! On Linux, capabilities and user belong to a thread and are inherited by the threads it starts. So the main
//! thread gives up all it has once devices are open and before workers are started, and a thread that is
//! started before does so first of all. [`holders`] makes sure that none was forgotten.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getgid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use thiserror::Error;

use crate::capability::Capability;
use crate::proc_fields::ProcFields;

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's number.
    pub user: u32,
    /// The group's number; there will be no other groups.
    pub group: u32,
}

/// Privileges could not be given up.
#[derive(Debug, Error)]
pub enum PrivilegeError {
    /// The user or the group could not be changed.
    #[error(
        "cannot become user {} and group {}: {source}; start as root, or leave `user` and `group` out",
        identity.user, identity.group
    )]
    Identity {
        /// The identity that was to be taken.
        identity: Identity,
        /// What the operating system said.
        source: io::Error,
    },
    /// The capabilities could not be dropped.
    #[error("cannot drop capabilities: {0}")]
    Capabilities(io::Error),
    /// Some threads have kept what they had.
    #[error("threads have kept their privileges: {0}")]
    Kept(String),
}

/// The identity that all threads are to take.
static IDENTITY: OnceLock<Identity> = OnceLock::new();

/// Sets the identity that every thread takes when it gives up its privileges; once, before any does.
///
/// # Panics
/// When it was set before.
pub fn become_later(identity: Identity) {
    IDENTITY.set(identity).expect("the identity is set once");
}

/// Takes everything from the calling thread, and so from those that it starts: the user if another one was
/// named, all capabilities, and the means to get them back by running a program.
///
/// # Errors
/// [`PrivilegeError`] when something is left.
pub fn give_up() -> Result<(), PrivilegeError> {
    give_up_but(CapabilitySet::empty())
}

/// The same, but the calling thread keeps of `kept` what it has: for a thread that opens devices again and
/// looks at no packet. Threads that it starts keep it, too, unless they [`give_up`].
///
/// # Errors
/// [`PrivilegeError`] when something else is left.
pub fn give_up_all_but(kept: &[Capability]) -> Result<(), PrivilegeError> {
    give_up_but(kept.iter().fold(CapabilitySet::empty(), |all, one| all | one.set()))
}

fn give_up_but(kept: CapabilitySet) -> Result<(), PrivilegeError> {
    // Needs a capability itself, so it comes first. Without it there is nothing to lose: what bounds the
    // programs that are run counts for nothing below, where none may gain by being run.
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // Beyond the last one.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(PrivilegeError::Capabilities(error.into())),
        }
    }
    let fails = |error: Errno| PrivilegeError::Capabilities(error.into());
    let permitted = capabilities(None).map_err(fails)?.permitted;
    if !kept.is_empty() {
        // Another user would lose them.
        set_keep_capabilities(true).map_err(fails)?;
    }
    if let Some(&identity) = IDENTITY.get() {
        change_to(identity)
            .map_err(|error| PrivilegeError::Identity { identity, source: error.into() })?;
    }
    limit_capabilities(kept & permitted).map_err(fails)
}

fn change_to(identity: Identity) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    if (getuid(), getgid()) == (user, group) {
        return Ok(());
    }
    // The user last: another user may not change the groups.
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)
}

fn limit_capabilities(kept: CapabilitySet) -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    set_no_new_privs(true)
}

/// How long threads that were just started may take to give up theirs.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Makes sure that no thread of the process is left with a capability, but for the one called `keeper`. Waits
/// for those that were started a moment ago.
///
/// # Errors
/// [`PrivilegeError::Kept`] with the names of those that are. Where `/proc` cannot be read, nothing is
/// known, and nothing said.
pub fn check_all_threads(keeper: Option<&str>) -> Result<(), PrivilegeError> {
    let start = Instant::now();
    loop {
        let others = |names: Vec<String>| {
            names.into_iter().filter(|name| Some(name.as_str()) != keeper).collect::<Vec<_>>()
        };
        match holders().map(others) {
            Ok(names) if names.is_empty() => return Ok(()),
            Ok(_) if start.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(1)),
            Ok(names) => return Err(PrivilegeError::Kept(names.join(", "))),
            Err(_) => return Ok(()),
        }
    }
}

/// The names of the process's threads that have capabilities.
///
/// # Errors
/// Those of reading `/proc`.
pub fn holders() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile.
        let status = ProcFields::read(&task?.path().join("status"));
        let has = |name| status.set(name).is_some_and(|set| set != 0);
        if has("CapPrm") || has("CapEff") {
            names.push(status.field("Name").unwrap_or_default().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock.

    use super::*;

    #[test]
    fn a_thread_that_gives_up_has_nothing_and_the_others_keep_theirs() {
        let before = holders().unwrap();
        let name = "gives up";
        let thread = std::thread::Builder::new().name(name.into()).spawn(|| {
            give_up().unwrap();
            let inherits = std::thread::spawn(|| fs::read_to_string("/proc/thread-self/status"));
            (holders().unwrap(), inherits.join().unwrap().unwrap())
        });
        let (holders, status) = thread.unwrap().join().unwrap();
        assert!(!holders.iter().any(|holder| holder == name), "{holders:?}");
        for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
            assert!(status.contains(line), "{line} is missing:\n{status}");
        }
        if before.is_empty() {
            println!("not run in full: without capabilities there are none to keep");
            return;
        }
        assert!(
            matches!(check_all_threads(None), Err(PrivilegeError::Kept(_))),
            "this one has its own"
        );
        assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    }

    #[test]
    fn a_thread_keeps_what_it_is_to_keep_and_nothing_else() {
        let has = capabilities(None).unwrap().permitted;
        let kept = [Capability::NetRaw, Capability::IpcLock];
        let thread = std::thread::spawn(move || {
            give_up_all_but(&kept).unwrap();
            capabilities(None).unwrap()
        });
        let CapabilitySets { effective, permitted, inheritable } = thread.join().unwrap();
        let expected = has & (CapabilitySet::NET_RAW | CapabilitySet::IPC_LOCK);
        assert_eq!((effective, permitted), (expected, expected));
        assert_eq!(inheritable, CapabilitySet::empty());
    }
}
