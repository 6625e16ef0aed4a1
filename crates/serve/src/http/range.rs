//! Parts of a file (RFC 9110, section 14).

/// A part of a file, not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) len: u64,
}

/// What a `Range` field comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangeOutcome {
    /// It is ignored: of another unit, malformed, or of several parts.
    Whole,
    Part(Range),
    Unsatisfiable,
}

impl Range {
    /// Reads the value of a `Range` field, for a file of `len` bytes.
    pub(super) fn parse(text: &str, len: u64) -> RangeOutcome {
        let Some((unit, (first, last))) =
            text.split_once('=').and_then(|(unit, spec)| Some((unit, spec.split_once('-')?)))
        else {
            return RangeOutcome::Whole;
        };
        if !unit.eq_ignore_ascii_case("bytes") {
            return RangeOutcome::Whole;
        }
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            // Numbers beyond all lengths are as good as the greatest one.
            (is_number && !text.is_empty()).then(|| text.parse::<u64>().unwrap_or(u64::MAX))
        };
        let (start, end) = match (first.trim(), last.trim()) {
            ("", last) => match number(last) {
                None => return RangeOutcome::Whole,
                Some(0) => return RangeOutcome::Unsatisfiable,
                // The last bytes of nothing are all of it, and no `Content-Range` could name them.
                Some(_) if len == 0 => return RangeOutcome::Whole,
                Some(count) => (len.saturating_sub(count), len),
            },
            (first, "") => match number(first) {
                None => return RangeOutcome::Whole,
                Some(start) => (start, len),
            },
            (first, last) => match (number(first), number(last)) {
                (Some(start), Some(last)) if start <= last => {
                    (start, last.saturating_add(1).min(len))
                }
                _ => return RangeOutcome::Whole,
            },
        };
        match start < end {
            true => RangeOutcome::Part(Range { start, len: end - start }),
            false => RangeOutcome::Unsatisfiable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_file_and_nonsense_is_ignored() {
        let part = |start, len| RangeOutcome::Part(Range { start, len });
        for (text, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=2-5", part(2, 4)),
            ("bytes=2-500", part(2, 8)),
            ("bytes=3-", part(3, 7)),
            ("bytes=-4", part(6, 4)),
            ("bytes=-400", part(0, 10)),
            ("bytes=0-18446744073709551615", part(0, 10)),
            ("bytes=0-99999999999999999999", part(0, 10)),
            ("BYTES=1-1", part(1, 1)),
            ("bytes=10-", RangeOutcome::Unsatisfiable),
            ("bytes=99999999999999999999-", RangeOutcome::Unsatisfiable),
            ("bytes=+1-2", RangeOutcome::Whole),
            ("bytes=-", RangeOutcome::Whole),
            ("bytes=--5", RangeOutcome::Whole),
            ("bytes", RangeOutcome::Whole),
            ("bytes=-0", RangeOutcome::Unsatisfiable),
            ("bytes=5-2", RangeOutcome::Whole),
            ("bytes=1-2,4-5", RangeOutcome::Whole),
            ("bytes=x-", RangeOutcome::Whole),
            ("lines=1-2", RangeOutcome::Whole),
        ] {
            assert_eq!(Range::parse(text, 10), expected, "{text}");
        }
        assert_eq!(Range::parse("bytes=0-", 0), RangeOutcome::Unsatisfiable);
        assert_eq!(Range::parse("bytes=-5", 0), RangeOutcome::Whole);
    }
}
