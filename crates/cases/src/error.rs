//! Why a case does not pass.

use std::fmt;

use thiserror::Error;

use crate::way::CaseWay;

/// Why a case does not pass.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CaseError {
    /// It cannot be read, or its chain cannot be made.
    #[error("{}{problem}", Position(file, *line))]
    Unreadable {
        /// The case.
        file: String,
        /// The line, counted from 1, if it is about one.
        line: Option<usize>,
        /// The mistake.
        problem: String,
    },
    /// An outcome is not the expected one.
    #[error("{}expected {expected}\n  got {got}{}", Position(file, *line), Suffix(way))]
    Failed {
        /// The case.
        file: String,
        /// The line of the expectation, counted from 1; `None` if it is about the run as a whole.
        line: Option<usize>,
        /// The expected outcome, in words of a case.
        expected: String,
        /// The outcome.
        got: String,
        /// Lanes and variant of the run, in words.
        way: String,
    },
}

impl CaseError {
    pub(crate) fn unreadable(file: &str, line: Option<usize>, problem: String) -> CaseError {
        CaseError::Unreadable { file: file.to_owned(), line, problem }
    }

    pub(crate) fn failed(
        file: &str,
        line: Option<usize>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> CaseError {
        CaseError::Failed {
            file: file.to_owned(),
            line,
            expected: expected.into(),
            got: got.into(),
            way: String::new(),
        }
    }

    /// The error with the run that it came from.
    pub(crate) fn in_way(mut self, run: CaseWay, variant: &str) -> CaseError {
        if let CaseError::Failed { way, .. } = &mut self {
            *way = run.to_string();
            if !variant.is_empty() {
                *way = format!("{way}, {variant}");
            }
        }
        self
    }
}

/// `file:line: `.
struct Position<'a>(&'a str, Option<usize>);

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(line) => write!(f, "{}:{line}: ", self.0),
            None => write!(f, "{}: ", self.0),
        }
    }
}

/// The way of a run behind a message.
struct Suffix<'a>(&'a str);

impl fmt::Display for Suffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            way => write!(f, "\n  on {way}"),
        }
    }
}
