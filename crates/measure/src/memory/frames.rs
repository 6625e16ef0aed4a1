//! Prepared frames: what a source sends that writes nothing anew.

use super::endpoints::FrameSize;
use super::frame::CLEARED;
use super::line::{self, MemoryLine};

/// Bytes of the smallest frame.
const SMALLEST: usize = 60;

/// The packets of a round, written once.
pub(super) struct Frames {
    /// As many bytes of each as may hold headers; all else is zero.
    bytes: Vec<u8>,
    width: usize,
    about: Vec<About>,
}

/// What there is to know of a frame beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) hash: u32,
    pub(super) len: u16,
}

impl Frames {
    /// Writes packets as they are in the first round. There are no short connections among them.
    pub(super) fn of(
        lines: impl ExactSizeIterator<Item = MemoryLine>,
        from_client: bool,
        size: FrameSize,
    ) -> Frames {
        let width = match size {
            FrameSize::Smallest => SMALLEST,
            FrameSize::Tagged | FrameSize::Ipv6 | FrameSize::Mix => CLEARED,
        };
        let mut bytes = vec![0; lines.len() * width];
        let mut about = Vec::with_capacity(lines.len());
        let mut frame = vec![0; usize::from(u16::MAX)];
        for (line, place) in lines.zip(bytes.chunks_exact_mut(width)) {
            let (hash, len) = match &line {
                MemoryLine::Plain { template, hash } => {
                    template.write(&mut frame[..template.frame_len.into()], 0);
                    (*hash, template.frame_len)
                }
                MemoryLine::Other { ends, numbers, hash } => {
                    let len = ends.frame_len;
                    line::write(&mut frame[..len.into()], ends, numbers, 0, from_client);
                    (*hash, len)
                }
                MemoryLine::Brief { .. } => {
                    unreachable!("a source of prepared frames opens no connections")
                }
            };
            let written = width.min(len.into());
            place[..written].copy_from_slice(&frame[..written]);
            about.push(About { hash, len });
        }
        Frames { bytes, width, about }
    }

    pub(super) fn len(&self) -> usize {
        self.about.len()
    }

    /// The frames from number `from` on, `count` of them: what there is to know of each, and its first bytes.
    #[inline]
    pub(super) fn range(&self, from: usize, count: usize) -> impl Iterator<Item = (About, &[u8])> {
        let bytes = &self.bytes[from * self.width..(from + count) * self.width];
        self.about[from..from + count].iter().copied().zip(bytes.chunks_exact(self.width))
    }
}

/// Copies the first bytes of a frame; the smallest with as few instructions as its length permits.
#[inline(always)]
pub(super) fn copy(frame: &mut [u8], bytes: &[u8]) {
    match (frame.first_chunk_mut::<SMALLEST>(), bytes.first_chunk::<SMALLEST>()) {
        (Some(frame), Some(smallest)) if bytes.len() == SMALLEST => *frame = *smallest,
        _ => {
            let count = frame.len().min(bytes.len());
            frame[..count].copy_from_slice(&bytes[..count]);
        }
    }
}
