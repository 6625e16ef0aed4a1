//! What a figure shows, in words that claim no more than its intervals do.

use rheostat_plot::Unit;

use super::estimate::{Difference, ReportEstimate};
use super::versus::Versus;

/// What others are compared with.
#[derive(Clone, Debug)]
pub(super) struct Reference<'a> {
    pub(super) name: &'a str,
    pub(super) of: ReportEstimate,
}

/// A value that is compared.
#[derive(Clone, Debug)]
pub(super) struct Other<'a> {
    pub(super) name: &'a str,
    pub(super) of: ReportEstimate,
    /// As a multiple of the reference.
    pub(super) versus: Versus,
    /// Both lie within what the machine does by itself.
    pub(super) is_limited: bool,
    /// By what factor two rows of one policy may differ, where one was measured twice.
    pub(super) chance: Option<f64>,
}

impl Other<'_> {
    /// What two rows of one policy may differ by as well.
    fn hidden_by(&self) -> Option<f64> {
        self.chance.filter(|chance| self.versus.factor() <= *chance)
    }
}

/// Compares others with a reference: `place` states where (`At a load of 0.94 on 2 lanes`), `what` what is compared.
pub(super) fn compared(
    place: &str,
    what: &str,
    unit: Unit,
    reference: &Reference<'_>,
    others: &[Other<'_>],
) -> String {
    let Reference { name, of } = reference;
    let mut text = format!("{place}, {what} of {name}: {}", unit.show_in(of.value, of.span()));
    let mut clear = Vec::new();
    let (mut same, mut unknown, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    let mut hidden = Vec::new();
    let mut is_paired = false;
    for other in others {
        match other.versus.difference {
            _ if other.is_limited => limited.push(other.name),
            Difference::Below | Difference::Above if other.hidden_by().is_some() => {
                hidden.push(format!("{} {}", other.name, unit.show(other.of.value)));
            }
            Difference::Below | Difference::Above => {
                is_paired |= other.versus.pairs > 0;
                clear.push(change(unit, other, of));
            }
            Difference::None => {
                same.push(format!("{} {}", other.name, unit.show(other.of.value)));
            }
            Difference::Unknown => {
                unknown.push(format!("{} {}", other.name, unit.show(other.of.value)));
            }
        }
    }
    if !clear.is_empty() {
        text.push_str(if is_paired { "; on the same packets " } else { "; " });
        text.push_str(&clear.join(", "));
    }
    text.push('.');
    if !same.is_empty() {
        let same: Vec<&str> = same.iter().map(String::as_str).collect();
        text.push_str(&format!(" No difference to be seen between {name} and {}.", list(&same)));
    }
    if let Some(chance) = others.iter().find_map(Other::hidden_by).filter(|_| !hidden.is_empty()) {
        let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
        text.push_str(&format!(
            " Not shown: {}; a policy that ran twice differs from itself by a factor of up to {}.",
            list(&hidden),
            Unit::Plain.show(rounded(chance))
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

/// How much lower or higher a value is, and between what that lies.
fn change(unit: Unit, other: &Other<'_>, reference: &ReportEstimate) -> String {
    let Other { name, of, versus, .. } = other;
    let value = unit.show(of.value);
    if of.value == 0.0 && of.high == 0.0 {
        return format!("{name} none");
    }
    let is_lower = versus.difference == Difference::Below;
    let word = if is_lower { "lower" } else { "higher" };
    let Versus { ratio, low, high, .. } = *versus;
    let (factor, low, high) =
        if is_lower { (1.0 / ratio, 1.0 / high, 1.0 / low) } else { (ratio, low, high) };
    if !factor.is_finite() || reference.value <= 0.0 || of.value <= 0.0 {
        return format!("{name} {value}, {word}");
    }
    let (by, bounds) = if factor >= 2.0 {
        let show = |factor: f64| Unit::Plain.show(rounded(factor));
        (format!("{}\u{a0}×", show(factor)), [show(low), show(high)])
    } else {
        let part = |factor: f64| if is_lower { 1.0 - 1.0 / factor } else { factor - 1.0 };
        let show = |factor: f64| Unit::Share.show(part(factor));
        (show(factor), [show(low), show(high)])
    };
    let range = match bounds {
        [low, high] if low == high => String::new(),
        // An end at zero leaves the ratio without a bound.
        [low, _] if !high.is_finite() => format!(" ({low} or more)"),
        [low, high] => format!(" ({low} to {high})"),
    };
    format!("{name} {value}, {by}\u{a0}{word}{range}")
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

    const SLOW: [f64; 6] = [3_000.0, 3_100.0, 3_200.0, 3_300.0, 3_400.0, 3_500.0];

    fn said(others: &[Other<'_>]) -> String {
        let reference = Reference { name: "rss", of: ReportEstimate::of(SLOW).unwrap() };
        let text = compared("At a load of 0.9", "p95", Unit::Microseconds, &reference, others);
        text.replace('\u{a0}', " ")
    }

    /// Runs that took so many times as long as those of `SLOW` with the same packets.
    fn other(name: &str, times: [f64; 6]) -> Other<'_> {
        let pairs: Vec<(f64, f64)> = SLOW.iter().zip(times).map(|(us, t)| (us * t, *us)).collect();
        let values: Vec<f64> = pairs.iter().map(|(us, _)| *us).collect();
        let versus = Versus::between(&values, &SLOW, &pairs).unwrap();
        Other {
            name,
            of: ReportEstimate::of(values).unwrap(),
            versus,
            is_limited: false,
            chance: None,
        }
    }

    #[test]
    fn what_is_clear_is_said_with_its_bounds() {
        let fast = other("rsspp", [10.0, 8.0, 10.0, 12.0, 10.0, 10.0].map(|times| 1.0 / times));
        assert_eq!(
            said(&[fast]),
            "At a load of 0.9, p95 of rss: 3.25 (3 to 3.5) ms; on the same packets rsspp 330 µs, \
             10 × lower (8 to 12)."
        );
        let slower = other("spray", [1.5, 1.5, 1.4, 1.5, 1.6, 1.5]);
        assert!(said(&[slower]).contains("ms, 50 % higher (40 % to 60 %)."));
    }

    #[test]
    fn what_is_not_clear_is_no_difference() {
        let text = said(&[other("rsspp", [0.1, 0.1, 0.1, 0.1, 0.1, 1.1])]);
        assert!(
            text.ends_with("ms. No difference to be seen between rss and rsspp 325 µs."),
            "{text}"
        );
        assert!(!text.contains("lower") && !text.contains("higher"), "{text}");
    }

    #[test]
    fn a_single_run_claims_nothing() {
        let versus = Versus::between(&[3.0], &SLOW[..1], &[(3.0, SLOW[0])]).unwrap();
        let of = ReportEstimate::of([3.0]).unwrap();
        let text = said(&[Other { name: "rsspp", of, versus, is_limited: false, chance: None }]);
        let end = "rsspp 3 µs: too few runs to tell a difference from chance.";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn what_one_policy_measured_twice_may_differ_by_is_not_shown() {
        let third = [0.30, 0.31, 0.32, 0.33, 0.34, 0.35];
        let beside = |chance| said(&[Other { chance: Some(chance), ..other("rsspp", third) }]);
        let text = beside(3.5);
        assert!(text.contains(" Not shown: rsspp 1.06 ms; "), "{text}");
        assert!(text.ends_with("by a factor of up to 3.5."), "{text}");
        assert!(!text.contains("lower"), "{text}");
        let text = beside(2.5);
        assert!(text.contains("lower") && !text.contains("Not shown"), "{text}");
    }

    #[test]
    fn what_the_machine_hides_is_not_compared() {
        let text = said(&[Other { is_limited: true, ..other("rsspp", [0.1; 6]) }]);
        assert!(text.contains("rsspp and rss lie within the machine's own noise"), "{text}");
    }

    #[test]
    fn none_is_a_word() {
        let text = said(&[other("rsspp", [0.0; 6])]);
        assert!(text.ends_with("; on the same packets rsspp none."), "{text}");
    }
}
