//! What can be wrong with a capture.

use std::io;

use thiserror::Error;

/// Why bytes are not a capture we can read.
#[derive(Debug, Error)]
pub enum FormatError {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// It ends inside the header of the file.
    #[error("the file ends after {length} bytes, inside its header")]
    ShortHeader {
        /// Bytes there are.
        length: usize,
    },
    /// It begins like something else.
    #[error("this is not a pcap or pcapng capture: it begins with {}{}", hex(.found), hint(.found))]
    NotACapture {
        /// The first bytes.
        found: [u8; 4],
    },
    /// The first packet has a link type we do not know.
    #[error(
        "link type {number} is not supported (supported: Ethernet 1, raw IP 101, 12, 14, 228, 229, \
         Linux cooked 113 and 276, BSD loopback 0 and 108)"
    )]
    UnsupportedLink {
        /// The number in the file.
        number: u16,
    },
    /// The header of the file contradicts itself.
    #[error("the capture is corrupt at byte {offset}: {what}")]
    Corrupt {
        /// Where the bad record begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operating system could not read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why a record could not be read. After any of these but [`ReadError::UnsupportedLink`] the reader
/// has ended.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file ends inside a record.
    #[error("the capture is cut off: it ends inside the record at byte {offset}")]
    Truncated {
        /// Where the cut record begins.
        offset: u64,
    },
    /// A record contradicts itself, and where the next one begins is not known.
    #[error("the capture is corrupt at byte {offset}: {what}; the rest was not read")]
    Corrupt {
        /// Where the bad record begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// One packet of a pcapng file came from an interface we cannot read.
    #[error("a packet of the unsupported link type {number} was left out, at byte {offset}")]
    UnsupportedLink {
        /// Where the record begins.
        offset: u64,
        /// The number of the link type.
        number: u16,
    },
    /// The operating system could not read.
    #[error("the capture could not be read any further than byte {offset}: {source}")]
    Io {
        /// How far it was read.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },
}

fn hex(bytes: &[u8; 4]) -> String {
    let [a, b, c, d] = bytes;
    format!("{a:02x} {b:02x} {c:02x} {d:02x}")
}

fn hint(found: &[u8; 4]) -> &'static str {
    match found {
        [0x1f, 0x8b, ..] => ", a gzip file; decompress it first",
        [0x28, 0xb5, 0x2f, 0xfd] => ", a Zstandard file; decompress it first",
        [0xfd, b'7', b'z', b'X'] => ", an xz file; decompress it first",
        [b'B', b'Z', b'h', _] => ", a bzip2 file; decompress it first",
        _ => "",
    }
}
