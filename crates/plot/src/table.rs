//! Numbers in rows.

use std::fmt::Write;

use super::escape;

/// A table; its first column names the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// As HTML, in a box that scrolls sideways where the page is too narrow.
    pub fn html(&self) -> String {
        let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
        for name in &self.head {
            write!(html, "<th scope=\"col\">{}</th>", escape(name))
                .expect("a string takes everything");
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                let element = match at {
                    0 => format!("<th scope=\"row\">{cell}</th>"),
                    _ => format!("<td>{cell}</td>"),
                };
                html.push_str(&element);
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>");
        html
    }
}
