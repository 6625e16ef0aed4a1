//! A policer in words.

use std::fmt;

use crate::policer::{Action, Burst, Meter, PolicerConfig, Rate};
use rheostat_steer::{Side, Whose};

use rheostat_settings::quantity::{Bytes, Count};

/// Writes the limits of subscribers, and what happens to packets above them.
pub(in crate::policer) fn describe(
    policer: &PolicerConfig,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let whose = match policer.subject.whose {
        Whose::Inner => "inner",
        Whose::Outer => "outer",
        Whose::Source => "source",
        Whose::Destination => "destination",
    };
    match policer.classes.others() {
        Some(meter) => describe_meter(meter, f)?,
        None => f.write_str("no limit")?,
    }
    write!(f, " per {whose} address /{} or /{}", policer.subject.v4, policer.subject.v6)?;
    f.write_str(match policer.from {
        None => "",
        Some(Side::Inside) => ", from inside",
        Some(Side::Outside) => ", from outside",
    })?;
    match policer.classes.named() {
        0 => {}
        1 => f.write_str("; 1 class of its own")?,
        classes => write!(f, "; {classes} classes of their own")?,
    }
    f.write_str(if policer.colours.is_some() { "; aware of colours" } else { "" })?;
    let actions = &policer.actions;
    for (colour, action) in
        [("green", actions.green), ("yellow", actions.yellow), ("red", actions.red)]
    {
        describe_action(colour, action, f)?;
    }
    writeln!(f)
}

fn describe_meter(meter: &Meter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let bits = |rate: &Rate| Count(rate.bits_per_second());
    let bytes = |burst: &Burst| Bytes(burst.bytes());
    match meter {
        Meter::SingleRate { rate, committed, excess } => {
            write!(f, "{}bps, burst {}", bits(rate), bytes(committed))?;
            if *excess != Burst::NONE {
                write!(f, " and {}", bytes(excess))?;
            }
            Ok(())
        }
        Meter::TwoRate { rate, committed, peak_rate, peak } => {
            write!(f, "{}bps, burst {}, ", bits(rate), bytes(committed))?;
            write!(f, "peak {}bps, burst {}", bits(peak_rate), bytes(peak))
        }
    }
}

fn describe_action(colour: &str, action: Action, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match action {
        Action::Pass => Ok(()),
        Action::Drop => write!(f, "; {colour} dropped"),
        Action::Remark(dscp) => write!(f, "; {colour} marked {dscp}"),
        Action::DropPrecedence => write!(f, "; {colour} as drop precedence"),
    }
}
