//! Standard input and output as captures, so that programs pipe packets through a run.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use super::reader::CaptureReader;
use super::record::RecordBuf;
use super::source::CaptureStatus;
use super::{FormatError, ReadError};
use crate::{Arrival, OpenError, Source};

/// The name of standard input among captures that are read, and of standard output among those that are written. A file of
/// this name is `./-`.
const STANDARD: &str = "-";
/// Warnings and errors name it so.
const INPUT: &str = "standard input";
/// Packets read ahead of the lanes.
const READ_AHEAD: usize = 1_024;

/// Whether a capture's path names standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// The packets of a capture that comes through standard input. A thread reads, so that no lane waits for the writer;
/// it reads at most 1,024 packets ahead.
pub(super) struct StandardInput {
    records: Receiver<RecordBuf>,
    status: Arc<CaptureStatus>,
    ended: bool,
}

impl StandardInput {
    /// Waits for the header of the capture.
    ///
    /// # Errors
    /// [`OpenError::File`] when it is a terminal or cannot be read, [`OpenError::Format`] when it is not a capture.
    pub(super) fn open() -> Result<StandardInput, OpenError> {
        let file_error = |source| OpenError::File { path: INPUT.into(), source };
        if io::stdin().is_terminal() {
            return Err(file_error(io::Error::other(
                "it is a terminal; pipe a capture into it, as from `tcpdump -w -`",
            )));
        }
        let input = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(file_error)?);
        let status = Arc::new(CaptureStatus::new(INPUT, None));
        let (header, opened) = sync_channel(1);
        let (sender, records) = sync_channel(READ_AHEAD);
        let noted = status.clone();
        let read = move || {
            // It needs none, and is started before those of the process are given up.
            #[cfg(not(any(loom, shuttle)))]
            let _ = rheostat_kernel::privileges::give_up();
            match CaptureReader::new(input) {
                Ok(reader) => {
                    let _ = header.send(Ok(()));
                    forward(reader, &sender, &noted);
                }
                Err(error) => {
                    let _ = header.send(Err(error));
                }
            }
        };
        thread::Builder::new().name("rheo-stdin".into()).spawn(read).map_err(file_error)?;
        let format_error = |source| OpenError::Format { path: INPUT.into(), source };
        let ended = Err(FormatError::Empty);
        opened.recv().unwrap_or(ended).map_err(format_error)?;
        Ok(StandardInput { records, status, ended: false })
    }

    pub(super) fn status(&self) -> Arc<CaptureStatus> {
        self.status.clone()
    }
}

/// Sends packets until the capture ends or nobody takes them.
fn forward(
    mut reader: CaptureReader<File>,
    packets: &SyncSender<RecordBuf>,
    status: &CaptureStatus,
) {
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                if packets.send(record.into()).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(error @ ReadError::UnsupportedLink { .. }) => status.record(&error),
            Err(error) => return status.record(&error),
        }
    }
}

impl Source for StandardInput {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        match self.records.try_recv() {
            Ok(RecordBuf { time, link, wire_len, bytes }) => {
                let len = bytes.len();
                *frame = bytes;
                Some(Arrival { time, len, wire_len, link })
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.ended = true;
                None
            }
        }
    }

    /// Until the writer has closed its end.
    fn is_fed(&self) -> bool {
        !self.ended
    }
}
