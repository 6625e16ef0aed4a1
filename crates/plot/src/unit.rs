//! How values are written.

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Anything countable: `1.2 M`.
    Count,
    /// Packets per second: `1.2 Mpps`.
    PacketRate,
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
            Unit::PacketRate => scaled(
                value,
                &[(1e6, 1e6, "\u{a0}Mpps"), (1e3, 1e3, "\u{a0}kpps"), (0.0, 1.0, "\u{a0}pps")],
            ),
            // As many digits as show that it is not all.
            Unit::Share if (0.995..1.0).contains(&value) => {
                let nines = -(1.0 - value).max(1e-12).log10();
                let decimals = (nines - 1e-6).ceil() as usize - 2;
                format!("{:.decimals$}\u{a0}%", 100.0 * value)
            }
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

    /// The value, and between what it lies, if that is known and more than the value itself.
    pub fn show_in(self, value: f64, span: Option<(f64, f64)>) -> String {
        match span.filter(|(low, high)| low < high) {
            Some(span) => self.show_between(value, span),
            None => self.show(value),
        }
    }

    /// The value and between what it lies: `27.8 (26.7 to 29.4) ms`.
    pub fn show_between(self, value: f64, (low, high): (f64, f64)) -> String {
        let texts = [value, low, high].map(|value| self.show(value));
        let [value, low, high] = texts.each_ref().map(|text| parted(text));
        match value.1 {
            "" => format!("{} ({} to {})", texts[0], texts[1], texts[2]),
            unit if unit == low.1 && unit == high.1 => {
                format!("{} ({} to {})\u{a0}{unit}", value.0, low.0, high.0)
            }
            _ => format!("{} ({} to {})", texts[0], texts[1], texts[2]),
        }
    }
}

/// Splits a text into the number and what follows it.
fn parted(text: &str) -> (&str, &str) {
    text.split_once('\u{a0}').unwrap_or((text, ""))
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
    // So many digits cannot be read at a glance.
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
    fn a_unit_that_is_the_same_for_all_is_written_once() {
        let show = |unit: Unit, of: [f64; 3]| {
            unit.show_between(of[0], (of[1], of[2])).replace('\u{a0}', " ")
        };
        assert_eq!(show(Unit::Share, [0.1, 0.05, 0.2]), "10 (5 to 20) %");
        assert_eq!(show(Unit::Microseconds, [2e3, 900.0, 3e3]), "2 ms (900 µs to 3 ms)");
        assert_eq!(show(Unit::Plain, [1.5, 1.0, 2.0]), "1.5 (1 to 2)");
    }

    #[test]
    fn values_are_written_as_people_write_them() {
        let nbsp = |text: &str| text.replace(' ', "\u{a0}");
        for (unit, value, text) in [
            (Unit::Count, 0.0, "0"),
            (Unit::Count, 1_234.0, "1,234"),
            (Unit::Count, 12_345.0, "12.3 k"),
            (Unit::Count, 1_200_000.0, "1.2 M"),
            (Unit::Count, 0.125, "0.125"),
            (Unit::PacketRate, 1_200_000.0, "1.2 Mpps"),
            (Unit::PacketRate, 0.0, "0 pps"),
            (Unit::Share, 0.05, "5 %"),
            (Unit::Share, 0.000_012, "0.0012 %"),
            (Unit::Share, 0.999, "99.9 %"),
            (Unit::Share, 0.9999, "99.99 %"),
            (Unit::Share, 0.99987, "99.99 %"),
            (Unit::Share, 1.0, "100 %"),
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
