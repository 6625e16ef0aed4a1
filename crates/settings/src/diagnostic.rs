//! What is said about a configuration: mistakes, which refuse it, and warnings, which do not. Each
//! names the place in the file, shows the offending text and states the fix.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity,
    SourceCode,
};
use rheostat_base::printable::{masked, printable, printable_lines};

/// One thing wrong with a configuration, or questionable about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    key: String,
    message: String,
    labels: Vec<(Range<usize>, String)>,
    help: Option<String>,
    severity: Severity,
}

impl Finding {
    /// A mistake at the key `key`, such as `device[0].rate`.
    pub fn mistake(key: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding {
            key: key.into(),
            message: message.into(),
            labels: Vec::new(),
            help: None,
            severity: Severity::Error,
        }
    }

    /// Something that works, but hardly as meant.
    pub fn warning(key: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::mistake(key, message) }
    }

    /// Points at a place in the file, where there is one.
    #[must_use]
    pub fn at(mut self, place: Option<Range<usize>>, label: impl Into<String>) -> Finding {
        self.labels.extend(place.map(|place| (place, label.into())));
        self
    }

    /// Adds the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }

    /// The key it is about, with its tables, such as `device[0].rate`; a flag of the command line
    /// where that is to blame; empty for text that is not TOML.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, in one sentence without a full stop.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to put it right.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Whether it refuses the configuration; a warning does not.
    pub fn is_mistake(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The byte ranges of the file it points at.
    pub fn places(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.labels.iter().map(|(place, _)| place.clone())
    }

    /// The byte ranges of the file it points at, each with what is said of it there; that may be nothing.
    pub fn labels(&self) -> impl Iterator<Item = (Range<usize>, &str)> + '_ {
        self.labels.iter().map(|(place, label)| (place.clone(), label.as_str()))
    }

    /// Where it comes in the file; what has no place comes last.
    fn position(&self) -> usize {
        self.labels.iter().map(|(place, _)| place.start).min().unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Finding {}

impl Diagnostic for Finding {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.labels.iter().map(|(place, label)| {
            let label = (!label.is_empty()).then(|| label.clone());
            LabeledSpan::new_with_span(label, place.clone())
        });
        Some(Box::new(labels))
    }
}

/// Everything found in one configuration, in the order of the file, together with its text, so that it
/// can be shown. [`miette`] can print it; so can [`Report::render`].
#[derive(Debug)]
pub struct Report {
    source: NamedSource<String>,
    findings: Vec<Finding>,
}

impl Report {
    /// `name` is the file's, shown to people; the findings are put into the order of the file.
    pub fn new(name: &str, text: &str, mut findings: Vec<Finding>) -> Report {
        for (place, _) in findings.iter_mut().flat_map(|finding| &mut finding.labels) {
            *place = place.start.min(text.len())..place.end.min(text.len());
        }
        findings.sort_by_key(Finding::position);
        findings.dedup();
        Report { source: NamedSource::new(name, text.to_owned()), findings }
    }

    /// The file's name, as people know it.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// The line and the column of a byte of the file, both from 1; columns count characters.
    pub fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let text = self.source.inner();
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
    }

    /// The findings, in the order of the file.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The report as text for people, with colours or without; without, in plain ASCII art.
    pub fn render(&self, colours: bool) -> String {
        let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::none() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        let mut text = String::new();
        let shown = self.printable();
        match handler.render_report(&mut text, &shown) {
            Ok(()) => text,
            // The drawing failed; the words are what matters.
            Err(fmt::Error) => shown.findings.iter().fold(format!("{shown}\n"), |text, finding| {
                let help = finding.help.as_deref().unwrap_or_default();
                format!("{text}{}: {}\n{help}\n", finding.key, finding.message)
            }),
        }
    }
}

impl Report {
    /// The same without control characters, which a file, and the values it holds, may have.
    fn printable(&self) -> Report {
        let finding = |finding: &Finding| Finding {
            message: printable(&finding.message).into_owned(),
            help: finding.help.as_deref().map(|help| printable_lines(help).into_owned()),
            labels: finding
                .labels
                .iter()
                .map(|(place, label)| (place.clone(), printable(label).into_owned()))
                .collect(),
            ..finding.clone()
        };
        let name = printable(self.source.name()).into_owned();
        Report {
            source: NamedSource::new(name, masked(self.source.inner())),
            findings: self.findings.iter().map(finding).collect(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mistakes = self.findings.iter().filter(|finding| finding.is_mistake()).count();
        let warnings = self.findings.len() - mistakes;
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        write!(f, "{}: ", self.source.name())?;
        match (mistakes, warnings) {
            (0, warnings) => f.write_str(&plural(warnings, "warning")),
            (mistakes, 0) => f.write_str(&plural(mistakes, "mistake")),
            _ => write!(f, "{}, {}", plural(mistakes, "mistake"), plural(warnings, "warning")),
        }
    }
}

impl Error for Report {}

impl Diagnostic for Report {
    fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.findings.iter().map(|finding| finding as &dyn Diagnostic)))
    }
}
