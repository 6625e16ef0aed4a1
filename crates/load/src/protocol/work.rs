//! The protocol of `rheo serve work`: frames that name their class and service time.

use rheostat_serve::work::frame::{FrameError, HEAD};
use rheostat_serve::work::{WorkReply, WorkRequest};

use super::{Progress, Reply, ServiceTime};

/// The shortest request.
pub(super) const LEAST: usize = HEAD;

pub(super) fn write(length: u32, number: u64, class: u8, time: u64, draw: u64, out: &mut Vec<u8>) {
    let request = WorkRequest { number, length, draw, time, class };
    request.write(|bytes| out.extend_from_slice(bytes));
}

pub(super) fn parse(number: u64, bytes: &[u8]) -> Progress {
    match WorkReply::parse(bytes) {
        Ok(reply) if reply.number != number => {
            Progress::Garbage("a reply has the number of another request")
        }
        Ok(WorkReply { length, class, target, took, .. }) => {
            let service = Some(ServiceTime { target, took });
            let class = Some(class.min(crate::classes::CLASSES as u8 - 1));
            Progress::Whole(length as usize, Reply { class, service, ..Reply::default() })
        }
        Err(FrameError::Partial(needed)) => Progress::Need(needed),
        Err(FrameError::Wrong(what)) => Progress::Garbage(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_says_class_and_times_of_its_request() {
        let reply = WorkReply { number: 5, length: 128, class: 1, target: 1_000, took: 1_200 };
        let mut bytes = Vec::new();
        reply.write(|piece| bytes.extend_from_slice(piece));
        let service = Some(ServiceTime { target: 1_000, took: 1_200 });
        let whole = Reply { class: Some(1), service, ..Reply::default() };
        assert_eq!(parse(5, &bytes), Progress::Whole(128, whole));
        assert!(matches!(parse(6, &bytes), Progress::Garbage(_)));
        assert_eq!(parse(5, &bytes[..127]), Progress::Need(128));
        assert!(matches!(parse(5, b"HTTP/1.1 400"), Progress::Garbage(_)));
    }
}
