//! Whether a file can be written, found out without making it or changing what it holds.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use rheostat_io::{CaptureWriter, WriteError};
use rheostat_observe::LogError;
use rustix::fs::{Access, access};

/// # Errors
/// [`LogError::Start`], as of the code that makes the log.
pub(crate) fn check_log(path: &Path) -> Result<(), LogError> {
    check(path).map_err(|source| LogError::Start { path: path.to_owned(), source })
}

/// # Errors
/// [`WriteError`], as of the code that makes the capture.
pub(crate) fn check_capture(path: &Path) -> Result<(), WriteError> {
    CaptureWriter::check_name(path)?;
    check(path).map_err(|source| WriteError::Create { path: path.to_owned(), source })
}

/// Fails as [`fs::File::create`] would.
fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        // Opened for writing, a file stays as it is; a pipe would wait for its reader.
        Ok(found) if found.is_file() || found.is_dir() => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            if let Ok(target) = fs::read_link(path) {
                // The kernel follows links, also one to a file that is not there yet.
                return check(&folder.join(target));
            }
            if !fs::metadata(folder)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_refused_with_the_error_of_making_it_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("kept"), "text").unwrap();
        symlink("/no/such/folder/x", at("dangling")).unwrap();
        for (name, fits) in [
            ("kept", true),
            ("new", true),
            ("no/folder/new", false),
            ("kept/new", false),
            ("", false),
            ("dangling", false),
        ] {
            let checked = check(&at(name));
            assert!(!at("new").exists());
            assert_eq!(fs::read(at("kept")).unwrap(), b"text", "{name}");
            assert_eq!(checked.is_ok(), fits, "{name}");
            if let Err(error) = checked {
                let made = fs::File::create(at(name)).unwrap_err();
                assert_eq!(error.raw_os_error().or(made.raw_os_error()), made.raw_os_error());
            }
        }
        assert!(check(Path::new("/dev/null")).is_ok());
    }
}
