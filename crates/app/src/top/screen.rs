//! The screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table};

use super::interval::Interval;
use super::view::View;

/// A load from which on a lane is nearly full, and one from which on it should be watched.
const FULL: f64 = 0.9;
const BUSY: f64 = 0.7;
/// Characters of a bar.
const BAR: usize = 20;
/// Loads shown beside a bar.
const PAST: usize = 30;

/// From this width on, drops and devices have room side by side.
const SIDE_BY_SIDE: u16 = 76;
/// From this height on, there is more than lanes: where they stand side by side, and where one is above the other.
const TALL: u16 = 12;
const TALL_AND_NARROW: u16 = 18;

/// Draws what an interval brought.
pub(super) fn draw(frame: &mut Frame, view: &mut View, interval: &Interval) {
    let interval = &view.filtered(interval);
    let area = frame.area();
    let is_wide = area.width >= SIDE_BY_SIDE;
    let is_tall = area.height >= if is_wide { TALL } else { TALL_AND_NARROW };
    let reasons = interval.reasons.len().clamp(1, 8) as u16 + 2;
    let devices = interval.devices.len().clamp(1, 8) as u16 + 3;
    let below = match (is_tall, is_wide) {
        (true, true) => reasons.max(devices),
        (true, false) => reasons + devices,
        (false, _) => 0,
    };
    let further = further(interval);
    let further_lines = (further.len() as u16).min(8) + u16::from(!further.is_empty()) * 2;
    let keys = u16::from(!view.is_printed);
    let parts = Layout::vertical([
        Constraint::Length(2),
        Constraint::Max(interval.lanes.len() as u16 + 3),
        Constraint::Max(below),
        Constraint::Max(if is_tall { further_lines } else { 0 }),
        Constraint::Fill(1),
        Constraint::Length(keys),
    ]);
    let [head, lanes, middle, foot, _, keys] = parts.areas(area);
    frame.render_widget(Paragraph::new(headlines(view, interval)), head);
    draw_lanes(frame, view, interval, lanes);
    let halves = match is_wide {
        true => Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]),
        false => Layout::vertical([Constraint::Max(reasons), Constraint::Max(devices)]),
    };
    let [drops, devices] = halves.areas(middle);
    draw_drops(frame, interval, drops);
    draw_devices(frame, interval, devices);
    if !further.is_empty() {
        frame.render_widget(
            Paragraph::new(further).block(Block::bordered().title("counters")),
            foot,
        );
    }
    if keys.height > 0 {
        let text = match view.is_typing {
            true => format!("filter: {}_  Enter keep  Esc clear", view.filter),
            false => "F1 help  F4 filter  F6 sort  space stop  F10 quit".to_owned(),
        };
        frame.render_widget(Line::from(text).style(Modifier::REVERSED), keys);
    }
    if view.has_help {
        draw_help(frame);
    }
}

fn headlines<'l>(view: &View, interval: &Interval) -> Vec<Line<'l>> {
    let Interval { uptime, received, sent, dropped, flows, handed_off, moved, reordered, .. } =
        interval;
    let mut first = vec![
        Span::from("rheo ").bold(),
        Span::from(format!(
            "up {}  {} received  {} sent  ",
            time(*uptime),
            rate(*received),
            rate(*sent)
        )),
        Span::styled(format!("{} dropped", rate(*dropped)), shade(*dropped > 0.0, Color::Red)),
    ];
    if view.is_stopped {
        first.push(Span::from("  stopped").bold());
    }
    if !view.filter.is_empty() && !view.is_typing {
        first.push(Span::from(format!("  filter {}", view.filter)).bold());
    }
    let connections = interval.connections.map(|count| format!("{count} connections  "));
    let imbalance = interval.imbalance.map(|times| format!("imbalance {times:.2}  "));
    let second = format!(
        "{}{}{flows} flows  {} handed off  {moved} shards moved  {reordered} reordered",
        connections.unwrap_or_default(),
        imbalance.unwrap_or_default(),
        rate(*handed_off),
    );
    vec![Line::from(first), Line::from(second)]
}

fn draw_lanes(frame: &mut Frame, view: &mut View, interval: &Interval, area: Rect) {
    let room = usize::from(area.height.saturating_sub(3));
    let shown = view.shown(interval, room);
    let title = match interval.lanes.len() {
        all if all > shown.len() => {
            format!("lanes {} to {} of {all}", view.above + 1, view.above + shown.len())
        }
        _ => "lanes".to_owned(),
    };
    let rows = shown.iter().map(|lane| {
        let past: String = view.loads(lane.number, PAST).map(height).collect();
        let what = [&lane.role, &lane.mode];
        let what: Vec<_> = what.into_iter().flatten().map(String::as_str).collect();
        let bar = Span::styled(bar(lane.load), color(lane.load));
        Row::new(vec![
            Line::from(lane.number.to_string()).right_aligned(),
            Line::from(bar),
            Line::from(format!("{:.0} %", lane.load * 100.0)).right_aligned(),
            Line::from(rate(lane.packets)).right_aligned(),
            Line::from(what.join(", ")),
            Line::from(past),
        ])
    });
    let widths = [
        Constraint::Length(4),
        Constraint::Length(BAR as u16),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Length(20),
        Constraint::Fill(1),
    ];
    let heading = ["lane", "load", "", "packets/s", "", "load before"].map(Line::from);
    let [lane, load, percent, packets, mode, before] = heading;
    let heading = Row::new([lane, load, percent, packets.right_aligned(), mode, before]);
    let heading = heading.style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(rows, widths).header(heading).block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn draw_drops(frame: &mut Frame, interval: &Interval, area: Rect) {
    let lines = interval
        .reasons
        .iter()
        .map(|(reason, per_second)| Line::from(format!("{:>9}  {reason}", rate(*per_second))));
    let lines: Vec<_> = match interval.reasons.is_empty() {
        true => vec![Line::from("none").dim()],
        false => lines.collect(),
    };
    let block = Block::bordered().title("drops per second");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_devices(frame: &mut Frame, interval: &Interval, area: Rect) {
    let rows = interval.devices.iter().map(|device| {
        let link = device.link.map(|state| format!("{state:?}").to_lowercase());
        let figures = [device.arrived, device.sent, device.lost];
        let figures = figures.map(|figure| Line::from(rate(figure)).right_aligned());
        let cells = [Line::from(device.name.clone())].into_iter().chain(figures);
        Row::new(cells.chain(link.map(Line::from)))
    });
    // A link is named only while it does not work.
    let link = match interval.devices.iter().any(|device| device.link.is_some()) {
        true => 8,
        false => 0,
    };
    let widths = [
        Constraint::Min(6),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(link),
    ];
    let figures = ["arrived/s", "sent/s", "lost/s"].map(|name| Line::from(name).right_aligned());
    let heading = [Line::from("device")].into_iter().chain(figures);
    let heading = Row::new(heading.chain([Line::from("link")]));
    let heading = heading.style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(rows, widths).header(heading);
    frame.render_widget(table.block(Block::bordered().title("devices")), area);
}

/// Classes and counters, as far as there are any.
fn further<'l>(interval: &Interval) -> Vec<Line<'l>> {
    let classes = interval.classes.iter().map(|class| {
        let latency = class.latency.map(|(p50, p99)| format!("  p50 {p50:.1} us  p99 {p99:.1} us"));
        format!("{:>9}  {}{}", rate(class.packets), class.name, latency.unwrap_or_default())
    });
    let counters =
        interval.counters.iter().map(|(name, count)| format!("{:>9}  {name}", rate(*count)));
    classes.chain(counters).map(Line::from).collect()
}

fn draw_help(frame: &mut Frame) {
    const KEYS: [&str; 8] = [
        "F1  h     this help",
        "F4  \\ /   show names with a text alone;",
        "          Esc clears it",
        "F6  s     lanes by number or by load",
        "space     stop, and go on",
        "arrows, page keys, Home, End",
        "          scroll the lanes",
        "F10 q     quit",
    ];
    let area = frame.area();
    let width = 40.min(area.width);
    let height = (KEYS.len() as u16 + 2).min(area.height);
    let middle = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, middle);
    let lines: Vec<_> = KEYS.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("keys")), middle);
}

/// A bar of [`BAR`] characters, which shows a load without colours, too.
fn bar(load: f64) -> String {
    let full = (load * BAR as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full.min(BAR)))
}

/// A load as the height of a block.
fn height(load: f64) -> char {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    HEIGHTS[((load * 8.0).round() as usize).min(8)]
}

fn color(load: f64) -> Style {
    let color = match load {
        _ if load >= FULL => Color::Red,
        _ if load >= BUSY => Color::Yellow,
        _ => Color::Green,
    };
    shade(true, color)
}

/// The colour, where it is wanted at all (no-color.org).
fn shade(is_wanted: bool, color: Color) -> Style {
    let has_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if is_wanted && has_colors { Style::new().fg(color) } else { Style::new() }
}

/// A rate with three digits and a unit of a thousand.
pub(super) fn rate(per_second: f64) -> String {
    let (figure, unit) = match per_second {
        _ if per_second >= 1e9 => (per_second / 1e9, " G"),
        _ if per_second >= 1e6 => (per_second / 1e6, " M"),
        _ if per_second >= 1e3 => (per_second / 1e3, " k"),
        _ => (per_second, ""),
    };
    match figure {
        _ if figure >= 100.0 || (unit.is_empty() && figure == figure.trunc()) => {
            format!("{figure:.0}{unit}")
        }
        _ if figure >= 10.0 => format!("{figure:.1}{unit}"),
        _ => format!("{figure:.2}{unit}"),
    }
}

/// Seconds as days, hours, minutes and seconds.
fn time(seconds: f64) -> String {
    let whole = seconds as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3_600 % 24, whole / 60 % 60);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{:02}", whole % 60),
        _ => format!("{days} d {hours:02}:{minutes:02}:{:02}", whole % 60),
    }
}
