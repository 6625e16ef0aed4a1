use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rheostat_base::DropReason;
use rheostat_observe::Summary;
use rheostat_observe::control::DeviceState;
use rheostat_run::{LaneSample, Sample};

use super::*;

/// An instance with so many lanes, each of which has been busy and has received packets in the order of their numbers.
fn status_of(lanes: u64, seconds: f64) -> Status {
    let lane = |number: u64| {
        let mut lane = LaneSample {
            received: (number + 1) * 1_000 * seconds as u64,
            sent: 10 * seconds as u64,
            total_ns: (seconds * 1e9) as u64,
            busy_ns: (seconds * 1e9 * (number + 1) as f64 / lanes as f64) as u64,
            ..LaneSample::default()
        };
        lane.dropped[DropReason::Denied as usize] = 5 * seconds as u64;
        lane
    };
    let sample = Sample { seconds, lanes: (0..lanes).map(lane).collect(), ..Sample::default() };
    let arrived = 2_500_000 * seconds as u64;
    Status {
        summary: Summary::so_far(&sample),
        devices: vec![DeviceState { device: "lan".into(), arrived, lost: 0, sent: arrived }],
        tcp: BTreeMap::from([("tcpInSegs".into(), 7 * seconds as u64), ("tcpCurrEstab".into(), 3)]),
        service: BTreeMap::new(),
        application: BTreeMap::new(),
        connections: None,
        missing_shards: 0,
        tcp_by: None,
        backends: Vec::new(),
        config: None,
    }
}

fn interval(lanes: u64) -> Interval {
    Interval::between(&status_of(lanes, 10.0), &status_of(lanes, 12.0))
}

#[test]
fn rates_are_those_of_the_interval() {
    let interval = interval(2);
    assert!((interval.lanes[1].packets - 2_000.0).abs() < 1e-6, "{interval:?}");
    assert!(
        (interval.lanes[0].load - 0.5).abs() < 1e-6 && (interval.lanes[1].load - 1.0).abs() < 1e-6
    );
    assert!((interval.imbalance.unwrap() - 4.0 / 3.0).abs() < 1e-6, "{interval:?}");
    assert_eq!(interval.reasons, [("denied".to_owned(), 10.0)]);
    assert_eq!(interval.counters, [("tcpInSegs".to_owned(), 7.0)]);
    assert_eq!(interval.connections, Some(3));
    let standing = Interval::between(&status_of(2, 10.0), &status_of(2, 10.0));
    assert_eq!((standing.received, standing.imbalance), (0.0, None));
}

#[test]
fn a_printed_screen_shows_lanes_drops_and_devices_without_keys() {
    let text = print(&View::default(), &interval(2)).unwrap();
    for part in
        ["up 00:00:12", "lane", "100 %", "2.00 k", "10  denied", "lan", "2.50 M", "tcpInSegs"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(
        !text.contains("F10") && text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn keys_sort_scroll_stop_and_quit() {
    let mut view = View::default();
    let press = |view: &mut View, code| view.press(KeyEvent::new(code, KeyModifiers::NONE));
    let lanes = interval(8);
    let numbers = |view: &mut View| -> Vec<usize> {
        view.shown(&lanes, 3).into_iter().map(|lane| lane.number).collect()
    };
    assert_eq!(numbers(&mut view), [0, 1, 2]);
    press(&mut view, KeyCode::PageDown);
    assert_eq!(numbers(&mut view), [3, 4, 5]);
    press(&mut view, KeyCode::End);
    assert_eq!(numbers(&mut view), [5, 6, 7]);
    press(&mut view, KeyCode::Up);
    assert_eq!(numbers(&mut view), [4, 5, 6]);
    press(&mut view, KeyCode::Home);
    press(&mut view, KeyCode::F(6));
    assert_eq!(numbers(&mut view), [7, 6, 5]);
    press(&mut view, KeyCode::Char(' '));
    assert!(view.is_stopped);
    press(&mut view, KeyCode::F(1));
    assert!(view.has_help);
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
    for code in [KeyCode::Char('q'), KeyCode::F(10), KeyCode::Esc] {
        assert_eq!(press(&mut view, code), Action::Quit);
    }
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt), Action::Quit);
}

#[test]
fn a_filter_shows_names_with_its_text_alone() {
    let mut view = View::default();
    let press = |view: &mut View, code| view.press(KeyEvent::new(code, KeyModifiers::NONE));
    press(&mut view, KeyCode::F(4));
    // Letters that are keys elsewhere are text here.
    for letter in "Lane q".chars() {
        assert_eq!(press(&mut view, KeyCode::Char(letter)), Action::None);
    }
    press(&mut view, KeyCode::Backspace);
    press(&mut view, KeyCode::Char('1'));
    press(&mut view, KeyCode::Enter);
    let shown = view.filtered(&interval(4));
    assert_eq!(shown.lanes.iter().map(|lane| lane.number).collect::<Vec<_>>(), [1]);
    assert!(shown.reasons.is_empty() && shown.devices.is_empty() && shown.counters.is_empty());
    assert_eq!(press(&mut view, KeyCode::Esc), Action::None);
    assert_eq!(view.filtered(&interval(4)), interval(4));
    press(&mut view, KeyCode::Char('/'));
    "seg".chars().for_each(|letter| {
        press(&mut view, KeyCode::Char(letter));
    });
    assert_eq!(view.filtered(&interval(4)).counters.len(), 1);
    (0..100).for_each(|_| {
        press(&mut view, KeyCode::Char('x'));
    });
    assert_eq!(view.filter.len(), 30);
    assert_eq!(press(&mut view, KeyCode::F(10)), Action::Quit);
}

#[test]
fn the_lanes_are_shown_where_little_else_fits() {
    let screen = |width, height| {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
        let mut view = View::default();
        let Ok(_) = terminal.draw(|frame| screen::draw(frame, &mut view, &interval(3)));
        terminal.backend().to_string()
    };
    let small = screen(40, 8);
    assert!(small.contains("lane") && small.contains('█') && !small.contains("drops"), "{small}");
    let narrow = screen(50, 24);
    for part in ["lanes", "denied", "arrived/s", "2.50 M"] {
        assert!(narrow.contains(part), "{part}: {narrow}");
    }
}

#[test]
fn a_small_terminal_shows_what_fits() {
    for (width, height) in [(1, 1), (20, 5), (39, 8), (200, 100)] {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
        let mut view = View { has_help: true, ..View::default() };
        (0..100).for_each(|_| view.note(&interval(3)));
        let Ok(_) = terminal.draw(|frame| screen::draw(frame, &mut view, &interval(3)));
    }
}

#[test]
fn rates_have_three_digits_and_a_unit() {
    for (figure, text) in [
        (0.0, "0"),
        (7.0, "7"),
        (0.25, "0.25"),
        (12.34, "12.3"),
        (999.0, "999"),
        (1_234.0, "1.23 k"),
        (45_600.0, "45.6 k"),
        (2_500_000.0, "2.50 M"),
        (1e10, "10.0 G"),
    ] {
        assert_eq!(screen::rate(figure), text);
    }
}
