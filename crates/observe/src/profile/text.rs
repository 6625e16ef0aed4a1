//! A profile, for people.

use std::fmt;

use super::{Bottleneck, ScalingProfile};

/// Causes that are written out.
const CAUSES: usize = 8;

impl fmt::Display for ScalingProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions = match self.functions.as_slice() {
            [] => "no function".to_owned(),
            functions => functions.join(", "),
        };
        let lanes = if self.lanes == 1 { "1 lane".into() } else { format!("{} lanes", self.lanes) };
        let packets = Grouped(self.packets);
        write!(f, "chain     {functions}: {lanes}, {:.1} s, {packets} packets", self.seconds)?;
        if self.shares {
            self.transactions(f)?;
        }
        for (number, cause) in (1..).zip(self.causes.iter().take(CAUSES)) {
            write!(f, "\n\n{number:>2}  {cause}")?;
        }
        if let Some(more) = self.causes.len().checked_sub(CAUSES).filter(|more| *more > 0) {
            write!(f, "\n\n    {more} more; all of them with --json")?;
        }
        if !self.causes.is_empty() {
            writeln!(f)?;
        }
        if let Some(imbalance) = self.imbalance {
            write!(f, "\nimbalance {imbalance:.2}: the busiest lane's packets over the mean")?;
        }
        for note in &self.notes {
            write!(f, "\nnote      {note}")?;
        }
        Ok(())
    }
}

impl ScalingProfile {
    fn transactions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (commits, aborts) = (Grouped(self.commits), Grouped(self.aborts));
        write!(f, "\ncommits   {commits} transactions")?;
        write!(f, "\naborts    {aborts}: {} of all attempts", Percent(self.abort_rate))?;
        if self.aborts > 0 {
            let (lost, share) = (self.lost_seconds, Percent(self.lost_share()));
            write!(f, ", up to {lost:.2} s or {share} of the lanes' work")?;
        }
        if self.serial > 0 {
            write!(f, "\nserial    {} transactions had to run alone", Grouped(self.serial))?;
        }
        Ok(())
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bottleneck { object, kind, operations, cause, source, recipe, gain, .. } = self;
        let (share, aborts) = (Percent(self.share), Grouped(self.aborts));
        write!(f, "{share} of the aborts ({aborts}): {kind} `{object}`, {operations}")?;
        write!(f, "\n    at        {source}")?;
        write!(f, "\n    because   {cause}")?;
        write!(f, "\n    recipe    {recipe}")?;
        for other in &self.others {
            write!(f, "\n    or        {other}")?;
        }
        write!(f, "\n    expected  {gain:.2} times the rate, once it is gone")
    }
}

/// A share of one, as people write it.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A little is not nothing.
        match 100.0 * self.0 {
            percent if percent > 0.0 && percent < 0.05 => f.pad("under 0.1 %"),
            percent => f.pad(&format!("{percent:.1} %")),
        }
    }
}

/// A count with its digits in groups of three.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let first = (digits.len() + 2) % 3 + 1;
        let (head, rest) = digits.split_at(first.min(digits.len()));
        f.write_str(head)?;
        let groups = rest.as_bytes().chunks(3);
        groups.into_iter().try_for_each(|group| {
            f.write_str(",")?;
            group.iter().try_for_each(|digit| write!(f, "{}", char::from(*digit)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_from_the_right() {
        for (count, text) in [
            (0, "0"),
            (12, "12"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(Grouped(count).to_string(), text);
        }
    }

    #[test]
    fn a_small_share_is_not_written_as_nothing() {
        assert_eq!(Percent(0.0).to_string(), "0.0 %");
        assert_eq!(Percent(0.000_01).to_string(), "under 0.1 %");
        assert_eq!(Percent(0.975).to_string(), "97.5 %");
    }
}
