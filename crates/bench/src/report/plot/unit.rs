//! How values are written.

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Anything countable, or a rate: `1.2 M`.
    Count,
    /// A share, 1 being all: `12 %`.
    Share,
    /// Microseconds: `3.5 ms`.
    Microseconds,
    /// Seconds: `1.5 s`.
    Seconds,
    /// Bytes: `1,514 B`.
    Bytes,
    /// A number without a unit, such as a ratio or a load: `0.94`.
    Plain,
}

impl Unit {
    /// The value with its unit, to three digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Count => scaled(
                value,
                // A few thousand are read more easily in full.
                &[(1e9, 1e9, "\u{a0}G"), (1e6, 1e6, "\u{a0}M"), (1e4, 1e3, "\u{a0}k")],
            ),
            Unit::Share => format!("{}\u{a0}%", digits(100.0 * value)),
            Unit::Microseconds if value == 0.0 => "0".to_owned(),
            Unit::Microseconds if value.abs() < 1.0 => {
                format!("{}\u{a0}ns", digits(value * 1e3))
            }
            Unit::Microseconds => scaled(
                value,
                &[(1e6, 1e6, "\u{a0}s"), (1e3, 1e3, "\u{a0}ms"), (1.0, 1.0, "\u{a0}µs")],
            ),
            Unit::Seconds if value == 0.0 => "0".to_owned(),
            Unit::Seconds if value.abs() < 1.0 => Unit::Microseconds.show(value * 1e6),
            Unit::Seconds => format!("{}\u{a0}s", digits(value)),
            Unit::Bytes => format!("{}\u{a0}B", digits(value)),
            Unit::Plain => digits(value),
        }
    }
}

/// The value in the first of `units` that it is large enough for; as it is, below all of them. Units are
/// triples: from which value on, how much one is, and the name.
fn scaled(value: f64, units: &[(f64, f64, &str)]) -> String {
    // What rounds up to the next unit is written in it.
    match units.iter().find(|(from, ..)| value.abs() * 1.0005 >= *from) {
        Some((_, unit, name)) => format!("{}{name}", digits(value / unit)),
        None => digits(value),
    }
}

/// To three significant digits, with a comma between thousands, and without zeros that say nothing.
fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Nobody counts so many digits.
    if !(1e-12..1e15).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let text = match text.split_once('.') {
        Some((whole, part)) => match part.trim_end_matches('0') {
            "" => whole.to_owned(),
            part => format!("{whole}.{part}"),
        },
        None => grouped(&text),
    };
    let minus = if value < 0.0 { "−" } else { "" };
    format!("{minus}{text}")
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_people_write_them() {
        let nbsp = |text: &str| text.replace(' ', "\u{a0}");
        for (unit, value, text) in [
            (Unit::Count, 0.0, "0"),
            (Unit::Count, 1_234.0, "1,234"),
            (Unit::Count, 12_345.0, "12.3 k"),
            (Unit::Count, 1_200_000.0, "1.2 M"),
            (Unit::Count, 0.125, "0.125"),
            (Unit::Share, 0.05, "5 %"),
            (Unit::Share, 0.000_012, "0.0012 %"),
            (Unit::Microseconds, 0.25, "250 ns"),
            (Unit::Microseconds, 999.9, "1 ms"),
            (Unit::Microseconds, 34.567, "34.6 µs"),
            (Unit::Microseconds, 2_500_000.0, "2.5 s"),
            (Unit::Seconds, 0.5, "500 ms"),
            (Unit::Seconds, 1_000.0, "1,000 s"),
            (Unit::Bytes, 1_514.0, "1,514 B"),
            (Unit::Plain, -0.94, "−0.94"),
            (Unit::Plain, f64::NAN, "–"),
        ] {
            assert_eq!(unit.show(value), nbsp(text), "{value}");
        }
    }
}
