//! What a figure shows, in words that claim no more than its intervals do.

use super::estimate::{Difference, Estimate};
use super::plot::Unit;

/// A value that is compared.
#[derive(Clone, Debug)]
pub(super) struct Measured<'a> {
    pub(super) name: &'a str,
    pub(super) of: Estimate,
    /// It lies within what the machine does by itself.
    pub(super) is_limited: bool,
}

/// Compares others with a reference: `place` says where (`At a load of 0.94 on 2 lanes`), `what` what is compared.
pub(super) fn compared(
    place: &str,
    what: &str,
    unit: Unit,
    reference: &Measured<'_>,
    others: &[Measured<'_>],
) -> String {
    let Measured { name, of, .. } = reference;
    let mut text = format!("{place}, {what} of {name}: {}", unit.show_in(of.value, of.span()));
    let mut clear = Vec::new();
    let (mut same, mut unknown, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for other in others {
        match other.of.against(of) {
            _ if other.is_limited && reference.is_limited => limited.push(other.name),
            Difference::Below | Difference::Above => clear.push(change(unit, other, of)),
            Difference::None => same.push(other.name),
            Difference::Unknown => {
                unknown.push(format!("{} {}", other.name, unit.show(other.of.value)))
            }
        }
    }
    if !clear.is_empty() {
        text.push_str("; ");
        text.push_str(&clear.join(", "));
    }
    text.push('.');
    if !same.is_empty() {
        text.push_str(&format!(
            " No difference to be seen between {} and {name}: the intervals overlap.",
            list(&same)
        ));
    }
    if !limited.is_empty() {
        text.push_str(&format!(
            " {} and {name} lie within the machine's own noise, which says nothing about either.",
            list(&limited)
        ));
    }
    if !unknown.is_empty() {
        let unknown: Vec<&str> = unknown.iter().map(String::as_str).collect();
        text.push_str(&format!(
            " {}: too few runs to tell a difference from chance.",
            list(&unknown)
        ));
    }
    text
}

/// How much lower or higher a value is, and between what that lies: the far ends of both intervals.
fn change(unit: Unit, other: &Measured<'_>, reference: &Estimate) -> String {
    let (name, of) = (other.name, &other.of);
    let value = unit.show(of.value);
    if of.value == 0.0 && of.high == 0.0 {
        return format!("{name} none");
    }
    if reference.value <= 0.0 || of.value <= 0.0 {
        return format!("{name} {value}");
    }
    let (word, factor, low, high) = if of.value < reference.value {
        ("lower", reference.value / of.value, reference.low / of.high, reference.high / of.low)
    } else {
        ("higher", of.value / reference.value, of.low / reference.high, of.high / reference.low)
    };
    // An end at zero leaves the ratio without a bound.
    let bound = |factor: f64| factor.is_finite().then(|| Unit::Plain.show(rounded(factor)));
    let percent = |factor: f64| {
        Unit::Share.show(match word {
            "lower" => 1.0 - 1.0 / factor,
            _ => factor - 1.0,
        })
    };
    if factor >= 2.0 {
        let by = Unit::Plain.show(rounded(factor));
        let range = match (bound(low), bound(high)) {
            (Some(low), Some(high)) => format!(" ({low} to {high})"),
            (Some(low), None) => format!(" ({low} or more)"),
            _ => String::new(),
        };
        format!("{name} {value}, {by}\u{a0}×\u{a0}{word}{range}")
    } else {
        format!("{name} {value}, {}\u{a0}{word}", percent(factor))
    }
}

/// Two digits are more than a factor is good for.
fn rounded(factor: f64) -> f64 {
    if factor >= 10.0 {
        let power = 10f64.powf(factor.log10().floor() - 1.0);
        (factor / power).round() * power
    } else {
        (factor * 10.0).round() / 10.0
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `lane` or `lanes`.
pub(super) fn lanes(count: u16) -> String {
    if count == 1 { "1 lane".to_owned() } else { format!("{count} lanes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(name: &str, values: [f64; 6]) -> Measured<'_> {
        Measured { name, of: Estimate::of(values).unwrap(), is_limited: false }
    }

    const SLOW: [f64; 6] = [3_000.0, 3_100.0, 3_200.0, 3_300.0, 3_400.0, 3_500.0];

    fn said(reference: &Measured<'_>, others: &[Measured<'_>]) -> String {
        let text = compared("At a load of 0.9", "p95", Unit::Microseconds, reference, others);
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn what_is_clear_is_said_with_its_bounds() {
        let fast = measured("rsspp", SLOW.map(|us| us / 10.0));
        assert_eq!(
            said(&measured("rss", SLOW), &[fast]),
            "At a load of 0.9, p95 of rss: 3.25 (3 to 3.5) ms; rsspp 325 µs, 10 × lower (8.6 to 12)."
        );
        let slower = measured("spray", SLOW.map(|us| us * 1.5));
        assert!(said(&measured("rss", SLOW), &[slower]).contains("spray 4.88 ms, 50 % higher."));
    }

    #[test]
    fn what_overlaps_is_no_difference() {
        let same = measured("rsspp", SLOW.map(|us| us * 1.1));
        let text = said(&measured("rss", SLOW), &[same]);
        assert!(
            text.ends_with(
                "No difference to be seen between rsspp and rss: the intervals overlap."
            ),
            "{text}"
        );
        assert!(!text.contains("lower") && !text.contains("higher"), "{text}");
    }

    #[test]
    fn a_single_run_claims_nothing() {
        let one =
            |name, us: f64| Measured { name, of: Estimate::of([us]).unwrap(), is_limited: false };
        let text = said(&one("rss", 3_000.0), &[one("rsspp", 3.0)]);
        assert!(
            text.ends_with("rsspp 3 µs: too few runs to tell a difference from chance."),
            "{text}"
        );
    }

    #[test]
    fn what_the_machine_hides_is_not_compared() {
        let limited = |name, values| Measured { is_limited: true, ..measured(name, values) };
        let text = said(&limited("rss", SLOW), &[limited("rsspp", SLOW.map(|us| us / 10.0))]);
        assert!(text.contains("rsspp and rss lie within the machine's own noise"), "{text}");
    }

    #[test]
    fn none_is_a_word() {
        let text = said(&measured("rss", SLOW), &[measured("rsspp", [0.0; 6])]);
        assert!(text.contains("; rsspp none."), "{text}");
    }
}
