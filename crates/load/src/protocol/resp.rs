//! RESP2, the protocol of Redis.

use super::{Progress, Reply};

/// Arrays in arrays at most.
const DEPTH: usize = 8;
/// Elements of an array, and bytes of a line, at most.
const MOST: usize = 1 << 20;
/// What stands for bytes that bring a request to its size.
const DATA: &str = "{data}";

/// A command of words. The word `{data}` becomes as many bytes as bring the request to `size`.
pub(super) fn request(command: &str, size: u32) -> Vec<u8> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let with = |data: &str| {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            let word = if *word == DATA { data } else { word };
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
        }
        bytes
    };
    if !words.contains(&DATA) {
        return with("");
    }
    // The length of the data is written, too, so its digits count.
    let mut data = (size as usize).saturating_sub(with("").len());
    while data > 0 && with(&"x".repeat(data)).len() > size as usize {
        data -= 1;
    }
    with(&"x".repeat(data))
}

pub(super) fn parse(bytes: &[u8]) -> Progress {
    let mut at = 0;
    match value(bytes, &mut at, 0) {
        Ok(is_error) => Progress::Whole(at, Reply { is_error, ..Reply::default() }),
        Err(progress) => progress,
    }
}

/// Passes a value, and returns whether it is an error.
fn value(bytes: &[u8], at: &mut usize, depth: usize) -> Result<bool, Progress> {
    let garbage = Err(Progress::Garbage("it is no reply of RESP"));
    let Some(kind) = bytes.get(*at) else { return Err(Progress::Need(*at + 1)) };
    if !b"+-:$*".contains(kind) || depth > DEPTH {
        return garbage;
    }
    let rest = &bytes[*at + 1..];
    let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
        return if rest.len() > MOST { garbage } else { Err(Progress::Need(bytes.len() + 1)) };
    };
    let line = &rest[..end];
    *at += end + 3;
    if b"+-".contains(kind) {
        return Ok(*kind == b'-');
    }
    let Some(number) = std::str::from_utf8(line).ok().and_then(|line| line.parse::<i64>().ok())
    else {
        return garbage;
    };
    match (kind, usize::try_from(number)) {
        (b':', _) => Ok(false),
        // What is not there.
        (_, Err(_)) if number == -1 => Ok(false),
        (b'$', Ok(len)) if len <= super::LONGEST_REPLY => {
            let behind = *at + len + 2;
            match bytes.get(*at + len..behind) {
                None => Err(Progress::Need(behind)),
                Some(b"\r\n") => {
                    *at = behind;
                    Ok(false)
                }
                Some(_) => garbage,
            }
        }
        (b'*', Ok(len)) if len <= MOST => {
            for _ in 0..len {
                value(bytes, at, depth + 1)?;
            }
            Ok(false)
        }
        _ => garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_whole_at_its_last_byte_and_not_before() {
        for (reply, is_error) in [
            ("+OK\r\n", false),
            ("-ERR wrong\r\n", true),
            (":12\r\n", false),
            ("$-1\r\n", false),
            ("$5\r\nab\r\nc\r\n", false),
            ("*2\r\n$1\r\na\r\n*1\r\n:1\r\n", false),
            ("*0\r\n", false),
        ] {
            let bytes = format!("{reply}+NEXT\r\n").into_bytes();
            let whole = Progress::Whole(reply.len(), Reply { is_error, ..Reply::default() });
            assert_eq!(parse(&bytes), whole, "{reply:?}");
            for cut in 0..reply.len() {
                let cut = &bytes[..cut];
                assert!(
                    matches!(parse(cut), Progress::Need(needed) if needed > cut.len()),
                    "{cut:?}"
                );
            }
        }
        for wrong in ["HTTP/1.1", "$x\r\n", "$-2\r\n", "$1\r\nabc", &"*1\r\n".repeat(20)] {
            assert!(matches!(parse(wrong.as_bytes()), Progress::Garbage(_)), "{wrong:?}");
        }
    }

    #[test]
    fn commands_are_arrays_of_words() {
        assert_eq!(request("GET a", 128), b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
        for size in [60, 99, 100, 101, 128, 1_000] {
            let len = request("SET k {data}", size).len();
            assert!((size as usize - 1..=size as usize).contains(&len), "{size}: {len}");
        }
    }
}
