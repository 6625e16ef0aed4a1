//! Where the costs of requests are from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

use super::costs::{RequestCosts, RequestCostsError};

/// Where costs are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CostsSource {
    /// Those of the thesis.
    #[default]
    Thesis,
    /// A file that `rheo bench sched --costs` wrote.
    Measured(PathBuf),
}

/// Why a text names no costs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no costs: use thesis, or measured:FILE")]
pub struct UnknownCosts(String);

impl CostsSource {
    /// Reads the costs.
    ///
    /// # Errors
    /// [`RequestCostsError`] when the file is not there, or is none of costs.
    pub fn open(&self) -> Result<RequestCosts, RequestCostsError> {
        match self {
            CostsSource::Thesis => Ok(RequestCosts::thesis()),
            CostsSource::Measured(file) => RequestCosts::open(file),
        }
    }

    /// Looks for the file in `folder`, unless its path begins at the root.
    pub fn within(&self, folder: &Path) -> CostsSource {
        match self {
            CostsSource::Thesis => CostsSource::Thesis,
            CostsSource::Measured(file) => CostsSource::Measured(folder.join(file)),
        }
    }
}

impl FromStr for CostsSource {
    type Err = UnknownCosts;

    fn from_str(text: &str) -> Result<CostsSource, UnknownCosts> {
        match text.split_once(':') {
            None if text == "thesis" => Ok(CostsSource::Thesis),
            Some(("measured", file)) if !file.is_empty() => Ok(CostsSource::Measured(file.into())),
            _ => Err(UnknownCosts(text.to_owned())),
        }
    }
}

impl fmt::Display for CostsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostsSource::Thesis => f.write_str("thesis"),
            CostsSource::Measured(file) => write!(f, "measured:{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_as_they_are_written() {
        for text in ["thesis", "measured:a.json", "measured:/b/a.json"] {
            assert_eq!(text.parse::<CostsSource>().unwrap().to_string(), text);
        }
        for text in ["", "measured", "measured:", "guessed"] {
            let error = text.parse::<CostsSource>().unwrap_err().to_string();
            assert!(error.contains("use thesis, or measured:FILE"), "{error}");
        }
        let within = |text: &str| text.parse::<CostsSource>().unwrap().within(Path::new("c"));
        assert_eq!(within("measured:a.json").to_string(), "measured:c/a.json");
        assert_eq!(within("measured:/b/a.json").to_string(), "measured:/b/a.json");
        assert_eq!(within("thesis"), CostsSource::Thesis);
    }
}
