//! Which figures and tables of the dissertation are taken again.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A figure, a table, an equation or a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VacationFigure {
    /// Its number, by which it is chosen.
    pub name: &'static str,
    /// Other numbers that the same cases answer.
    pub also: &'static [&'static str],
    /// What its rows show.
    pub about: &'static str,
}

macro_rules! figures {
    ($($constant:ident $name:literal $also:expr, $about:literal;)*) => {
        impl VacationFigure {
            $(#[doc = $about] pub const $constant: VacationFigure =
                VacationFigure { name: $name, also: &$also, about: $about };)*

            /// All of them, in the order in which they are taken.
            pub const ALL: &[VacationFigure] = &[$(VacationFigure::$constant),*];
        }
    };
}

figures! {
    EQUAL_TIMEOUTS "4.3" [], "vacations of equal timeouts, by workers";
    DISTURBED "5.10" [], "the same beside a CPU-bound program";
    BACKUP_WINS "4.2.7" [], "how often backups win at high load";
    JUMP "table-5.1" [], "vacations, busy periods and loss when the load jumps to full rate";
    TARGETS "5.1" [], "latency and CPU time by target vacation";
    WORKERS "5.2" ["5.4"], "lost tries, CPU time and latency by workers";
    LATENCY "5.3" [], "latency beside both models, by load";
    LONG_TIMEOUT "5.5" [], "lost tries and CPU time by long timeout";
    RAMP "5.6" [], "a load that rises and falls";
    QUEUES "5.11" ["5.12"], "lost tries and CPU time by lanes and workers";
    UNBALANCED "table-5.3" [], "lanes with unequal loads";
    BINDING "5.8.6" [], "random against static binding beside a CPU-bound program";
    MANY_QUEUES "5.14" [], "8 to 16 lanes";
}

/// There is no such figure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{name}` is not taken again; there are {known}")]
pub struct UnknownFigure {
    name: String,
    known: String,
}

impl FromStr for VacationFigure {
    type Err = UnknownFigure;

    fn from_str(name: &str) -> Result<VacationFigure, UnknownFigure> {
        let is = |figure: &&VacationFigure| figure.name == name || figure.also.contains(&name);
        VacationFigure::ALL.iter().find(is).copied().ok_or_else(|| {
            let known: Vec<_> = VacationFigure::ALL.iter().map(VacationFigure::to_string).collect();
            UnknownFigure { name: name.to_owned(), known: known.join(", ") }
        })
    }
}

impl fmt::Display for VacationFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names_of_their_own_and_an_unknown_one_is_answered_with_all() {
        let names: Vec<_> =
            VacationFigure::ALL.iter().flat_map(|f| f.also.iter().chain([&f.name])).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
            assert!(name.parse::<VacationFigure>().is_ok());
        }
        assert_eq!("5.4".parse(), Ok(VacationFigure::WORKERS));
        let unknown = "5.7".parse::<VacationFigure>().unwrap_err().to_string();
        assert!(unknown.starts_with("`5.7` is not taken again; there are 4.3, 5.10,"), "{unknown}");
    }
}
