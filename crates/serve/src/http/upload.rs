//! Files that clients put.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::conditions::{Conditions, Outcome, Validators};
use super::method::Method;
use super::status::Status;
use super::tree::Tree;

/// Distinguishes uploads of a process that are under way.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// How names of files begin that are not complete.
pub(super) const UNFINISHED: &str = ".rheo-";
/// The longest name that Linux has.
const NAME: usize = 255;

/// A file on its way. It gets its name when it is complete; until then it has one that starts with a dot, and what is not completed
/// is removed. One lane at a time has it, so the lock never waits.
#[derive(Debug, Default)]
pub struct Upload(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    file: File,
    directory: String,
    temporary: String,
    name: String,
    /// The conditions under which the file may get its name.
    conditions: Option<Box<Conditions>>,
    /// Removes the file if it is not completed.
    tree: Tree,
    _permit: Permit,
}

/// One upload of those that may be under way.
#[derive(Debug)]
struct Permit(Arc<AtomicUsize>);

impl Permit {
    /// Takes one of the permits that are left.
    fn take(left: &Arc<AtomicUsize>) -> Option<Permit> {
        // Relaxed: the count publishes nothing.
        let less = |count: usize| count.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Permit(left.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Upload {
    /// Opens the file that is to become `path`, if the conditions hold at `now`, in seconds since 1970.
    pub(super) fn begin(
        &self,
        tree: &Tree,
        permits: &Arc<AtomicUsize>,
        path: &str,
        conditions: Option<Box<Conditions>>,
        now: i64,
    ) -> Result<(), Status> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        check(conditions.as_deref(), tree, path, now)?;
        let permit = Permit::take(permits).ok_or(Status::UNAVAILABLE)?;
        *state = Some(Open::new(tree, path, conditions, permit).map_err(status_of)?);
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Status> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.as_mut().ok_or(Status::INTERNAL)?;
        open.file.write_all(bytes).map_err(status_of)
    }

    /// Gives the file its name, if the conditions still hold. Returns whether there was none of that name.
    pub(super) fn finish(&self, now: i64) -> Result<bool, Status> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = state.take().ok_or(Status::INTERNAL)?;
        let conditions = open.conditions.as_deref();
        check(conditions, &open.tree, &format!("{}/{}", open.directory, open.name), now)?;
        let must_be_new = conditions.is_some_and(Conditions::want_new);
        let Open { directory, temporary, name, tree, .. } = &open;
        let is_new = match tree.rename(directory, temporary, name, must_be_new) {
            Err(error) if must_be_new && error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Status::FAILED);
            }
            renamed => renamed.map_err(status_of)?,
        };
        open.temporary.clear();
        Ok(is_new)
    }
}

/// The status of an upload whose file cannot be written. A part of its path may be missing (RFC 9110, section 9.3.4).
fn status_of(error: io::Error) -> Status {
    match Status::of(&error) {
        Status::NOT_FOUND => Status::CONFLICT,
        status => status,
    }
}

/// Evaluates conditions for the file that has the path now (RFC 9110, section 13.2.1).
fn check(conditions: Option<&Conditions>, tree: &Tree, path: &str, now: i64) -> Result<(), Status> {
    let Some(conditions) = conditions else { return Ok(()) };
    let file = match tree.find(path) {
        Ok(Some((_, version))) => Some(Validators::of(&version, now)),
        Ok(None) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(status_of(error)),
    };
    match conditions.evaluate(Method::Put, file.as_ref(), now) {
        Outcome::Proceed => Ok(()),
        Outcome::NotModified | Outcome::Failed => Err(Status::FAILED),
    }
}

impl Open {
    fn new(
        tree: &Tree,
        path: &str,
        conditions: Option<Box<Conditions>>,
        permit: Permit,
    ) -> io::Result<Open> {
        let (directory, name) = path.rsplit_once('/').unwrap_or_default();
        if name.is_empty() || name == "." || name == ".." {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Not only when all of it has arrived.
        if name.len() > NAME {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{UNFINISHED}{}-{number}", std::process::id());
        let tree = tree.try_clone()?;
        let file = tree.create(&format!("{directory}/{temporary}"))?;
        let (directory, name) = (directory.to_owned(), name.to_owned());
        Ok(Open { file, directory, temporary, name, conditions, tree, _permit: permit })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.temporary.is_empty() {
            // A failure cannot be reported here; the name shows what is left.
            let _ = self.tree.remove(&self.directory, &self.temporary);
        }
    }
}
