//! A page as it comes from the instance.

use std::process::ExitCode;

use rheostat_observe::control::{ListedRow, Reply, Request};

use crate::control::{ClientError, Target};

/// What stands below the rows of a page.
#[derive(Debug)]
pub(super) struct PageEnd {
    /// Rows on all pages.
    pub(super) matched: u64,
    /// Lanes that have not answered.
    pub(super) silent: u64,
    /// The cursor of the next page.
    pub(super) next: Option<String>,
}

impl PageEnd {
    /// The exit status: a failure when rows are missing, which is reported.
    pub(super) fn status(&self) -> ExitCode {
        if self.silent == 0 {
            return ExitCode::SUCCESS;
        }
        err!("{} lanes have not answered in time: their rows are missing", self.silent);
        ExitCode::FAILURE
    }
}

/// Requests a page and calls `each` with its rows as they come.
///
/// # Errors
/// [`ClientError`] when the instance cannot be asked, refuses, or sends rows of another listing.
pub(super) fn receive_page<R: ListedRow>(
    target: &Target,
    request: &Request,
    mut each: impl FnMut(R),
) -> Result<PageEnd, ClientError> {
    let mut client = target.connect()?;
    client.send(request)?;
    loop {
        match client.receive()?.ok_or(ClientError::Ended)? {
            Reply::Rows(rows) => {
                let rows = R::from_rows(rows).ok_or(ClientError::Unexpected)?;
                rows.into_iter().for_each(&mut each);
            }
            Reply::Listed { matched, silent, next } => {
                return Ok(PageEnd { matched, silent, next });
            }
            _ => return Err(ClientError::Unexpected),
        }
    }
}
