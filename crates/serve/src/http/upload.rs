//! Files that clients put.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::tree::Tree;

/// Distinguishes uploads of a process that are under way.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A file on its way. It gets its name when it is complete; until then it has one that starts with a dot, and what is not completed
/// is removed. One lane at a time has it, so the lock never waits.
#[derive(Debug)]
pub struct Upload(Mutex<State>);

#[derive(Debug)]
enum State {
    /// Nothing was written yet.
    New,
    /// It is to have this path, and no bytes.
    Empty(String),
    Open(Open),
    /// It is over, one way or the other.
    Over,
}

#[derive(Debug)]
struct Open {
    file: File,
    directory: String,
    temporary: String,
    name: String,
    /// Removes the file if it is not completed.
    tree: Tree,
}

impl Upload {
    pub(super) fn new() -> Upload {
        Upload(Mutex::new(State::New))
    }

    /// One of no bytes.
    pub(super) fn empty(path: String) -> Upload {
        Upload(Mutex::new(State::Empty(path)))
    }

    /// Opens the file that is to become `path`.
    pub(super) fn begin(&self, tree: &Tree, path: &str) -> io::Result<()> {
        let open = Open::new(tree, path);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State::Over;
        *state = State::Open(open?);
        Ok(())
    }

    /// Appends bytes. Behind the last ones, the file gets its name; then the result states whether it is new.
    pub(super) fn write(
        &self,
        tree: &Tree,
        bytes: &[u8],
        is_last: bool,
    ) -> io::Result<Option<bool>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match std::mem::replace(&mut *state, State::Over) {
            State::Open(open) => open,
            State::Empty(path) => Open::new(tree, &path)?,
            State::New | State::Over => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        open.file.write_all(bytes)?;
        if !is_last {
            *state = State::Open(open);
            return Ok(None);
        }
        let is_new = open.tree.rename(&open.directory, &open.temporary, &open.name)?;
        open.temporary.clear();
        Ok(Some(is_new))
    }
}

impl Open {
    fn new(tree: &Tree, path: &str) -> io::Result<Open> {
        let (directory, name) = path.rsplit_once('/').unwrap_or_default();
        if name.is_empty() || name == "." || name == ".." {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".rheo-{}-{number}", std::process::id());
        let tree = tree.try_clone()?;
        let file = tree.create(&format!("{directory}/{temporary}"))?;
        let (directory, name) = (directory.to_owned(), name.to_owned());
        Ok(Open { file, directory, temporary, name, tree })
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
