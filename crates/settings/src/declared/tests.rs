use std::time::Duration;

use super::{DeclaredSettings, Form, kind};
use crate::diagnostic::Report;
use crate::document;
use crate::findings::Findings;
use crate::reader::Table;

crate::settings! {
    /// Settings of a made-up service.
    struct Sample {
        /// The directory.
        root: String = kind::text(), value("DIR"), required("root = \"/srv\"");
        /// Whether clients write.
        writable: bool = kind::boolean(), default(false);
        /// Bytes of an upload at most.
        longest: u64 = kind::size(1..=1 << 20), value("SIZE"), default(1 << 10)
            => writable == Some(true), "writable = true";
        /// Ports.
        burst: Option<u16> = kind::optional(kind::integer(1..=32)), value("N"), flag("pieces");
        /// How long.
        time: Duration = kind::duration(Duration::ZERO..=Duration::from_secs(60)), value("TIME"),
            default(Duration::from_secs(5)), excludes("burst");
        /// How.
        mode: u8 = kind::choice(&[("slow", 1), ("fast", 2)]), default(1);
    }
}

/// Reads `text` as the document's only table; otherwise returns the mistakes.
fn read(text: &str) -> Result<Sample, String> {
    let text = format!("[sample]\n{text}");
    let document = document::parse(&text).unwrap();
    let mut findings = Findings::default();
    let read = Table::read_root(&document, &mut findings, |root, findings| {
        root.section("sample", findings, Sample::read).flatten()
    });
    match findings.refuses() {
        false => Ok(read.expect("no mistake, so it is read")),
        true => Err(Report::new("file", &text, findings.into_list()).render(false)),
    }
}

#[test]
fn settings_that_are_left_out_have_their_defaults() {
    let sample = read("root = \"/srv\"\n").unwrap();
    let expected = Sample {
        root: "/srv".to_owned(),
        writable: false,
        longest: 1 << 10,
        burst: None,
        time: Duration::from_secs(5),
        mode: 1,
    };
    assert_eq!(sample, expected);
    assert_eq!(sample.differences(), Vec::<String>::new());
}

#[test]
fn settings_that_are_given_are_read_and_differ() {
    let text = "root = \"/srv\"\nwritable = true\nlongest = \"1MiB\"\nburst = 4\ntime = \"0s\"\nmode = \"fast\"\n";
    let sample = read(text).unwrap();
    assert_eq!((sample.longest, sample.burst, sample.mode), (1 << 20, Some(4), 2));
    let differences = ["writable true", "longest 1MiB", "burst 4", "time 0s", "mode fast"];
    assert_eq!(sample.differences(), differences);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let mistakes = read("longest = \"1KiB\"\nburst = 33\nmode = \"fst\"\ntimes = 1\n").unwrap_err();
    for part in [
        "5 mistakes",
        "`[sample]` has no `root`",
        "add `root = \"/srv\"`",
        "`longest` has a meaning with `writable = true` only",
        "write a number between 1 and 32",
        "did you mean `fast`?",
        "did you mean `time`?",
        "`root`, `writable`, `longest`, `burst`, `time`, `mode`",
    ] {
        assert!(mistakes.contains(part), "{part} in\n{mistakes}");
    }
}

#[test]
fn a_declaration_has_what_a_flag_and_its_help_need() {
    let settings = Sample::declarations();
    let find = |key| settings.iter().find(|setting| setting.key == key).unwrap();
    let root = find("root");
    assert!(root.is_required && root.default.is_none());
    assert_eq!(find("writable").form, Form::Switch);
    assert_eq!(find("writable").default, None, "a switch shows no default");
    let longest = find("longest");
    assert_eq!(longest.condition, Some("writable = true"));
    let help = "Bytes of an upload at most. [1B to 1MiB] [default: 1KiB]";
    assert_eq!((longest.to_string(), longest.value), (help.to_owned(), "SIZE"));
    assert_eq!((find("burst").flag(), &find("burst").default), ("pieces".to_owned(), &None));
    assert_eq!((find("time").flag(), find("time").excludes), ("time".to_owned(), Some("burst")));
    assert_eq!(find("mode").bounds.as_deref(), Some("slow, fast"));
}

#[test]
fn values_of_flags_become_lines_that_read_back() {
    let settings = Sample::declarations();
    let line = |key: &str, value: &str| {
        let setting = settings.iter().find(|setting| setting.key == key).unwrap();
        setting.line(&[value.to_owned()])
    };
    assert_eq!(line("burst", "4"), "burst = 4\n");
    assert_eq!(line("burst", "4x"), "burst = \"4x\"\n");
    assert_eq!(line("time", "5"), "time = \"5\"\n");
    assert_eq!(line("root", "a\"\\\n"), "root = \"a\\\"\\\\\\u000a\"\n");
    let text = [line("root", "/x"), line("writable", ""), line("longest", "2KiB")].concat();
    assert_eq!(read(&text).unwrap().longest, 2 << 10);
    assert!(read(&(text + &line("time", "5"))).unwrap_err().contains("the unit is missing"));
}
