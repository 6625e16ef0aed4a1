//! Dates of HTTP as seconds since 1970 (RFC 9110, section 5.6.7).

/// Seconds of a day.
const DAY: i64 = 86_400;
/// The last second of the year 9999: a year has four digits.
const LAST: i64 = 253_402_300_799;
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An IMF-fixdate of 29 bytes. Times before the year 0 and after 9999 become the first and the last second of these.
pub(super) fn format(seconds: i64) -> String {
    let seconds = seconds.clamp(-62_167_219_200, LAST);
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    // 1970-01-01 was a Thursday.
    let weekday = &DAYS[(days + 3).rem_euclid(7) as usize][..3];
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let month = MONTHS[month - 1];
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads a date in any of the three forms that a recipient must accept. The year of two digits is the one within 50 years of `now`.
pub(super) fn parse(text: &str, now: i64) -> Option<i64> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let first = words.next()?;
    let rest: Vec<_> = words.collect();
    let (weekday, day, month, year, time) = match (first.strip_suffix(','), &rest[..]) {
        (Some(weekday), [day, month, year, time, "GMT"]) => {
            (weekday, digits(day, 2)?, *month, digits(year, 4)?, *time)
        }
        (Some(weekday), [date, time, "GMT"]) => {
            let mut parts = date.split('-');
            let (day, month) = (digits(parts.next()?, 2)?, parts.next()?);
            let year = full_year(digits(parts.next()?, 2)?, now);
            if parts.next().is_some() {
                return None;
            }
            (weekday, day, month, year, *time)
        }
        (None, [month, day, time, year]) => {
            (first, digits(day, day.len().min(2))?, *month, digits(year, 4)?, *time)
        }
        _ => return None,
    };
    if !DAYS.iter().any(|name| *name == weekday || name[..3] == *weekday) {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let mut parts = time.split(':');
    let mut part = |last: i64| digits(parts.next()?, 2).filter(|number| *number <= last);
    // A leap second is the last one of a minute.
    let (hour, minute, second) = (part(23)?, part(59)?, part(60)?);
    if parts.next().is_some() || !(1..=days_of(month, year)).contains(&day) {
        return None;
    }
    Some(days_since_1970(year, month, day) * DAY + hour * 3_600 + minute * 60 + second)
}

/// A number of exactly `len` digits.
fn digits(text: &str, len: usize) -> Option<i64> {
    let is_number = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The year of two digits, not more than 50 years after `now`.
fn full_year(digits: i64, now: i64) -> i64 {
    let (this, ..) = civil(now.div_euclid(DAY));
    let year = this - this.rem_euclid(100) + digits;
    if year > this + 50 { year - 100 } else { year }
}

fn days_of(month: usize, year: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that the leap day is the last one.
fn days_since_1970(year: i64, month: usize, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month as i64 + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date so many days after 1970-01-01: year, month from 1, day from 1.
fn civil(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month as usize, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-01-01.
    const NOW: i64 = 1_767_225_600;

    /// RFC 9110, 5.6.7: a recipient accepts all three forms, a sender generates the first.
    #[test]
    fn the_three_forms_are_one_time() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text, NOW), Some(784_111_777), "{text}");
        }
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(format(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(format(i64::MIN).len(), 29);
    }

    /// RFC 9110, 5.6.7: a year more than 50 years in the future is in the past.
    #[test]
    fn a_year_of_two_digits_is_within_fifty_years() {
        let year = |text: &str| civil(parse(text, NOW).unwrap() / DAY).0;
        assert_eq!(year("Friday, 01-Jan-76 00:00:00 GMT"), 2076);
        assert_eq!(year("Friday, 01-Jan-77 00:00:00 GMT"), 1977);
    }

    #[test]
    fn a_date_of_no_form_is_none() {
        for text in [
            "",
            "Sun",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Sun, 06 Nov 1994 +8:49:37 GMT",
            "Sunday, 06-Nov-94-1 08:49:37 GMT",
            "Sun Nov 006 08:49:37 1994",
            "784111777",
        ] {
            assert_eq!(parse(text, NOW), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_date_that_was_written_is_read_as_the_same(seconds in -62_135_596_800..LAST) {
            prop_assert_eq!(parse(&format(seconds), NOW), Some(seconds));
        }
    }
}
