//! What a service would answer that knew nothing: each segment turned round.

const IP: usize = 14;
const TCP: usize = IP + 20;
const FIN_SYN: u8 = 0x03;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Turns a client's frame into the answer to it, if there is one; checksums are left as they are.
pub(super) fn reflect(frame: &mut [u8]) -> bool {
    let Some(total) = frame.get(IP + 2..IP + 4) else { return false };
    let end = IP + usize::from(u16::from_be_bytes([total[0], total[1]]));
    if end > frame.len() || end < TCP + 20 {
        return false;
    }
    let headers = TCP + usize::from(frame[TCP + 12] >> 4) * 4;
    let flags = frame[TCP + 13];
    let len = (end.saturating_sub(headers)) as u32 + u32::from(flags & FIN_SYN != 0);
    if len == 0 {
        return false;
    }
    let word = |at: usize, frame: &[u8]| {
        u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
    };
    let (sequence, acknowledged) = (word(TCP + 4, frame), word(TCP + 8, frame));
    let (first, second) = frame.split_at_mut(6);
    first.swap_with_slice(&mut second[..6]);
    let (first, second) = frame.split_at_mut(IP + 16);
    first[IP + 12..].swap_with_slice(&mut second[..4]);
    let (first, second) = frame.split_at_mut(TCP + 2);
    first[TCP..].swap_with_slice(&mut second[..2]);
    let own = if flags & SYN != 0 { 0 } else { acknowledged };
    frame[TCP + 4..TCP + 8].copy_from_slice(&own.to_be_bytes());
    frame[TCP + 8..TCP + 12].copy_from_slice(&sequence.wrapping_add(len).to_be_bytes());
    frame[TCP + 13] = flags | ACK;
    true
}

/// Bytes of requests are those of replies: nothing is to be done about them.
#[cfg(test)]
mod tests {
    use rheostat_traffic::clients::fill_pattern;

    use super::*;

    #[test]
    fn a_segment_comes_back_acknowledged_with_its_data() {
        let mut frame = vec![0; TCP + 32 + 128];
        frame[IP + 2..IP + 4].copy_from_slice(&180_u16.to_be_bytes());
        frame[TCP + 12] = 8 << 4;
        frame[TCP + 13] = ACK;
        frame[TCP..TCP + 4].copy_from_slice(&[1, 2, 3, 4]);
        frame[TCP + 4..TCP + 8].copy_from_slice(&1_000_u32.to_be_bytes());
        frame[TCP + 8..TCP + 12].copy_from_slice(&77_u32.to_be_bytes());
        fill_pattern(3, 0, &mut frame[TCP + 32..]);
        let data = frame[TCP + 32..].to_vec();
        assert!(reflect(&mut frame));
        assert_eq!(frame[TCP..TCP + 4], [3, 4, 1, 2]);
        assert_eq!(frame[TCP + 4..TCP + 8], 77_u32.to_be_bytes());
        assert_eq!(frame[TCP + 8..TCP + 12], 1_128_u32.to_be_bytes());
        assert_eq!(frame[TCP + 32..], data);
        // An acknowledgement alone is answered by nothing.
        frame[IP + 2..IP + 4].copy_from_slice(&52_u16.to_be_bytes());
        assert!(!reflect(&mut frame));
    }
}
