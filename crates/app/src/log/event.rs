//! An event as a line.

use std::fmt::{Debug, Write};
use std::time::SystemTime;

use rheostat_base::printable::printable;
use rheostat_control::config::LogFormat;
use rheostat_control::config::log::LogLevel;
use serde_json::{Map, Value, json};
use tracing::Event;
use tracing::field::{Field, Visit};

/// The longest line, in bytes: a pipe takes so many at once.
pub(super) const LONGEST: usize = 4_096;

/// An event with its fields.
pub(super) struct LogEvent<'a> {
    level: LogLevel,
    target: &'a str,
    message: String,
    fields: Map<String, Value>,
}

impl<'a> LogEvent<'a> {
    pub(super) fn new(level: LogLevel, target: &'a str, event: &Event<'_>) -> LogEvent<'a> {
        let mut made = LogEvent { level, target, message: String::new(), fields: Map::new() };
        event.record(&mut made);
        made
    }

    /// The line, with its end and of [`LONGEST`] bytes at most: a longer message is cut off. `lost` lines before this one were not
    /// written. Text has the time if `shown` has one.
    pub(super) fn line(
        &self,
        format: LogFormat,
        now: SystemTime,
        shown: Option<SystemTime>,
        lost: u64,
    ) -> String {
        let mut message = self.message.as_str();
        loop {
            let line = match format {
                LogFormat::Json => self.json(message, now, lost),
                LogFormat::Journald => self.journald(message, lost),
                LogFormat::Auto | LogFormat::Text => self.text(message, shown, lost),
            };
            if line.len() <= LONGEST || message.is_empty() {
                return line;
            }
            // Escapes make six bytes of one: so much less is enough, or the next half is.
            let excess = (line.len() - LONGEST).div_ceil(6).max(1);
            message = &message[..message.floor_char_boundary(message.len().saturating_sub(excess))];
        }
    }

    fn text(&self, message: &str, shown: Option<SystemTime>, lost: u64) -> String {
        let time = shown.map_or_else(String::new, |time| {
            format!("{} ", humantime::format_rfc3339_millis(time))
        });
        format!("{time}{}: {}\n", self.word(), printable(&self.with_fields(message, lost)))
    }

    fn journald(&self, message: &str, lost: u64) -> String {
        let priority = match self.level {
            LogLevel::Off | LogLevel::Error => 3,
            LogLevel::Warn => 4,
            LogLevel::Info => 6,
            LogLevel::Debug | LogLevel::Trace => 7,
        };
        format!("<{priority}>{}\n", printable(&self.with_fields(message, lost)))
    }

    fn json(&self, message: &str, now: SystemTime, lost: u64) -> String {
        let mut line = Map::new();
        line.insert("time".into(), json!(humantime::format_rfc3339_millis(now).to_string()));
        line.insert("level".into(), json!(self.level.to_string()));
        line.insert("target".into(), json!(self.target));
        line.insert("message".into(), json!(message));
        for (name, value) in &self.fields {
            line.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if lost > 0 {
            line.insert("lines_lost".into(), json!(lost));
        }
        format!("{}\n", printable(&Value::Object(line).to_string()))
    }

    fn with_fields(&self, message: &str, lost: u64) -> String {
        let mut text = message.to_owned();
        for (name, value) in &self.fields {
            // Into memory, which does not fail.
            let _ = match value {
                Value::String(value) => write!(text, " {name}={value}"),
                value => write!(text, " {name}={value}"),
            };
        }
        if lost > 0 {
            let _ = write!(text, " ({lost} lines before this one were lost: nobody read them)");
        }
        text
    }

    fn word(&self) -> &'static str {
        match self.level {
            LogLevel::Off | LogLevel::Error => "error",
            LogLevel::Warn => "warning",
            LogLevel::Info => "note",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

impl Visit for LogEvent<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => drop(self.fields.insert(name.to_owned(), format!("{value:?}").into())),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => drop(self.fields.insert(name.to_owned(), value.into())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn event(message: &str) -> LogEvent<'static> {
        let fields = Map::from_iter([("device".to_owned(), json!("lan"))]);
        LogEvent { level: LogLevel::Warn, target: "links", message: message.to_owned(), fields }
    }

    fn line(message: &str, format: LogFormat) -> String {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        event(message).line(format, time, Some(time), 0)
    }

    #[test]
    fn a_line_has_the_form_that_is_stated() {
        assert_eq!(
            line("is down", LogFormat::Text),
            "1970-01-01T00:00:01.500Z warning: is down device=lan\n"
        );
        assert_eq!(line("is down", LogFormat::Journald), "<4>is down device=lan\n");
        let json: Value = serde_json::from_str(&line("is down", LogFormat::Json)).unwrap();
        let expected = json!({
            "time": "1970-01-01T00:00:01.500Z", "level": "warn", "target": "links", "message": "is down",
            "device": "lan"
        });
        assert_eq!(json, expected);
        let time = SystemTime::UNIX_EPOCH;
        let lost = event("is up").line(LogFormat::Text, time, None, 3);
        assert_eq!(
            lost,
            "warning: is up device=lan (3 lines before this one were lost: nobody read them)\n"
        );
    }

    #[test]
    fn a_hostile_message_stays_one_printable_line_that_a_pipe_takes_at_once() {
        let hostile = "\u{1b}]0;x\u{7}\nerror: forged é".repeat(2_000);
        for format in [LogFormat::Text, LogFormat::Json, LogFormat::Journald] {
            let line = line(&hostile, format);
            assert!(line.len() <= LONGEST && line.len() > LONGEST / 2, "{}", line.len());
            let line = line.strip_suffix('\n').unwrap();
            assert!(!line.contains(char::is_control), "{line}");
            if format == LogFormat::Json {
                let json: Value = serde_json::from_str(line).unwrap();
                assert!(hostile.starts_with(json["message"].as_str().unwrap()));
            }
        }
    }
}
