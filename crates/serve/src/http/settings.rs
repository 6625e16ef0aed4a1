//! Settings of `service = "http"`, and its registration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::WallClock;
use rheostat_settings::declared::kind::{boolean, duration, path, size};
use rheostat_settings::quantity::{Bytes, Span};

use super::Http;
use crate::registry::{
    ApplicationError, ApplicationFacts, ApplicationKind, ApplicationMemory,
    ApplicationRegistration, Program,
};

const SECOND: Duration = Duration::from_secs(1);

rheostat_settings::settings! {
    /// Files of a directory over HTTP/1.1. Files of up to 64 KiB are kept whole, longer ones open: a worker keeps 1,024 files, 128 of
    /// them open.
    #[derive(Eq)]
    pub struct HttpConfig {
        /// The directory. No name leads out of it.
        root: PathBuf = path(), value("DIR"), required("root = \"/srv/www\"");
        /// Let clients put files there (PUT).
        writable: bool = boolean(), default(false);
        /// Serve names that begin with a dot; otherwise they are refused, but for .well-known.
        dotfiles: bool = boolean(), default(false);
        /// Bytes of an upload at most.
        longest_upload: u64 = size(1..=1 << 50), value("SIZE"), default(1 << 30)
            => writable == Some(true), "writable = true";
        /// How long the header of a request may take from its first byte on; then the reply is 408.
        header_timeout: Duration = duration(SECOND..=3_600 * SECOND), value("TIME"), default(30 * SECOND);
        /// How long a worker uses what it knows of a file before it looks at the file again; 0s is never.
        cache_time: Duration = duration(Duration::ZERO..=60 * SECOND), value("TIME"), default(SECOND);
        /// Bytes that each worker keeps of files at most; 0 keeps nothing.
        cache_memory: usize = size(0..=1 << 40), value("SIZE"), default(16 << 20);
    }
}

impl HttpConfig {
    /// Serves the files beneath `root`, without dotfiles and without uploads; uploads that are permitted have up to 1 GiB. Files are
    /// kept for a second, in 16 MiB for each worker.
    pub fn new(root: impl Into<PathBuf>) -> HttpConfig {
        HttpConfig {
            root: root.into(),
            writable: false,
            dotfiles: false,
            longest_upload: 1 << 30,
            header_timeout: 30 * SECOND,
            cache_time: SECOND,
            cache_memory: 16 << 20,
        }
    }

    fn open(&self) -> Result<Http, ApplicationError> {
        Http::new(self.clone(), Arc::new(WallClock)).map_err(|error| {
            ApplicationError(format!("cannot serve `{}`: {error}", self.root.display()))
        })
    }

    fn caches(&self) -> bool {
        !self.cache_time.is_zero() && self.cache_memory > 0
    }

    fn describe(&self) -> String {
        let mut words = format!(", files of {}", self.root.display());
        if self.dotfiles {
            words += " with dotfiles";
        }
        if self.writable {
            words += &format!(", which clients may write, {} each", Bytes(self.longest_upload));
        }
        words += &format!(", heads within {}, ", Span(self.header_timeout));
        match self.caches() {
            false => words + "nothing cached",
            true => {
                let memory = Bytes(self.cache_memory as u64);
                words + &format!("cached for {} in {memory} a worker", Span(self.cache_time))
            }
        }
    }

    fn facts(&self) -> ApplicationFacts {
        let cache = self.caches().then(|| ApplicationMemory {
            purpose: "cached files",
            bytes: self.cache_memory as u64,
            is_per_lane: true,
            from: format!("{} KiB", self.cache_memory >> 10),
            setting: "[serve] cache_memory",
        });
        ApplicationFacts {
            request_timeout: Some(self.header_timeout),
            memory: cache.into_iter().collect(),
            ..ApplicationFacts::default()
        }
    }
}

/// `http`.
pub fn registration() -> ApplicationRegistration {
    ApplicationKind::new("http", "Files of a directory over HTTP/1.1", |config: &HttpConfig, _| {
        Ok(Program::requests(config.open()?).into())
    })
    .describing(HttpConfig::describe)
    .with_facts(HttpConfig::facts)
    .checking(|settings| settings.open().map(drop))
    .register()
}
