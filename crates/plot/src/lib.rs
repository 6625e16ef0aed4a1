//! Charts as SVG that can be read on paper, on a phone, in the dark, with colour blindness and with a screen reader.
//!
//! ```
//! use rheostat_plot::Page;
//! use rheostat_plot::{Axis, Line, LineChart, Unit};
//!
//! let sizes = [(1.0, 0.5), (10.0, 0.8), (30.0, 0.95), (5_900.0, 1.0)];
//! let chart = LineChart::new(
//!     Axis::log("packets of a flow", Unit::Count),
//!     Axis::linear("flows no larger", Unit::Share),
//! )
//! .with(Line::new("flows", sizes).step());
//! let mut page = Page::new("mix.pcap");
//! page.figure("Flow sizes", "Half of the flows are a single packet.", &chart);
//! assert!(page.finish().contains("<svg"));
//! ```
//!
//! A chart has no looks of its own: what it draws has classes, and the style sheet of
//! [`Page`] gives them colours for light and dark.

mod axis;
mod bars;
mod boxes;
#[cfg(test)]
mod colours;
mod frame;
mod heat;
mod lines;
mod page;
mod rank;
mod scale;
mod series;
mod stacks;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod unit;

pub use axis::Axis;
pub use bars::{Bar, BarChart};
pub use boxes::{BoxChart, Percentiles};
pub use heat::{HeatMap, Panel};
pub use lines::{Floor, LineChart};
pub use page::Page;
pub use rank::{Rank, RankChart};
pub use series::{Line, Point, SERIES};
pub use stacks::{Part, Stack, StackChart, StackPanel};
pub use svg::escape;
pub use table::Table;
pub use unit::Unit;

/// What a page needs of a chart.
pub trait Chart {
    /// The chart as an `<svg>` element. `title` and `says` are for screen readers.
    fn svg(&self, title: &str, says: &str) -> String;
    /// What its colours, strokes and shades mean, apart from what the chart itself has written into it.
    fn keys(&self) -> Vec<Key>;
    /// Its numbers.
    fn table(&self) -> Table;
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// A small `<svg>` of what it is about.
    pub sample: String,
    /// What that means.
    pub text: String,
}
