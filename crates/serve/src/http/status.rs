//! Status codes.

use std::io;

/// A status code and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) u16, pub(super) &'static str);

impl Status {
    pub(super) const OK: Status = Status(200, "OK");
    pub(super) const CREATED: Status = Status(201, "Created");
    pub(super) const PARTIAL: Status = Status(206, "Partial Content");
    pub(super) const MOVED: Status = Status(301, "Moved Permanently");
    pub(super) const NOT_MODIFIED: Status = Status(304, "Not Modified");
    pub(super) const BAD_REQUEST: Status = Status(400, "Bad Request");
    pub(super) const FORBIDDEN: Status = Status(403, "Forbidden");
    pub(super) const NOT_FOUND: Status = Status(404, "Not Found");
    pub(super) const NOT_ALLOWED: Status = Status(405, "Method Not Allowed");
    pub(super) const TIMEOUT: Status = Status(408, "Request Timeout");
    pub(super) const CONFLICT: Status = Status(409, "Conflict");
    pub(super) const FAILED: Status = Status(412, "Precondition Failed");
    pub(super) const TOO_LONG: Status = Status(413, "Content Too Large");
    pub(super) const NAME_TOO_LONG: Status = Status(414, "URI Too Long");
    pub(super) const UNSATISFIABLE: Status = Status(416, "Range Not Satisfiable");
    pub(super) const HEAD_TOO_LONG: Status = Status(431, "Request Header Fields Too Large");
    pub(super) const INTERNAL: Status = Status(500, "Internal Server Error");
    pub(super) const NOT_IMPLEMENTED: Status = Status(501, "Not Implemented");
    pub(super) const UNAVAILABLE: Status = Status(503, "Service Unavailable");
    pub(super) const VERSION: Status = Status(505, "HTTP Version Not Supported");
    pub(super) const NO_SPACE: Status = Status(507, "Insufficient Storage");

    /// The status of a reply to a request whose file cannot be read or written.
    pub(super) fn of(error: &io::Error) -> Status {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Status::NOT_FOUND,
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::ReadOnlyFilesystem => Status::FORBIDDEN,
            io::ErrorKind::IsADirectory => Status::CONFLICT,
            io::ErrorKind::InvalidFilename => Status::NAME_TOO_LONG,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Status::NO_SPACE,
            _ if is_out_of_files(error) => Status::UNAVAILABLE,
            _ => Status::INTERNAL,
        }
    }
}

/// Whether the process, or the system, has as many open files as it may.
pub(super) fn is_out_of_files(error: &io::Error) -> bool {
    let error = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(error, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
