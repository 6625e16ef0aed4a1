//! The axes around a chart, with their ticks and labels.

use super::Axis;
use super::scale::Scale;
use super::svg::{Anchor, Svg, width};

/// The size of charts in pixels. On a phone they are as wide as the page, so that texts keep about their size.
pub(super) const WIDTH: f64 = 440.0;
pub(super) const HEIGHT: f64 = 290.0;

/// Below the label of the y axis.
const TOP: f64 = 32.0;
/// Above tick labels and the label of the x axis.
const BOTTOM: f64 = HEIGHT - 46.0;
/// How far tick labels of the x axis stay apart.
const APART: f64 = 8.0;

/// Two scales and the axes they are for.
#[derive(Debug)]
pub(super) struct PlotFrame<'a> {
    pub(super) x: Scale,
    pub(super) y: Scale,
    x_axis: &'a Axis,
    y_axis: &'a Axis,
    left: f64,
    right: f64,
}

impl<'a> PlotFrame<'a> {
    /// Axes over these values; `margin` pixels are left free on the right.
    pub(super) fn over(
        (x_axis, y_axis): (&'a Axis, &'a Axis),
        xs: impl Iterator<Item = f64> + Clone,
        ys: impl Iterator<Item = f64>,
        margin: f64,
        are_few: bool,
    ) -> PlotFrame<'a> {
        let y = Scale::over(y_axis, ys, (BOTTOM, TOP));
        let left = left_of(&y, y_axis);
        let right = WIDTH - margin.max(18.0);
        let x = if are_few {
            let widest = xs.clone().map(|x| width(&x_axis.unit.show(x))).fold(0.0, f64::max);
            Scale::at(x_axis, xs, (left, right), widest + APART)
        } else {
            Scale::over(x_axis, xs, (left, right))
        };
        PlotFrame { x, y, x_axis, y_axis, left, right }
    }

    /// A y axis alone; what stands along x is the caller's.
    pub(super) fn upright(
        y_axis: &'a Axis,
        none: &'a Axis,
        ys: impl Iterator<Item = f64>,
    ) -> PlotFrame<'a> {
        PlotFrame::over((none, y_axis), std::iter::empty(), ys, 0.0, false)
    }

    pub(super) fn left(&self) -> f64 {
        self.left
    }

    pub(super) fn right(&self) -> f64 {
        self.right
    }

    /// Where the plot ends below, whatever lies there.
    pub(super) fn bottom(&self) -> f64 {
        BOTTOM
    }

    pub(super) fn top(&self) -> f64 {
        TOP
    }

    /// Lines and labels of the y axis.
    pub(super) fn draw_y(&self, svg: &mut Svg) {
        svg.text("label", (0.0, 13.0), Anchor::Start, &self.y_axis.label);
        for &tick in &self.y.ticks {
            self.across(svg, self.y.place(tick), &self.y_axis.unit.show(tick));
        }
        if let Some(zero) = self.y.zero() {
            self.across(svg, zero, "0");
            // Two strokes where the axis is broken.
            let middle = (zero + self.y.ends().0) / 2.0;
            for up in [0.0, 4.0] {
                let y = middle + up;
                svg.line("axis", (self.left - 4.0, y), (self.left + 4.0, y - 4.0));
            }
        }
    }

    fn across(&self, svg: &mut Svg, y: f64, text: &str) {
        svg.line("grid", (self.left, y), (self.right, y));
        svg.text("tick", (self.left - 6.0, y + 4.0), Anchor::End, text);
    }

    /// The x axis with its ticks.
    pub(super) fn draw_x(&self, svg: &mut Svg) {
        self.base(svg, &self.x_axis.label);
        let mut free = f64::NEG_INFINITY;
        for &tick in &self.x.ticks {
            let (x, text) = (self.x.place(tick), self.x_axis.unit.show(tick));
            svg.line("axis", (x, BOTTOM), (x, BOTTOM + 4.0));
            let half = width(&text) / 2.0;
            if x - half >= free {
                svg.text("tick", (x, BOTTOM + 18.0), Anchor::Middle, &text);
                free = x + half + APART;
            }
        }
    }

    /// The line below the chart, and what stands under it.
    pub(super) fn base(&self, svg: &mut Svg, label: &str) {
        svg.line("axis", (self.left, BOTTOM), (self.right, BOTTOM));
        let middle = (self.left + self.right) / 2.0;
        svg.text("label", (middle, HEIGHT - 6.0), Anchor::Middle, label);
    }
}

/// Room for the widest tick label.
fn left_of(y: &Scale, axis: &Axis) -> f64 {
    y.ticks.iter().map(|tick| width(&axis.unit.show(*tick))).fold(20.0, f64::max) + 10.0
}
