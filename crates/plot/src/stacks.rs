//! Bars of parts that add up, from left to right, in panels one below the other.

use super::frame::WIDTH;
use super::scale::Scale;
use super::series::class;
use super::svg::{Anchor, Svg, width};
use super::{Axis, Chart, Key, Table, Unit};

/// Stacked bars. Each panel has a scale of its own: what panels differ by may be orders of magnitude.
#[derive(Clone, Debug, PartialEq)]
pub struct StackChart {
    axis: Axis,
    of: [String; 2],
    parts: Vec<Part>,
    panels: Vec<StackPanel>,
    are_shares: bool,
}

/// A part that each bar may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// Its colour.
    pub series: usize,
}

/// Bars on one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct StackPanel {
    /// What they have in common.
    pub name: String,
    /// The bars.
    pub stacks: Vec<Stack>,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// What it is of.
    pub name: String,
    /// How much of each part of the chart, in their order.
    pub values: Vec<f64>,
}

impl Stack {
    /// How long the bar is.
    pub fn total(&self) -> f64 {
        self.values.iter().sum()
    }
}

const RIGHT: f64 = 14.0;
/// Names of bars take this much of the chart at most.
const NAMES: f64 = 180.0;
/// Above each panel, for its name.
const NAME: f64 = 22.0;
const BAR: f64 = 15.0;
/// From the top of a bar to that of the next.
const PITCH: f64 = 21.0;
/// Below the bars of each panel, for the ticks.
const TICKS: f64 = 26.0;
/// How far tick labels stay apart.
const APART: f64 = 10.0;
/// Below the last panel, for the label of the axis.
const LABEL: f64 = 20.0;

impl StackChart {
    /// A chart without panels; `label` states what the lengths of the bars are, `of` what panels and bars are of.
    pub fn new(
        label: impl Into<String>,
        unit: Unit,
        of: [&str; 2],
        parts: Vec<Part>,
    ) -> StackChart {
        let axis = Axis::linear(label, unit).from(0.0);
        StackChart { axis, of: of.map(str::to_owned), parts, panels: Vec::new(), are_shares: false }
    }

    /// All bars are of the same length, and show which share each part has; how much the whole is stands behind the bar.
    #[must_use]
    pub fn shares(mut self) -> StackChart {
        self.are_shares = true;
        self
    }

    /// Adds a panel, without bars whose parts are not all finite and at least 0.
    #[must_use]
    pub fn with(mut self, mut panel: StackPanel) -> StackChart {
        let is_amount = |value: &f64| value.is_finite() && *value >= 0.0;
        panel.stacks.retain(|stack| {
            stack.values.len() == self.parts.len()
                && stack.values.iter().all(is_amount)
                && stack.total().is_finite()
        });
        if !panel.stacks.is_empty() {
            self.panels.push(panel);
        }
        self
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The panels.
    pub fn panels(&self) -> &[StackPanel] {
        &self.panels
    }

    fn left(&self) -> f64 {
        let stacks = self.panels.iter().flat_map(|panel| &panel.stacks);
        stacks.map(|stack| width(&stack.name)).fold(20.0, f64::max).min(NAMES) + 8.0
    }

    /// Draws a panel, from `top` on.
    fn draw(&self, svg: &mut Svg, panel: &StackPanel, top: f64) {
        let total = |stack: &Stack| self.axis.unit.show(stack.total());
        let totals = panel.stacks.iter().map(|stack| width(&total(stack))).fold(0.0, f64::max);
        let (left, right) = (self.left(), WIDTH - RIGHT - totals - 6.0);
        let share = Axis::linear("", Unit::Share).from(0.0);
        let axis = if self.are_shares { &share } else { &self.axis };
        let longest = panel.stacks.iter().map(|stack| stack.total() / self.whole(stack));
        let scale = Scale::over(axis, longest, (left, right));
        svg.text("name", (left, top + NAME - 7.0), Anchor::Start, &panel.name);
        let first = top + NAME;
        let bottom = first + PITCH * panel.stacks.len() as f64;
        let places: Vec<f64> = scale.ticks.iter().map(|tick| scale.place(*tick)).collect();
        let texts: Vec<String> = scale.ticks.iter().map(|tick| axis.unit.show(*tick)).collect();
        let every = stride(&places, &texts);
        for (at, (x, text)) in places.into_iter().zip(&texts).enumerate() {
            svg.line("grid", (x, first - 2.0), (x, bottom));
            if at % every == 0 {
                svg.text("tick", (x, bottom + 14.0), Anchor::Middle, text);
            }
        }
        for (at, stack) in panel.stacks.iter().enumerate() {
            let y = first + PITCH * at as f64;
            svg.text("label", (left - 6.0, y + BAR - 3.0), Anchor::End, &stack.name);
            let mut sum = 0.0;
            for (part, value) in self.parts.iter().zip(&stack.values) {
                let from = scale.place(sum);
                sum += value / self.whole(stack);
                svg.open(class(part.series, false));
                svg.rect("part", (from, y), scale.place(sum) - from, BAR);
                svg.close();
            }
            let end = scale.place(sum) + 5.0;
            svg.text("tick", (end, y + BAR - 3.0), Anchor::Start, &total(stack));
        }
        svg.line("axis", (left, first - 2.0), (left, bottom));
    }

    /// What the values of a bar are divided by.
    fn whole(&self, stack: &Stack) -> f64 {
        let total = stack.total();
        if self.are_shares && total > 0.0 { total } else { 1.0 }
    }
}

/// Every how many ticks there is room for a label.
fn stride(places: &[f64], texts: &[String]) -> usize {
    let fits = |every: &usize| {
        let shown: Vec<(f64, f64)> = places
            .iter()
            .zip(texts)
            .step_by(*every)
            .map(|(place, text)| (*place, width(text) / 2.0))
            .collect();
        shown.windows(2).all(|pair| pair[0].0 + pair[0].1 + APART <= pair[1].0 - pair[1].1)
    };
    (1..places.len()).find(fits).unwrap_or(places.len().max(1))
}

fn height(panel: &StackPanel) -> f64 {
    NAME + PITCH * panel.stacks.len() as f64 + TICKS
}

impl Chart for StackChart {
    fn svg(&self, title: &str, says: &str) -> String {
        let bottom = self.panels.iter().map(height).sum::<f64>();
        let mut svg = Svg::new(WIDTH, bottom + LABEL, title, says);
        let mut top = 0.0;
        for panel in &self.panels {
            self.draw(&mut svg, panel, top);
            top += height(panel);
        }
        let middle = (self.left() + WIDTH - RIGHT) / 2.0;
        let label = match self.are_shares {
            true => format!("share of the {}", self.axis.label),
            false => self.axis.label.clone(),
        };
        svg.text("label", (middle, bottom + 10.0), Anchor::Middle, &label);
        svg.finish()
    }

    fn keys(&self) -> Vec<Key> {
        let key = |part: &Part| {
            let mut sample = Svg::sample();
            sample.open(class(part.series, false));
            sample.rect("part", (3.0, 1.0), 22.0, 10.0);
            sample.close();
            Key { sample: sample.finish(), text: part.name.clone() }
        };
        self.parts.iter().map(key).collect()
    }

    fn table(&self) -> Table {
        let parts = self.parts.iter().map(|part| part.name.clone());
        let head = self.of.iter().cloned().chain(parts);
        let head = head.chain(["sum".to_owned()]).collect();
        let show = |value: &f64| self.axis.unit.show(*value);
        let mut rows = Vec::new();
        for panel in &self.panels {
            for stack in &panel.stacks {
                let names = [panel.name.clone(), stack.name.clone()];
                let values = stack.values.iter().map(show).chain([show(&stack.total())]);
                rows.push(names.into_iter().chain(values).collect());
            }
        }
        Table { head, rows }
    }
}
