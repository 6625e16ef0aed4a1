//! The colours packets come with, and what becomes of each colour.

use crate::policer::{Action, Actions, Colour, ColourMap, Dscp};

use super::meter::Kind;
use rheostat_settings::declared::kind::{Kind as Declared, boolean, list};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::parsed;
use rheostat_settings::reader::{Table, Value};

const COLOURED: &str = "meter = \"srtcm\"` or `meter = \"trtcm\"";
const AWARE: &str = "colour_aware = true";

rheostat_settings::keys! {
    struct Keys {
        /// Whether packets come with a colour, by their code points, and are never better after the meter.
        colour_aware: bool = boolean(), default(false), with(COLOURED);
        /// What becomes of green packets: pass, drop, drop-precedence, or a code point to mark them with.
        green: Action = action(), default(Actions::default().green);
        /// What becomes of yellow packets.
        yellow: Action = action(), default(Actions::default().yellow), with(COLOURED);
        /// What becomes of red packets.
        red: Action = action(), default(Actions::default().red);
    }
}

rheostat_settings::keys! {
    struct ColourKeys {
        /// Code points that are green; so are all that have no colour.
        green: Vec<Dscp> = list(code_point());
        /// Code points that are yellow.
        yellow: Vec<Dscp> = list(code_point());
        /// Code points that are red.
        red: Vec<Dscp> = list(code_point());
    }
}

/// The keys about colours.
pub(super) fn keys() -> Vec<Setting> {
    let mut keys = Keys::new().settings();
    let help = "The colours that code points stand for.";
    let colours = Setting::table("colours", help, ColourKeys::new().settings()).with(AWARE);
    keys.insert(1, colours);
    keys
}

/// Reads which code points have which colour, if the meters are to be aware of colours.
pub(super) fn read_colours(
    table: &mut Table<'_>,
    kind: Kind,
    findings: &mut Findings,
) -> Option<ColourMap> {
    let keys = Keys::new();
    if kind == Kind::Plain {
        keys.colour_aware.refuse(table, findings);
        table.refuse(&["colours"], COLOURED, findings);
        return None;
    }
    if !keys.colour_aware.read_or_default(table, findings) {
        table.refuse(&["colours"], AWARE, findings);
        return None;
    }
    let mut map = ColourMap::default();
    table.section("colours", findings, |table, findings| {
        let mut known: Vec<(Dscp, &str)> = Vec::new();
        let keys = ColourKeys::new();
        for (declared, name, colour) in [
            (keys.green, "green", Colour::Green),
            (keys.yellow, "yellow", Colour::Yellow),
            (keys.red, "red", Colour::Red),
        ] {
            let code_points = declared.read(table, findings);
            for dscp in code_points.into_iter().flatten() {
                if let Some((_, earlier)) = known.iter().find(|(other, _)| *other == dscp) {
                    let message = format!("`{dscp}` is both {earlier} and {name}");
                    let place = |name| findings.place(&table.key_of(name));
                    let finding = Finding::mistake(table.key_of(name), message)
                        .at(place(earlier), "")
                        .at(place(name), "")
                        .help("a code point has one colour: remove it from one of them");
                    findings.push(finding);
                }
                known.push((dscp, name));
                map.set(dscp, colour);
            }
        }
    });
    Some(map)
}

/// Reads what becomes of each colour.
pub(super) fn read_actions(table: &mut Table<'_>, kind: Kind, findings: &mut Findings) -> Actions {
    let keys = Keys::new();
    if kind == Kind::Plain {
        keys.yellow.refuse(table, findings);
    }
    let green = keys.green.read_or_default(table, findings);
    let yellow = match kind {
        Kind::Plain => Actions::default().yellow,
        Kind::SingleRate | Kind::TwoRate => keys.yellow.read_or_default(table, findings),
    };
    Actions { green, yellow, red: keys.red.read_or_default(table, findings) }
}

fn action() -> Declared<Action> {
    let write = |action: &Action| match action {
        Action::Pass => "pass".to_owned(),
        Action::Drop => "drop".to_owned(),
        Action::DropPrecedence => "drop-precedence".to_owned(),
        Action::Remark(dscp) => dscp.to_string(),
    };
    Declared::new(Form::Text, read_action, write)
        .noun("word, or code point by name or number")
        .within("pass, drop, drop-precedence, or a code point")
}

fn read_action(value: &Value<'_>, findings: &mut Findings) -> Option<Action> {
    match value.text() {
        Some("pass") => Some(Action::Pass),
        Some("drop") => Some(Action::Drop),
        Some("drop-precedence") => Some(Action::DropPrecedence),
        _ => {
            let example =
                "\"pass\", \"drop\", \"drop-precedence\", or a code point such as \"af12\"";
            code_point_like(example)(value, findings).map(Action::Remark)
        }
    }
}

/// A code point, by name or number.
pub fn code_point() -> Declared<Dscp> {
    let read = code_point_like("a code point such as \"af12\" or 46");
    Declared::new(Form::Number, read, Dscp::to_string)
        .noun("code point, by name or number")
        .such_as("\"af12\"")
}

fn code_point_like(example: &'static str) -> impl Fn(&Value<'_>, &mut Findings) -> Option<Dscp> {
    move |value, findings| {
        if value.is_integer() {
            return integer(0..=63)(value, findings).and_then(|number| Dscp::new(number as u8));
        }
        parsed(example)(value, findings)
    }
}
