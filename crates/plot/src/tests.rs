//! Charts of whatever comes: they are well-formed, and every place in them is a number.

use super::*;

fn checked(chart: &dyn Chart) -> String {
    let svg = chart.svg("a < b & \"c\"", "it's");
    let document =
        roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{attribute:?} in {svg}");
            if let ("x" | "y" | "x1" | "y1" | "x2" | "y2", Ok(place)) =
                (attribute.name(), value.parse::<f64>())
            {
                assert!((-20.0..=520.0).contains(&place), "{attribute:?} is outside of {svg}");
            }
        }
    }
    let title = document.descendants().find(|node| node.tag_name().name() == "title");
    assert_eq!(title.and_then(|node| node.text()), Some("a < b & \"c\""));
    for key in chart.keys().iter().filter(|key| !key.sample.is_empty()) {
        roxmltree::Document::parse(&key.sample).unwrap_or_else(|error| panic!("{error}"));
    }
    let table = chart.table();
    assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{table:?}");
    roxmltree::Document::parse(&table.html()).unwrap_or_else(|error| panic!("{error}"));
    svg
}

fn axes() -> Vec<Axis> {
    vec![
        Axis::linear("a", Unit::Plain),
        Axis::linear("a", Unit::Share).from(0.0),
        Axis::log("a", Unit::Microseconds),
        Axis::nines("a"),
    ]
}

#[test]
fn lines_of_nothing_of_a_point_and_of_the_same_everywhere_are_drawn() {
    let all: [&[(f64, f64)]; 7] = [
        &[],
        &[(0.0, 0.0)],
        &[(3.0, 7.0)],
        &[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)],
        &[(1.0, f64::NAN), (f64::INFINITY, 2.0)],
        &[(0.5, -3.0), (0.9, 0.0), (0.99, 1e300)],
        &[(1e-300, 1e-300), (1.0, 1e-12)],
    ];
    for points in all {
        for x in axes() {
            for y in axes() {
                for floor in [None, Some(0.0), Some(2.0)] {
                    let floor =
                        floor.map(|us| Floor { text: "floor".into(), points: vec![(0.0, us)] });
                    let spanned =
                        points.iter().map(|&(x, y)| Point { x, y, span: Some((y / 2.0, y)) });
                    let chart = LineChart::new(x.clone(), y.clone())
                        .with(Line::new("<straight>", points.iter().copied()))
                        .with(Line::new("spanned", spanned))
                        .with(Line::new("step", points.iter().copied()).step().simulated(true))
                        .floor(floor);
                    checked(&chart);
                    checked(&chart.with(Line::new("area", points.iter().copied()).area()));
                }
            }
        }
    }
}

#[test]
fn boxes_bars_and_maps_of_odd_values_are_drawn() {
    for value in [0.0, 3.0, 1e300, f64::NAN, f64::INFINITY] {
        let groups = || vec!["a<b".to_owned(), "c".to_owned()];
        for y in [Axis::log("y", Unit::Microseconds), Axis::linear("y", Unit::Plain)] {
            let of = |group| Percentiles {
                group,
                name: "x&y".into(),
                series: 3,
                simulated: true,
                at: [value; 6],
            };
            checked(&BoxChart::new("x", groups(), y).with(of(0)).with(of(1)).with(of(2)));
        }
        let bars = BarChart::histogram(
            "bytes",
            Axis::linear("packets", Unit::Count),
            [("64".to_owned(), value), ("65 to 127".to_owned(), 1.0)],
        );
        checked(&bars);
        for rows in [vec![], vec![vec![]], vec![vec![value as f32; 3]], vec![vec![0.5; 500]; 256]] {
            for (interval, begin) in [(0.1, 0.5), (0.0, 0.0)] {
                checked(
                    &HeatMap::new(interval, begin)
                        .with(Panel { name: "<p>".into(), rows: rows.clone() }),
                );
            }
        }
    }
    checked(&BoxChart::new("x", Vec::new(), Axis::log("y", Unit::Plain)));
    checked(&BarChart::new("x", Vec::new(), Axis::linear("y", Unit::Plain)));
    checked(&HeatMap::new(0.1, 0.0));
}

#[test]
fn stacks_of_odd_values_are_drawn() {
    let part = |series| Part { name: format!("<{series}>"), series };
    let of = |values: Vec<f64>| Stack { name: "a-long-name&".repeat(4), values };
    for value in [0.0, 1e-3, 3.0, 1e300, f64::NAN, f64::INFINITY, -1.0] {
        let chart = StackChart::new("time", Unit::Microseconds, ["a", "b"], vec![part(0), part(7)])
            .with(StackPanel {
                name: "p<".into(),
                stacks: vec![of(vec![value, 0.0]), of(vec![1.0; 2])],
            })
            .with(StackPanel { name: "other".into(), stacks: vec![of(vec![1.0])] });
        let svg = checked(&chart);
        checked(&chart.clone().shares());
        let is_drawn = value.is_finite() && value >= 0.0;
        assert_eq!(svg.matches("class=\"part\"").count(), if is_drawn { 4 } else { 2 });
        assert_eq!(chart.panels().len(), 1, "a bar without all parts is none");
    }
    checked(&StackChart::new("time", Unit::Plain, ["a", "b"], Vec::new()));
}

#[test]
fn bars_of_shares_are_equally_long_and_say_how_much_the_whole_is() {
    let part = |series| Part { name: format!("part {series}"), series };
    let of = |values: [f64; 2]| Stack { name: "bar".into(), values: values.to_vec() };
    let chart =
        StackChart::new("time", Unit::Microseconds, ["a", "b"], vec![part(0), part(1)]).with(
            StackPanel { name: "panel".into(), stacks: vec![of([1.0, 3.0]), of([500.0, 1_500.0])] },
        );
    let widths = |chart: &StackChart| -> Vec<String> {
        let svg = checked(chart);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let parts = document.descendants().filter(|node| node.attribute("class") == Some("part"));
        parts.map(|node| node.attribute("width").unwrap().to_owned()).collect()
    };
    let all = widths(&chart);
    assert_ne!(all[0], all[2]);
    let shares = chart.shares();
    let all = widths(&shares);
    assert_eq!((&all[0], &all[1]), (&all[2], &all[3]));
    let svg = shares.svg("", "");
    assert!(svg.contains(">4\u{a0}µs<") && svg.contains(">2\u{a0}ms<"), "{svg}");
    assert!(svg.contains(">100\u{a0}%<"), "{svg}");
}

#[test]
fn parts_of_a_stack_lie_end_to_end() {
    let part = |series| Part { name: format!("part {series}"), series };
    let stack = Stack { name: "bar".into(), values: vec![2.0, 3.0, 5.0] };
    let chart = StackChart::new("time", Unit::Plain, ["a", "b"], [0, 1, 2].map(part).to_vec())
        .with(StackPanel { name: "panel".into(), stacks: vec![stack] });
    let svg = checked(&chart);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let number = |node: roxmltree::Node<'_, '_>, name| -> f64 {
        node.attribute(name).unwrap().parse().unwrap()
    };
    let rects: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("part"))
        .map(|node| (number(node, "x"), number(node, "width")))
        .collect();
    let [(x0, w0), (x1, w1), (x2, w2)] = rects[..] else { panic!("{rects:?}") };
    assert!((x0 + w0 - x1).abs() < 0.11 && (x1 + w1 - x2).abs() < 0.11, "{rects:?}");
    let all = w0 + w1 + w2;
    let shares = [w0, w1, w2].map(|width| width / all);
    for (share, of) in shares.into_iter().zip([0.2, 0.3, 0.5]) {
        assert!((share - of).abs() < 0.01, "{shares:?}");
    }
    assert_eq!(chart.table().rows, [["panel", "bar", "2", "3", "5", "10"].map(str::to_owned)]);
}

#[test]
fn zeros_are_drawn_apart_on_a_logarithmic_axis_and_not_left_out() {
    let chart = LineChart::new(Axis::linear("load", Unit::Plain), Axis::log("drops", Unit::Share))
        .with(Line::new("rss", [(0.8, 0.0), (0.9, 1e-4), (0.94, 1e-2)]));
    let svg = checked(&chart);
    assert_eq!(svg.matches("class=\"mark\"").count(), 3);
    assert!(svg.contains(">0</text>"));
}

#[test]
fn a_big_map_is_merged_into_what_can_be_seen() {
    let rows: Vec<Vec<f32>> = (0..256)
        .map(|lane| (0..2_000).map(|at| ((lane * at) % 100) as f32 / 100.0).collect())
        .collect();
    let map = HeatMap::new(0.1, 0.0).with(Panel { name: "p".into(), rows });
    assert!(checked(&map).len() < 300_000);
    assert!(
        map.keys().iter().any(|key| key.text.contains("mean of up to 8 lanes")),
        "{:?}",
        map.keys()
    );
}

#[test]
fn escaped_text_is_read_as_it_was() {
    let text = "<a href=\"x\"> & 'b' \u{0}";
    let xml = format!("<p title=\"{0}\">{0}</p>", escape(text));
    let document = roxmltree::Document::parse(&xml).unwrap();
    assert_eq!(document.root_element().text(), Some("<a href=\"x\"> & 'b' \u{fffd}"));
    assert_eq!(document.root_element().attribute("title"), document.root_element().text());
}

#[test]
fn leaders_of_names_end_at_the_last_points_of_their_lines() {
    let axis = || Axis::linear("a", Unit::Plain);
    let chart = LineChart::new(axis(), axis())
        .with(Line::new("short", [(0.0, 1.0), (1.0, 2.0)]))
        .with(Line::new("long", [(0.0, 3.0), (4.0, 4.0)]));
    let svg = checked(&chart);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let paths = |class: &str| -> Vec<&str> {
        let of_class = document.descendants().filter(|node| node.attribute("class") == Some(class));
        of_class.filter_map(|node| node.attribute("d")).collect()
    };
    let mut lasts: Vec<_> =
        paths("line").iter().filter_map(|path| path.rsplit('L').next()).collect();
    let leaders = paths("leader").into_iter();
    let mut firsts: Vec<_> =
        leaders.filter_map(|path| path.strip_prefix('M')?.split('L').next()).collect();
    lasts.sort_unstable();
    firsts.sort_unstable();
    assert_eq!((firsts.len(), &firsts), (2, &lasts), "{svg}");
}
