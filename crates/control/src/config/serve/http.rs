//! Settings of `service = "http"`.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rheostat_serve::http::HttpConfig;

use rheostat_settings::findings::Findings;
use rheostat_settings::quantity::{Bytes, Span};
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::number::{duration, size};
use rheostat_settings::reader::convert::{boolean, path};

/// How long the head of a request may take, unless another time is given.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const HEADER_TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3_600);
/// A file may look as it did that long ago.
const CACHE_TIMES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
const CACHE_MEMORY: RangeInclusive<u64> = 0..=1 << 40;
const UPLOADS: RangeInclusive<u64> = 1..=1 << 50;

/// Files of a directory over HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpServiceConfig {
    /// What is served, and how.
    pub files: HttpConfig,
    /// How long the head of a request may take from its first byte on. Then the reply is 408.
    pub header_timeout: Duration,
}

/// The keys that only this service has.
pub(super) const KEYS: [&str; 7] = [
    "root",
    "writable",
    "dotfiles",
    "longest_upload",
    "header_timeout",
    "cache_time",
    "cache_memory",
];

impl HttpServiceConfig {
    /// Serves the files beneath `root`.
    pub fn new(root: impl Into<PathBuf>) -> HttpServiceConfig {
        HttpServiceConfig { files: HttpConfig::new(root), header_timeout: HEADER_TIMEOUT }
    }

    pub(super) fn read(
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> Option<HttpServiceConfig> {
        let root = table.require("root", "root = \"/srv/www\"", findings, path);
        let usual = HttpConfig::new("");
        let writable = table.read("writable", findings, boolean);
        let dotfiles = table.read("dotfiles", findings, boolean);
        let longest_upload = match writable {
            Some(true) => table.read("longest_upload", findings, size(UPLOADS)),
            _ => {
                table.refuse(&["longest_upload"], "writable = true", findings);
                None
            }
        };
        let header_timeout = table.read("header_timeout", findings, duration(HEADER_TIMEOUTS));
        let cache_time = table.read("cache_time", findings, duration(CACHE_TIMES));
        let cache_memory = table.read("cache_memory", findings, size(CACHE_MEMORY));
        let files = HttpConfig {
            root: root?,
            is_writable: writable.unwrap_or(usual.is_writable),
            has_dotfiles: dotfiles.unwrap_or(usual.has_dotfiles),
            longest_upload: longest_upload.unwrap_or(usual.longest_upload),
            cache_time: cache_time.unwrap_or(usual.cache_time),
            cache_memory: cache_memory
                .map_or(usual.cache_memory, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        };
        let header_timeout = header_timeout.unwrap_or(HEADER_TIMEOUT);
        Some(HttpServiceConfig { files, header_timeout })
    }
}

impl fmt::Display for HttpServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpConfig {
            root,
            is_writable,
            has_dotfiles,
            longest_upload,
            cache_time,
            cache_memory,
        } = &self.files;
        write!(f, "http, files of {}", root.display())?;
        if *has_dotfiles {
            f.write_str(" with dotfiles")?;
        }
        if *is_writable {
            write!(f, ", which clients may write, {} each", Bytes(*longest_upload))?;
        }
        write!(f, ", heads within {}, ", Span(self.header_timeout))?;
        match cache_time.is_zero() || *cache_memory == 0 {
            true => f.write_str("nothing cached"),
            false => {
                let memory = Bytes(*cache_memory as u64);
                write!(f, "cached for {} in {memory} a worker", Span(*cache_time))
            }
        }
    }
}
