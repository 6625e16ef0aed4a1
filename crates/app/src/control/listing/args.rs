//! The flags that all listings have.

use std::time::Duration;

use rheostat_base::unit::parse_duration;
use rheostat_observe::control::MOST_ROWS;

use crate::control::Target;

/// The shortest time between two pages of `--watch`.
const SHORTEST: Duration = Duration::from_millis(100);

/// The flags of a listing.
#[derive(Debug, clap::Args)]
pub(crate) struct ListingArgs {
    #[command(flatten)]
    pub(in crate::control) target: Target,
    /// Print a JSON array.
    #[arg(long)]
    pub(in crate::control) json: bool,
    /// Show the listing again and again, every second or at this interval, until Ctrl-C; with --json, an array on each line.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s", value_parser = interval)]
    pub(super) watch: Option<Duration>,
    /// Print how many rows there are, and no row.
    #[arg(long)]
    pub(super) count: bool,
    /// Sort by a column, which is a heading of the table or a field of the JSON; with `,desc` the greatest first.
    #[arg(long, value_name = "COLUMN[,desc]")]
    pub(super) sort: Option<String>,
    /// How many rows at most, up to 100000; 10000 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_ROWS)))]
    pub(in crate::control) limit: Option<u32>,
    /// Continue behind the page that ended with this cursor.
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
}

impl ListingArgs {
    /// The instance that is asked.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text)
        .map_err(|error| format!("{error}; a filter stands before --watch, which takes a time"))?;
    (interval >= SHORTEST)
        .then_some(interval)
        .ok_or_else(|| format!("`{text}` is shorter than 100ms, the shortest interval"))
}
