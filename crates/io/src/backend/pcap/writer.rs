//! A capture file that all transmit queues of a run write into.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_packet::Mbuf;
use thiserror::Error;

use super::encode::Encoder;
use crate::sink::Sink;

/// Bytes gathered before the operating system is asked to write.
const WRITE_BEHIND: usize = 256 * 1024;

/// Why a capture was not written, or not completely.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The name says no format.
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
        /// Packets that came after the failure; some before it may be missing too.
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

/// Writes packets into a capture, pcap with nanoseconds or pcapng as the name says. Clones write into
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
    state: Mutex<State>,
}

struct State {
    /// Gone once closed.
    output: Option<BufWriter<Box<dyn Write + Send>>>,
    encoder: Encoder,
    written: WriteSummary,
    other_link: u64,
    failure: Option<io::Error>,
    lost: u64,
}

impl CaptureWriter {
    /// Makes the file, or empties the one there is.
    ///
    /// # Errors
    /// [`WriteError::Extension`] for a name that ends neither in `.pcap`, `.cap` nor `.pcapng`,
    /// [`WriteError::Create`] when the operating system refuses.
    pub fn create(path: &Path) -> Result<CaptureWriter, WriteError> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let encoder = match extension.to_str() {
            Some("pcap" | "cap") => Encoder::Legacy(None),
            Some("pcapng") => Encoder::Ng(Vec::new()),
            _ => return Err(WriteError::Extension { path: path.to_owned() }),
        };
        let file = File::create(path)
            .map_err(|source| WriteError::Create { path: path.to_owned(), source })?;
        Ok(CaptureWriter::new(path, encoder, Box::new(file)))
    }

    fn new(path: &Path, encoder: Encoder, output: Box<dyn Write + Send>) -> CaptureWriter {
        let mut output = BufWriter::with_capacity(WRITE_BEHIND, output);
        let failure = encoder.begin(&mut output).err();
        let state = State {
            output: Some(output),
            encoder,
            written: WriteSummary::default(),
            other_link: 0,
            failure,
            lost: 0,
        };
        CaptureWriter {
            shared: Arc::new(Shared { path: path.to_owned(), state: Mutex::new(state) }),
        }
    }

    /// A sink that writes into this file.
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(self.clone())
    }

    /// Writes out what is buffered and ends the file. Packets that come later are lost. The second
    /// call says the same again, except for a failed write, which is told once.
    ///
    /// # Errors
    /// [`WriteError::Write`] when anything failed since the file was made, [`WriteError::OtherLink`]
    /// when packets had to be left out.
    pub fn close(&self) -> Result<WriteSummary, WriteError> {
        let mut state = self.shared.lock();
        state.finish();
        let path = || self.shared.path.clone();
        match state.failure.take() {
            Some(source) => Err(WriteError::Write { path: path(), lost: state.lost, source }),
            None if state.other_link > 0 => {
                Err(WriteError::OtherLink { path: path(), lost: state.other_link })
            }
            None => Ok(state.written),
        }
    }
}

impl Sink for CaptureWriter {
    fn take(&mut self, packets: &[Mbuf]) {
        self.shared.lock().write(packets);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, packets: &[Mbuf]) {
        for packet in packets {
            let Some(output) = self.output.as_mut().filter(|_| self.failure.is_none()) else {
                self.lost += 1;
                continue;
            };
            match self.encoder.packet(packet, output) {
                Ok(Ok(())) => {
                    self.written.packets += 1;
                    self.written.bytes += packet.len() as u64;
                }
                Ok(Err(_other_link)) => self.other_link += 1,
                Err(error) => {
                    self.failure = Some(error);
                    self.lost += 1;
                }
            }
        }
    }

    fn finish(&mut self) {
        let Some(mut output) = self.output.take() else { return };
        if self.failure.is_none() {
            let ended = self.encoder.end(&mut output).and_then(|()| output.flush());
            self.failure = ended.err();
        }
        // Whatever is still buffered failed to be written and must not be tried again.
        let _ = output.into_parts();
    }
}

impl Drop for Shared {
    /// Ends a file that nobody closed, so that what was written can be read.
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
    fn a_full_disk_is_told_when_the_file_is_closed() {
        let layout = MempoolConfig { buffers: 2, data_room: 65_535, headroom: 0 };
        let mut pool = PoolCache::new(Mempool::new(&layout).unwrap());
        let packet = pool.alloc(60_000).unwrap();
        // Room for one buffer's worth: the failure comes while writing, or only at the end.
        for (room, packets, lost) in [(WRITE_BEHIND, 20, 12), (100, 1, 0)] {
            let mut writer = CaptureWriter::new(
                Path::new("x.pcap"),
                Encoder::Legacy(None),
                Box::new(Disk(room)),
            );
            for _ in 0..packets {
                writer.take(std::slice::from_ref(&packet));
            }
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
