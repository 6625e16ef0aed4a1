//! Colours of series that all readers can distinguish, on light and on dark ground.
//!
//! What people with one kind of receptor missing see is computed with the matrices of Machado, Oliveira and
//! Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), at full severity, in linear
//! light; how far colours are apart with CIE 1976 ΔE*ab; contrast as WCAG 2 defines it.

use super::SERIES;

type Rgb = [f64; 3];

const STYLE: &str = include_str!("page.css");

const EYES: [(&str, [Rgb; 3]); 4] = [
    ("all receptors", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "no red receptors",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "no green receptors",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "no blue receptors",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// The colour that a part of the style sheet gives a variable, in linear light.
fn colour(style: &str, name: &str) -> Rgb {
    let (_, rest) = style.split_once(&format!("--{name}: #")).expect("the variable is set");
    [0, 2, 4].map(|at| {
        let value = f64::from(u8::from_str_radix(&rest[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn seen(colour: Rgb, eyes: &[Rgb; 3]) -> Rgb {
    eyes.map(|row| row.iter().zip(colour).map(|(a, b)| a * b).sum::<f64>().clamp(0.0, 1.0))
}

fn lab([r, g, b]: Rgb) -> Rgb {
    let white = [0.95047, 1.0, 1.08883];
    let xyz = [
        0.4124 * r + 0.3576 * g + 0.1805 * b,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        0.0193 * r + 0.1192 * g + 0.9505 * b,
    ];
    let f = |at: usize| {
        let t: f64 = xyz[at] / white[at];
        if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 }
    };
    [116.0 * f(1) - 16.0, 500.0 * (f(0) - f(1)), 200.0 * (f(1) - f(2))]
}

fn apart(a: Rgb, b: Rgb, eyes: &[Rgb; 3]) -> f64 {
    let (a, b) = (lab(seen(a, eyes)), lab(seen(b, eyes)));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn luminance([r, g, b]: Rgb) -> f64 {
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

#[test]
fn every_series_and_every_policy_has_a_style() {
    for series in 0..SERIES {
        let style =
            format!(".s{series} {{ --c: var(--c{series}); --hatched: url(#hatch{series}); }}");
        assert!(STYLE.contains(&style), "{style}");
    }
}

#[test]
fn series_are_told_apart_and_from_the_ground() {
    let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").expect("there are both");
    for (scheme, style) in [("light", light), ("dark", dark)] {
        let ground = luminance(colour(style, "paper"));
        let colours: Vec<Rgb> = (0..SERIES).map(|at| colour(style, &format!("c{at}"))).collect();
        for (at, &one) in colours.iter().enumerate() {
            let (low, high) = (ground.min(luminance(one)), ground.max(luminance(one)));
            let contrast = (high + 0.05) / (low + 0.05);
            assert!(contrast >= 3.0, "{scheme}: series {at} has a contrast of {contrast}");
            for (other_at, &other) in colours.iter().enumerate().take(at) {
                // The first four are the policies, which nearly every chart has.
                let least = if at < 4 { 28.0 } else { 13.0 };
                for (reader, eyes) in &EYES {
                    let apart = apart(one, other, eyes);
                    assert!(apart >= least, "{scheme}: {at} and {other_at} with {reader}: {apart}");
                }
            }
        }
    }
}
