//! The file of a page with charts.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::report::ReportError;

/// The file of a page. It is created before anything is measured: a path that cannot be written costs no minutes.
pub(crate) struct PageFile<'a> {
    path: &'a Path,
    file: File,
}

impl PageFile<'_> {
    /// Creates it.
    pub(crate) fn create(path: &Path) -> Result<PageFile<'_>, ReportError> {
        let file = File::create(path)
            .map_err(|source| ReportError::Io { path: path.to_owned(), source })?;
        Ok(PageFile { path, file })
    }

    /// Writes the page, and reports where it is.
    pub(crate) fn write(mut self, text: &str) -> Result<(), ReportError> {
        self.file
            .write_all(text.as_bytes())
            .map_err(|source| ReportError::Io { path: self.path.to_owned(), source })?;
        err!("charts in {}", self.path.display());
        Ok(())
    }
}
