//! Why a command failed, as `main` sees it: each command has an error type of its own, beside it.

use std::error::Error;

use rheostat_control::LoadError;

use crate::out;

/// The error of a command, of whatever type.
#[derive(Debug)]
pub(crate) struct CommandError(Box<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for CommandError {
    fn from(error: E) -> CommandError {
        CommandError(Box::new(error))
    }
}

impl CommandError {
    /// Prints it on standard error: mistakes of a configuration in colours, if that is a terminal.
    pub(crate) fn print(&self) {
        match cause(&*self.0) {
            Some(LoadError::Wrong(report)) => out::report(report),
            _ => err!("error: {}", self.0),
        }
    }
}

/// The first error of a type among `error` and its sources.
pub(crate) fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot begin: {0}")]
    struct Outer(#[from] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Inner(#[from] io::Error);

    #[test]
    fn a_cause_is_found_at_any_depth_and_not_where_there_is_none() {
        let error = Outer(Inner(io::Error::from(io::ErrorKind::NotFound)));
        assert!(cause::<Outer>(&error).is_some());
        let found = cause::<io::Error>(&error).expect("it is the cause of the cause");
        assert_eq!(found.kind(), io::ErrorKind::NotFound);
        assert!(cause::<LoadError>(&error).is_none());
    }
}
