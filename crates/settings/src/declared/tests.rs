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
        mode: u8 = kind::choice([("slow", 1), ("fast", 2)]), default(1);
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
fn a_setting_is_not_refused_where_the_one_that_its_condition_names_is_wrong() {
    let mistakes = read("root = \"/srv\"\nwritable = 1\nlongest = \"1KiB\"\n").unwrap_err();
    assert!(mistakes.contains("`writable` must be"), "{mistakes}");
    assert!(!mistakes.contains("`longest`"), "{mistakes}");
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
    assert_eq!((&find("burst").range, &longest.range), (&Some(1..=32), &None));
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

crate::keys! {
    /// Keys of a made-up table that are read one by one.
    struct SampleKeys(most: u64) {
        /// Entries.
        entries: u32 = kind::count(1..=most), required("entries = 5");
        /// Names.
        names: Vec<String> = kind::filled(kind::name());
        /// The share.
        share: f64 = kind::decimal(0.0..=1.0), default(0.25);
        /// The size of a page.
        page: usize = kind::power_of_two(64..=4_096), default(64), with("share = 0.5");
    }
}

/// Reads `text` as the only table by its keys: what was read, and the mistakes.
fn read_keys(text: &str) -> (Option<u32>, f64, usize, String) {
    let text = format!("[sample]\n{text}");
    let document = document::parse(&text).unwrap();
    let mut findings = Findings::default();
    let read = Table::read_root(&document, &mut findings, |root, findings| {
        root.section("sample", findings, |table, findings| {
            let keys = SampleKeys::new(10);
            let entries = keys.entries.read(table, findings);
            keys.names.read(table, findings);
            let share = keys.share.read_or_default(table, findings);
            if share != 0.5 {
                keys.page.refuse(table, findings);
            }
            let unmet = (share != 0.5).then_some("share = 0.5");
            (entries, share, keys.page.read_if(unmet, table, findings).unwrap_or_default())
        })
    });
    let (entries, share, page) = read.expect("the table is there");
    let report = Report::new("file", &text, findings.into_list());
    let mistakes = if report.is_empty() { String::new() } else { report.render(false) };
    (entries, share, page, mistakes)
}

#[test]
fn keys_are_read_one_by_one_with_their_defaults_and_conditions() {
    let (entries, share, page, mistakes) = read_keys("entries = 4\nnames = \"a\"\n");
    assert_eq!((entries, share, page, mistakes.as_str()), (Some(4), 0.25, 64, ""));
    let (.., page, mistakes) = read_keys("entries = 4\nshare = 0.5\npage = 128\n");
    assert_eq!((page, mistakes.as_str()), (128, ""));

    let (entries, _, page, mistakes) = read_keys("names = []\npage = 128\nshare = 2\n");
    assert_eq!((entries, page), (None, 64));
    for part in [
        "`[sample]` has no `entries`",
        "add `entries = 5`",
        "`names` is an empty list",
        "`share` is out of range",
        "`page` has a meaning with `share = 0.5` only",
    ] {
        assert!(mistakes.contains(part), "{part} in\n{mistakes}");
    }
    let (.., mistakes) = read_keys("entries = 11\nshare = 0.5\npage = 100\n");
    assert!(mistakes.contains("write a number between 1 and 10"), "{mistakes}");
    assert!(mistakes.contains("write 64 or 128"), "{mistakes}");
}

#[test]
fn keys_state_type_units_bounds_default_and_example() {
    let keys = SampleKeys::new(10).settings();
    let [entries, names, share, page] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!((entries.kind.as_str(), entries.units), ("count", "k, M, G"));
    assert_eq!((entries.bounds.as_deref(), entries.example.as_str()), (Some("1 to 10"), "5"));
    assert_eq!((names.form, names.example.as_str()), (Form::List, "[\"name\"]"));
    assert_eq!((share.default.as_deref(), share.example.as_str()), (Some("0.25"), "0.25"));
    assert_eq!(page.conditions().as_deref(), Some("`share = 0.5`"));
}
