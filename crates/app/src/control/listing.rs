//! The form of listings: their flags, how they are printed, and how the instance sends them.

mod args;
mod pages;
mod watching;

use std::io;
use std::process::ExitCode;

use rheostat_observe::control::{
    self, ListRequest, ListedRow, Listing, ListingRow, PIECE, Page, Reply, Request, Selection,
    TextTable,
};

pub(crate) use self::args::ListingArgs;
use self::pages::{PageEnd, receive_page};
use super::ClientError;
use super::peer::Peer;

/// Requests a listing and prints it, once or at intervals.
///
/// # Errors
/// [`ClientError`] when the instance cannot be asked, or refuses.
pub(crate) fn print<R: ListedRow>(
    args: &ListingArgs,
    of: Listing,
    filter: Option<String>,
) -> Result<ExitCode, ClientError> {
    let request = Request::List(ListRequest {
        of,
        filter,
        sort: args.sort.clone(),
        limit: args.limit,
        cursor: args.cursor.clone(),
        count: args.count,
    });
    match args.watch {
        Some(pause) => watching::follow::<R>(args, &request, pause),
        None => print_once::<R>(args, &request),
    }
}

fn print_once<R: ListedRow>(
    args: &ListingArgs,
    request: &Request,
) -> Result<ExitCode, ClientError> {
    let mut shown = 0_u64;
    let mut rows = Vec::new();
    // JSON is printed as it comes: only text needs all rows for the widths of its columns.
    let end = receive_page(&args.target, request, |row: R| {
        if args.json {
            let start = if shown == 0 { "[" } else { "," };
            out!("{start}{}", control::line(&row).trim_end());
        } else {
            rows.push(row);
        }
        shown += 1;
    })?;
    match (args.count, args.json, shown) {
        (true, true, _) => out!("{{\"count\":{}}}", end.matched),
        (true, false, _) => out!("{}", end.matched),
        (false, true, 0) => out!("[]"),
        (false, true, _) => out!("]"),
        (false, false, _) => out!("{}", TextTable(&rows)),
    }
    if !args.count {
        report_rest(&end, shown);
    }
    Ok(end.status())
}

/// How many rows are left, and how they are shown.
fn report_rest(end: &PageEnd, shown: u64) {
    if let Some(next) = &end.next {
        err!("{shown} of {} rows are shown; --cursor {next} shows the next ones", end.matched);
    }
}

/// The page of `request` among `rows`, which are all rows that match.
///
/// # Errors
/// The message that refuses the request.
pub(super) fn select<R: ListingRow>(
    request: &ListRequest,
    rows: impl IntoIterator<Item = R>,
) -> Result<Page<R>, String> {
    let mut selection = Selection::new(request).map_err(|error| error.to_string())?;
    selection.extend(rows);
    Ok(selection.finish())
}

/// Sends a page, or the reason that there is none. `silent` lanes have not answered.
///
/// # Errors
/// When the client has gone, or does not read.
pub(super) fn send<R: ListedRow>(
    page: Result<Page<R>, String>,
    silent: u64,
    peer: &mut Peer,
) -> io::Result<()> {
    let Page { rows, matched, next } = match page {
        Ok(page) => page,
        Err(message) => return peer.send(&Reply::Error { message }),
    };
    let mut rows = rows.into_iter();
    loop {
        let piece: Vec<_> = rows.by_ref().take(PIECE).collect();
        if piece.is_empty() {
            return peer.send(&Reply::Listed { matched, silent, next });
        }
        peer.send(&Reply::Rows(R::into_rows(piece)))?;
    }
}

/// Sends a page, and how many lanes have not answered, or the reason that there is none.
///
/// # Errors
/// As [`send`].
pub(super) fn send_of_lanes<R: ListedRow>(
    page: Result<(Page<R>, u64), String>,
    peer: &mut Peer,
) -> io::Result<()> {
    match page {
        Ok((page, silent)) => send(Ok(page), silent, peer),
        Err(message) => peer.send(&Reply::Error { message }),
    }
}
