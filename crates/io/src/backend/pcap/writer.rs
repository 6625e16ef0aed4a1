//! A capture file that all transmit queues of a run write into.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_packet::Mbuf;
use thiserror::Error;

use super::encode::Encoder;
use crate::lock::lock;
use crate::sink::Sink;

/// Bytes gathered before the operating system is asked to write.
const WRITE_BEHIND: usize = 256 * 1024;
/// Errors call standard output so.
const STANDARD_OUTPUT: &str = "standard output";

/// Why a capture was not written, or not completely.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The name states no format.
    #[error("cannot tell the format of {}: name it .pcap or .pcapng", path.display())]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be made.
    #[error("cannot create the capture {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file could not be written to its end.
    #[error("the capture {} is incomplete, {lost} packets are missing: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Packets that are not in the file as a whole: those gathered when the write failed, and all later ones.
        lost: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// A pcap file holds packets of one link type, and others came.
    #[error(
        "{lost} packets of another link type than the first could not be written to {}: write a \
         .pcapng file instead", path.display()
    )]
    OtherLink {
        /// The file.
        path: PathBuf,
        /// Packets left out.
        lost: u64,
    },
}

/// What a finished capture holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Packets written.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
}

/// Writes packets into a capture, pcap with nanoseconds or pcapng as the name states. Clones write into
/// the same file.
///
/// A burst is written as a whole under one lock. Packets of one queue keep their order exactly, and so
/// do packets that one lane sent after another; bursts of different lanes follow one another as they
/// come, so their time stamps may go back. They are not sorted: that would hide a reordering.
#[derive(Clone)]
pub struct CaptureWriter {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// Whether a write has failed, to be asked without the lock that lanes take.
    failed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Gone once closed.
    output: Option<Box<dyn Write + Send>>,
    /// What is to be written, and where in it each packet ends.
    gathered: Vec<u8>,
    ends: Vec<PacketEnd>,
    encoder: Encoder,
    /// With the packets that are gathered.
    written: WriteSummary,
    other_link: u64,
    failure: Option<io::Error>,
    lost: u64,
    /// Bytes that are gathered before they are written.
    write_behind: usize,
}

/// The end of a packet among what is gathered.
struct PacketEnd {
    offset: usize,
    /// Bytes of the packet.
    len: u64,
}

impl CaptureWriter {
    /// Makes the file, or empties the one there is.
    ///
    /// # Errors
    /// [`WriteError::Extension`] for a name that ends neither in `.pcap`, `.cap` nor `.pcapng`,
    /// [`WriteError::Create`] when the operating system refuses.
    pub fn create(path: &Path) -> Result<CaptureWriter, WriteError> {
        let encoder = encoder_of(path)?;
        let file = File::create(path)
            .map_err(|source| WriteError::Create { path: path.to_owned(), source })?;
        Ok(CaptureWriter::new(path, encoder, Box::new(file)))
    }

    /// Writes pcapng to standard output, each burst as soon as it is sent. Errors call it `standard output`.
    ///
    /// # Errors
    /// [`WriteError::Create`] when there is no standard output, or it is a terminal.
    pub fn standard_output() -> Result<CaptureWriter, WriteError> {
        let path = Path::new(STANDARD_OUTPUT);
        let refused = |source| WriteError::Create { path: path.to_owned(), source };
        if io::stdout().is_terminal() {
            return Err(refused(io::Error::other(
                "it is a terminal; pipe it into a program that reads captures, such as `tshark -r -`",
            )));
        }
        let file = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
        let file = File::from(file);
        let writer = CaptureWriter::new(path, Encoder::Ng(Vec::new()), Box::new(file));
        {
            let mut state = lock(&writer.shared.state);
            state.write_behind = 0;
            // Readers wait for the header.
            state.write_gathered();
            writer.shared.note(&state);
        }
        Ok(writer)
    }

    /// Whether the name states a format.
    ///
    /// # Errors
    /// [`WriteError::Extension`], as of [`CaptureWriter::create`].
    pub fn check_name(path: &Path) -> Result<(), WriteError> {
        encoder_of(path).map(drop)
    }

    fn new(path: &Path, encoder: Encoder, output: Box<dyn Write + Send>) -> CaptureWriter {
        let mut gathered = Vec::with_capacity(2 * WRITE_BEHIND);
        let failure = encoder.begin(&mut gathered).err();
        let state = State {
            output: Some(output),
            gathered,
            ends: Vec::new(),
            encoder,
            written: WriteSummary::default(),
            other_link: 0,
            failure,
            lost: 0,
            write_behind: WRITE_BEHIND,
        };
        let failed = AtomicBool::new(false);
        let shared = Shared { path: path.to_owned(), failed, state: Mutex::new(state) };
        CaptureWriter { shared: Arc::new(shared) }
    }

    /// Whether it writes to standard output.
    pub fn is_standard_output(&self) -> bool {
        self.shared.path == Path::new(STANDARD_OUTPUT)
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Why the file is incomplete, if it is by now. Before the first failed write this takes no lock.
    pub fn failure(&self) -> Option<WriteError> {
        // Relaxed: what is reported later is read under the lock.
        let failed = self.shared.failed.load(Ordering::Relaxed);
        failed.then(|| self.shared.error(&lock(&self.shared.state))).flatten()
    }

    /// A sink that writes into this file.
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(self.clone())
    }

    /// Writes out what is gathered and ends the file. Packets that come later are lost. The second call returns the
    /// same again.
    ///
    /// # Errors
    /// [`WriteError::Write`] when anything failed since the file was made, [`WriteError::OtherLink`]
    /// when packets had to be left out.
    pub fn close(&self) -> Result<WriteSummary, WriteError> {
        let mut state = lock(&self.shared.state);
        state.finish();
        self.shared.note(&state);
        self.shared.error(&state).map_or(Ok(state.written), Err)
    }
}

impl Sink for CaptureWriter {
    fn take(&mut self, packets: &[Mbuf]) {
        let mut state = lock(&self.shared.state);
        state.write(packets);
        self.shared.note(&state);
    }
}

impl Shared {
    /// Lets other threads see whether the file is incomplete.
    fn note(&self, state: &State) {
        if state.failure.is_some() || state.other_link > 0 {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn error(&self, state: &State) -> Option<WriteError> {
        let path = || self.path.clone();
        match &state.failure {
            Some(source) => {
                Some(WriteError::Write { path: path(), lost: state.lost, source: again(source) })
            }
            None if state.other_link > 0 => {
                Some(WriteError::OtherLink { path: path(), lost: state.other_link })
            }
            None => None,
        }
    }
}

/// The format that a name states.
fn encoder_of(path: &Path) -> Result<Encoder, WriteError> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("pcap" | "cap") => Ok(Encoder::Legacy(None)),
        Some("pcapng") => Ok(Encoder::Ng(Vec::new())),
        _ => Err(WriteError::Extension { path: path.to_owned() }),
    }
}

/// The same error, to be told more than once.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl State {
    fn write(&mut self, packets: &[Mbuf]) {
        for packet in packets {
            if self.output.is_none() || self.failure.is_some() {
                self.lost += 1;
                continue;
            }
            match self.encoder.packet(packet, &mut self.gathered) {
                Ok(Ok(())) => {
                    let len = packet.len() as u64;
                    self.ends.push(PacketEnd { offset: self.gathered.len(), len });
                    self.written.packets += 1;
                    self.written.bytes += len;
                }
                Ok(Err(_other_link)) => self.other_link += 1,
                Err(error) => {
                    self.failure = Some(error);
                    self.lost += 1;
                }
            }
            if self.gathered.len() >= WRITE_BEHIND {
                self.write_gathered();
            }
        }
        if self.gathered.len() >= self.write_behind {
            self.write_gathered();
        }
    }

    /// Writes what is gathered. Packets that are not in the file as a whole then are lost.
    fn write_gathered(&mut self) {
        let Some(output) = &mut self.output else { return };
        let mut written = 0;
        while written < self.gathered.len() && self.failure.is_none() {
            match output.write(&self.gathered[written..]) {
                Ok(0) => self.failure = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.failure = Some(error),
            }
        }
        for packet in self.ends.iter().filter(|packet| packet.offset > written) {
            self.lost += 1;
            self.written.packets -= 1;
            self.written.bytes -= packet.len;
        }
        self.gathered.clear();
        self.ends.clear();
    }

    fn finish(&mut self) {
        if self.output.is_none() {
            return;
        }
        if self.failure.is_none() {
            self.failure = self.encoder.end(&mut self.gathered).err();
        }
        if self.failure.is_none() {
            self.write_gathered();
        }
        if let Some(mut output) = self.output.take()
            && self.failure.is_none()
        {
            self.failure = output.flush().err();
        }
    }
}

impl Drop for Shared {
    /// Ends a file that was not closed, so that what was written can be read.
    fn drop(&mut self) {
        self.state.get_mut().unwrap_or_else(PoisonError::into_inner).finish();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

    use super::*;

    /// A disk with room for so many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_with_every_packet_that_is_missing() {
        let layout = MempoolConfig { buffers: 2, data_room: 65_535, headroom: 0 };
        let mut pool = PoolCache::new(Mempool::new(&layout).unwrap());
        let packet = pool.alloc(60_000).unwrap();
        // The failure comes while packets arrive, with those that were gathered, or only at the end.
        for (room, packets, lost) in [(WRITE_BEHIND, 20, 20), (320_000, 20, 15), (100, 1, 1)] {
            let mut writer = CaptureWriter::new(
                Path::new("x.pcap"),
                Encoder::Legacy(None),
                Box::new(Disk(room)),
            );
            for _ in 0..packets {
                writer.take(std::slice::from_ref(&packet));
            }
            let early = writer.failure().is_some();
            assert_eq!(early, packets > 1, "told when it happens, if a write was tried");
            let error = writer.close().unwrap_err();
            let WriteError::Write { lost: told, source, .. } = &error else { panic!("{error}") };
            assert_eq!((*told, source.kind()), (lost, io::ErrorKind::StorageFull));
            assert!(error.to_string().starts_with("the capture x.pcap is incomplete"), "{error}");
        }
    }

    #[test]
    fn packets_behind_the_end_are_lost() {
        let layout = MempoolConfig { buffers: 2, data_room: 64, headroom: 0 };
        let mut pool = PoolCache::new(Mempool::new(&layout).unwrap());
        let packet = pool.alloc(60).unwrap();
        let mut writer =
            CaptureWriter::new(Path::new("x.pcap"), Encoder::Legacy(None), Box::new(Disk(1_000)));
        writer.take(std::slice::from_ref(&packet));
        let written = WriteSummary { packets: 1, bytes: 60 };
        assert_eq!(writer.close().unwrap(), written);
        writer.take(std::slice::from_ref(&packet));
        assert_eq!(writer.close().unwrap(), written);
    }
}
