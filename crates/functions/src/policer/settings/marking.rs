//! The colours packets come with, and what becomes of each colour.

use crate::policer::{Action, Actions, Colour, ColourMap, Dscp};

use super::meter::Kind;
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::{boolean, list, parsed};
use rheostat_settings::reader::{Table, Value};

const COLOURS: [(&str, Colour); 3] =
    [("green", Colour::Green), ("yellow", Colour::Yellow), ("red", Colour::Red)];
const COLOURED: &str = "meter = \"srtcm\"` or `meter = \"trtcm\"";

/// Reads which code points have which colour, if the meters are to be aware of colours.
pub(super) fn read_colours(
    table: &mut Table<'_>,
    kind: Kind,
    findings: &mut Findings,
) -> Option<ColourMap> {
    if kind == Kind::Plain {
        table.refuse(&["colour_aware", "colours"], COLOURED, findings);
        return None;
    }
    if table.read("colour_aware", findings, boolean) != Some(true) {
        table.refuse(&["colours"], "colour_aware = true", findings);
        return None;
    }
    let mut map = ColourMap::default();
    table.section("colours", findings, |table, findings| {
        let mut known: Vec<(Dscp, &str)> = Vec::new();
        for (name, colour) in COLOURS {
            let code_points = table.read(name, findings, list(code_point));
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
    let default = Actions::default();
    if kind == Kind::Plain {
        table.refuse(&["yellow"], COLOURED, findings);
    }
    let green = table.read("green", findings, action);
    let yellow = if kind == Kind::Plain { None } else { table.read("yellow", findings, action) };
    let red = table.read("red", findings, action);
    Actions {
        green: green.unwrap_or(default.green),
        yellow: yellow.unwrap_or(default.yellow),
        red: red.unwrap_or(default.red),
    }
}

fn action(value: &Value<'_>, findings: &mut Findings) -> Option<Action> {
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
pub fn code_point(value: &Value<'_>, findings: &mut Findings) -> Option<Dscp> {
    code_point_like("a code point such as \"af12\" or 46")(value, findings)
}

fn code_point_like(example: &str) -> impl Fn(&Value<'_>, &mut Findings) -> Option<Dscp> {
    move |value, findings| {
        if value.is_integer() {
            return integer(0..=63)(value, findings).and_then(|number| Dscp::new(number as u8));
        }
        parsed(example)(value, findings)
    }
}
