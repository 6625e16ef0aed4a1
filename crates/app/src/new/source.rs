//! The rheostat that a project depends on.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The checkout that this program was built from, and its commit.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Files of a checkout that projects have, too: the versions that it was tested with.
const PINNED: [&str; 2] = ["Cargo.lock", "rust-toolchain.toml"];

/// Why there is no rheostat to depend on.
#[derive(Debug, Error)]
pub(crate) enum SourceError {
    #[error("`{}` is no checkout of rheostat; pass one with --rheostat PATH, or a repository and a commit with --rheostat URL#REV", .0.display())]
    NoCheckout(PathBuf),
    #[error(
        "the checkout that this program was built from (commit {0}) is not on this machine; pass --rheostat PATH, or --rheostat URL#REV"
    )]
    Gone(&'static str),
    #[error("`{0}` names no commit; write URL#REV, such as {0}#{commit}", commit = crate::BUILD.commit)]
    NoCommit(String),
}

/// A rheostat to depend on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A checkout.
    Path(PathBuf),
    /// A repository and a commit.
    Git { url: String, commit: String },
}

impl Source {
    /// The one that was requested, or else the checkout that this program was built from.
    pub(super) fn find(requested: Option<&str>) -> Result<Source, SourceError> {
        let Some(requested) = requested else {
            return checkout(Path::new(CHECKOUT))
                .map(Source::Path)
                .ok_or(SourceError::Gone(crate::BUILD.commit));
        };
        if let Some((url, commit)) = requested.split_once('#') {
            return match url.is_empty() || commit.is_empty() {
                true => Err(SourceError::NoCommit(url.to_owned())),
                false => Ok(Source::Git { url: url.to_owned(), commit: commit.to_owned() }),
            };
        }
        if requested.contains("://") {
            return Err(SourceError::NoCommit(requested.to_owned()));
        }
        let path = PathBuf::from(requested);
        checkout(&path).map(Source::Path).ok_or(SourceError::NoCheckout(path))
    }

    /// `text` with the dependency in place of `{{rheostat}}`.
    pub(super) fn fill(&self, text: String) -> String {
        // Text of TOML, with its escapes.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let dependency = match self {
            Source::Path(path) => format!("{{ path = {} }}", quoted(&path.to_string_lossy())),
            Source::Git { url, commit } => {
                format!("{{ git = {}, rev = {} }}", quoted(url), quoted(commit))
            }
        };
        text.replace("{{rheostat}}", &dependency)
    }

    /// Files that pin versions, with their content.
    pub(super) fn pinned(&self) -> Vec<(&'static str, Vec<u8>)> {
        let Source::Path(path) = self else { return Vec::new() };
        let read = |file: &&'static str| Some((*file, fs::read(path.join(file)).ok()?));
        PINNED.iter().filter_map(read).collect()
    }
}

/// The absolute path of a checkout, if `path` is one.
fn checkout(path: &Path) -> Option<PathBuf> {
    let manifest = fs::read_to_string(path.join("Cargo.toml")).ok()?;
    let is_rheostat = manifest.lines().any(|line| line.trim() == "name = \"rheostat\"");
    if is_rheostat { path.canonicalize().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_a_checkout_or_a_commit() {
        let checkout = Source::find(None).expect("tests run in a checkout");
        assert_eq!(Source::find(Some(CHECKOUT)).unwrap(), checkout);
        assert!(checkout.fill("{{rheostat}}".into()).starts_with("{ path = \"/"));
        assert!(checkout.pinned().iter().any(|(file, _)| *file == "Cargo.lock"));
        let git = Source::find(Some("https://example.org/rheostat#1a2b3c")).unwrap();
        let expected = r#"{ git = "https://example.org/rheostat", rev = "1a2b3c" }"#;
        assert_eq!(git.fill("{{rheostat}}".into()), expected);
        assert!(git.pinned().is_empty());
    }

    #[test]
    fn anything_else_is_refused_with_the_fix() {
        let refused = |text| Source::find(Some(text)).unwrap_err().to_string();
        assert!(refused("/nowhere").contains("is no checkout of rheostat"));
        assert!(refused(env!("CARGO_MANIFEST_DIR")).contains("is no checkout of rheostat"));
        assert!(refused("https://example.org/rheostat").contains("write URL#REV"));
        assert!(refused("https://example.org/rheostat#").contains("write URL#REV"));
    }
}
