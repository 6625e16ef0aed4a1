//! Conditional requests (RFC 9110, section 13).

use super::date;
use super::method::Method;
use super::tree::Version;

/// The conditions of a request, as they were sent. Repeated fields are one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) if_match: Option<String>,
    pub(super) if_none_match: Option<String>,
    pub(super) if_modified_since: Option<String>,
    pub(super) if_unmodified_since: Option<String>,
    pub(super) if_range: Option<String>,
}

/// What names a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Validators {
    /// The opaque part of the entity tag, with its quotes.
    pub(super) tag: String,
    /// Whether no two versions can have the same validators: the file was not modified within the second before it was looked at.
    pub(super) is_strong: bool,
    /// Seconds since 1970.
    pub(super) modified: i64,
}

impl Validators {
    /// Those of a version that was current at `now`, in seconds since 1970.
    pub(super) fn of(version: &Version, now: i64) -> Validators {
        let (seconds, nanoseconds) = version.modified;
        let tag = format!("\"{seconds:x}.{nanoseconds:x}-{:x}\"", version.len);
        // File systems tell times apart that differ by some milliseconds, and old ones by a second.
        Validators { tag, is_strong: now > seconds + 1, modified: seconds }
    }
}

/// Whether a request is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Proceed,
    /// The client has this version (304).
    NotModified,
    /// (412)
    Failed,
}

impl Conditions {
    /// Evaluates the conditions in the order of section 13.2.2, for a file with these validators; none if there is no such file.
    /// `now` is in seconds since 1970.
    pub(super) fn evaluate(&self, method: Method, file: Option<&Validators>, now: i64) -> Outcome {
        let date = |text: &Option<String>| date::parse(text.as_deref()?, now);
        let reads = matches!(method, Method::Get | Method::Head);
        if let Some(tags) = &self.if_match {
            // Strong comparison.
            let is_it = |file: &Validators| {
                tags.trim() == "*"
                    || file.is_strong
                        && entity_tags(tags).any(|(is_weak, tag)| !is_weak && tag == file.tag)
            };
            if !file.is_some_and(is_it) {
                return Outcome::Failed;
            }
        } else if let (Some(since), Some(file)) = (date(&self.if_unmodified_since), file)
            && file.modified > since
        {
            return Outcome::Failed;
        }
        let is_known = match &self.if_none_match {
            // Weak comparison.
            Some(tags) => file.is_some_and(|file| {
                tags.trim() == "*" || entity_tags(tags).any(|(_, tag)| tag == file.tag)
            }),
            None if reads => match (date(&self.if_modified_since), file) {
                (Some(since), Some(file)) => file.modified <= since,
                _ => false,
            },
            None => false,
        };
        match is_known {
            true if reads => Outcome::NotModified,
            true => Outcome::Failed,
            false => Outcome::Proceed,
        }
    }

    /// Whether a range may be sent: the client has another part of this version (section 13.1.5).
    pub(super) fn permit_range(&self, file: &Validators, now: i64) -> bool {
        let Some(text) = self.if_range.as_deref().map(str::trim) else { return true };
        if !file.is_strong {
            return false;
        }
        match text.starts_with(['"', 'W']) && text.contains('"') {
            true => text == file.tag,
            false => date::parse(text, now) == Some(file.modified),
        }
    }

    /// Whether the file must be new: `If-None-Match: *`.
    pub(super) fn want_new(&self) -> bool {
        self.if_none_match.as_deref().is_some_and(|tags| tags.trim() == "*")
    }
}

/// The entity tags of a list: whether each is weak, and its opaque part. Ends at what is none.
fn entity_tags(list: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let is_weak = rest.starts_with("W/");
        let tag = rest.strip_prefix("W/").unwrap_or(rest);
        let len = tag.strip_prefix('"')?.find('"')? + 2;
        rest = &tag[len..];
        Some((is_weak, &tag[..len]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn file(is_strong: bool) -> Validators {
        Validators { tag: "\"a,b\"".to_owned(), is_strong, modified: 784_111_777 }
    }

    fn evaluate(method: Method, fields: &[(&str, &str)]) -> Outcome {
        of(fields).evaluate(method, Some(&file(true)), 784_112_000)
    }

    fn of(fields: &[(&str, &str)]) -> Conditions {
        let mut conditions = Conditions::default();
        for (name, value) in fields {
            let field = match *name {
                "M" => &mut conditions.if_match,
                "NM" => &mut conditions.if_none_match,
                "MS" => &mut conditions.if_modified_since,
                "US" => &mut conditions.if_unmodified_since,
                _ => &mut conditions.if_range,
            };
            *field = Some((*value).to_owned());
        }
        conditions
    }

    /// RFC 9110, 13.1.2: weak comparison; 304 for GET and HEAD, 412 otherwise.
    #[test]
    fn if_none_match_compares_weakly() {
        for tags in ["\"a,b\"", "W/\"a,b\"", "\"x\", W/\"a,b\"", "*", " * ", ", \"y\" ,\"a,b\""] {
            assert_eq!(evaluate(Method::Get, &[("NM", tags)]), Outcome::NotModified, "{tags}");
            assert_eq!(evaluate(Method::Head, &[("NM", tags)]), Outcome::NotModified, "{tags}");
            assert_eq!(evaluate(Method::Put, &[("NM", tags)]), Outcome::Failed, "{tags}");
        }
        for tags in ["", "\"a\"", "a,b", "\"a,b", "W/", "x, \"a,b\""] {
            assert_eq!(evaluate(Method::Get, &[("NM", tags)]), Outcome::Proceed, "{tags}");
        }
        let new = of(&[("NM", "*")]);
        assert_eq!(new.evaluate(Method::Put, None, 0), Outcome::Proceed);
    }

    /// RFC 9110, 13.1.1: strong comparison, and no file matches nothing.
    #[test]
    fn if_match_compares_strongly() {
        assert_eq!(evaluate(Method::Put, &[("M", "\"a,b\"")]), Outcome::Proceed);
        assert_eq!(evaluate(Method::Put, &[("M", "*")]), Outcome::Proceed);
        assert_eq!(evaluate(Method::Get, &[("M", "W/\"a,b\"")]), Outcome::Failed);
        assert_eq!(evaluate(Method::Get, &[("M", "\"x\"")]), Outcome::Failed);
        let conditions = of(&[("M", "\"a,b\"")]);
        assert_eq!(conditions.evaluate(Method::Get, Some(&file(false)), 0), Outcome::Failed);
        assert_eq!(of(&[("M", "*")]).evaluate(Method::Put, None, 0), Outcome::Failed);
    }

    /// RFC 9110, 13.1.3 and 13.1.4: invalid dates are ignored, and so are dates beside tags (13.2.2).
    #[test]
    fn dates_count_where_no_tag_was_sent() {
        let (before, after) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:38 GMT");
        for (fields, expected) in [
            (&[("MS", SINCE)][..], Outcome::NotModified),
            (&[("MS", after)], Outcome::NotModified),
            (&[("MS", before)], Outcome::Proceed),
            (&[("MS", "yesterday")], Outcome::Proceed),
            (&[("MS", after), ("NM", "\"x\"")], Outcome::Proceed),
            (&[("US", SINCE)], Outcome::Proceed),
            (&[("US", before)], Outcome::Failed),
            (&[("US", "yesterday")], Outcome::Proceed),
            (&[("US", before), ("M", "*")], Outcome::Proceed),
            (&[("US", before), ("NM", "*")], Outcome::Failed),
        ] {
            assert_eq!(evaluate(Method::Get, fields), expected, "{fields:?}");
        }
        assert_eq!(evaluate(Method::Put, &[("MS", after)]), Outcome::Proceed, "for reads only");
    }

    /// RFC 9110, 13.1.5: strong comparison; a date must be exactly that of the file.
    #[test]
    fn if_range_permits_a_range_of_the_same_version_only() {
        for (text, expected) in [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            ("*", false),
            (SINCE, true),
            ("Sunday, 06-Nov-94 08:49:37 GMT", true),
            ("Sun, 06 Nov 1994 08:49:38 GMT", false),
            ("Wed, 06 Nov 1996 08:49:38 GMT", false),
            ("", false),
        ] {
            assert_eq!(
                of(&[("R", text)]).permit_range(&file(true), 784_112_000),
                expected,
                "{text}"
            );
            assert!(!of(&[("R", text)]).permit_range(&file(false), 784_112_000), "{text}");
        }
        assert!(Conditions::default().permit_range(&file(false), 0));
    }
}
