//! The address at which an instance serves HTTP.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;

use thiserror::Error;

/// Why nothing can be served over HTTP.
#[derive(Debug, Error)]
pub(crate) enum HttpError {
    /// Another process listens there.
    #[error(
        "{address} is in use by {owner}: choose another port for HTTP with --http or `[observe] http`"
    )]
    InUse { address: SocketAddr, owner: String },
    /// The machine has no such address.
    #[error(
        "{0} is no address of this machine (`ip -brief address` lists them): choose another for HTTP with --http or \
         `[observe] http`"
    )]
    NoAddress(SocketAddr),
    /// The operating system refuses.
    #[error("cannot serve HTTP at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
}

/// A bound address, which nobody is served at yet.
#[derive(Debug)]
pub(crate) struct HttpListener {
    pub(super) listener: TcpListener,
    pub(super) names: Vec<String>,
}

impl HttpListener {
    /// Listens at `address`, for an instance that goes by these names beside its addresses.
    ///
    /// # Errors
    /// [`HttpError`] names who has the port.
    pub(crate) fn bind(address: SocketAddr, names: &[String]) -> Result<HttpListener, HttpError> {
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => {
                let owner = owner_of(address).unwrap_or_else(|| "another process".to_owned());
                HttpError::InUse { address, owner }
            }
            io::ErrorKind::AddrNotAvailable => HttpError::NoAddress(address),
            _ => HttpError::Listen { address, source },
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let machine = machine.trim().to_owned();
        let names = names.iter().cloned().chain([machine]).filter(|name| !name.is_empty());
        let names = names.collect();
        Ok(HttpListener { listener, names })
    }

    /// Where it listens: with a port that the kernel has chosen, if none was given.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The name and number of the process that listens at a port, as far as it can be found out.
fn owner_of(address: SocketAddr) -> Option<String> {
    const LISTEN: &str = "0A";
    let port = format!("{:04X}", address.port());
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let inodes: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (_, its_port) = fields.next()?.rsplit_once(':')?;
            let state = fields.nth(1)?;
            let inode = fields.nth(5)?;
            (its_port == port && state == LISTEN).then(|| format!("socket:[{inode}]"))
        })
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit)).find_map(
        |process| {
            let mut files = fs::read_dir(process.path().join("fd")).ok()?.flatten();
            let is_one = |target: &std::path::Path| {
                inodes.iter().any(|inode| target.as_os_str() == inode.as_str())
            };
            files.find(|file| fs::read_link(file.path()).is_ok_and(|target| is_one(&target)))?;
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            let number = process.file_name();
            Some(format!("{} (process {})", name.trim(), number.to_string_lossy()))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_names_who_has_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let first = HttpListener::bind(address.parse().unwrap(), &[]).unwrap();
            let address = first.address().unwrap();
            let error = HttpListener::bind(address, &[]).unwrap_err();
            let ours = format!("(process {})", std::process::id());
            assert!(
                matches!(&error, HttpError::InUse { owner, .. } if owner.ends_with(&ours)),
                "{error}"
            );
        }
    }

    #[test]
    fn an_address_of_another_machine_is_refused() {
        let error = HttpListener::bind("192.0.2.1:9464".parse().unwrap(), &[]).unwrap_err();
        assert!(matches!(error, HttpError::NoAddress(_)), "{error}");
    }
}
