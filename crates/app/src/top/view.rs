//! What a person has chosen to see, and the loads of the last minute.

use std::collections::VecDeque;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::interval::{Interval, LaneInterval};

/// Loads kept of each lane.
const KEPT: usize = 60;

/// The state of the screen.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Lanes by their load, in place of their number.
    pub(super) is_by_load: bool,
    /// No new figures are shown.
    pub(super) is_stopped: bool,
    /// Keys are explained.
    pub(super) has_help: bool,
    /// It is printed once, and has no keys.
    pub(super) is_printed: bool,
    /// Lanes above the first that is shown.
    pub(super) above: usize,
    /// Lanes that fit on the screen.
    pub(super) room: usize,
    /// The loads of each lane, the latest last.
    pub(super) loads: Vec<VecDeque<f64>>,
}

/// What a key does beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    Quit,
}

impl View {
    /// A key is pressed.
    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Action::Quit,
            KeyCode::Char('q') | KeyCode::F(10) => return Action::Quit,
            KeyCode::Esc if !self.has_help => return Action::Quit,
            KeyCode::Esc => self.has_help = false,
            KeyCode::F(1) | KeyCode::Char('h' | '?') => self.has_help = !self.has_help,
            KeyCode::F(6) | KeyCode::Char('s') => self.is_by_load = !self.is_by_load,
            KeyCode::Char(' ') => self.is_stopped = !self.is_stopped,
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.above += 1,
            KeyCode::PageUp => self.above = self.above.saturating_sub(self.room.max(1)),
            KeyCode::PageDown => self.above += self.room.max(1),
            KeyCode::Home => self.above = 0,
            KeyCode::End => self.above = usize::MAX,
            _ => {}
        }
        Action::None
    }

    /// Keeps the loads of an interval.
    pub(super) fn note(&mut self, interval: &Interval) {
        self.loads.resize_with(interval.lanes.len(), VecDeque::new);
        for (loads, lane) in self.loads.iter_mut().zip(&interval.lanes) {
            if loads.len() == KEPT {
                loads.pop_front();
            }
            loads.push_back(lane.load);
        }
    }

    /// The last loads of a lane, `columns` at most, the latest last.
    pub(super) fn loads(&self, lane: usize, columns: usize) -> impl Iterator<Item = f64> + '_ {
        let loads = self.loads.get(lane).into_iter().flatten().copied();
        let count = self.loads.get(lane).map_or(0, VecDeque::len);
        loads.skip(count.saturating_sub(columns))
    }

    /// The lanes that `room` lines show, in their order; scrolled no further than to the last.
    pub(super) fn shown<'i>(
        &mut self,
        interval: &'i Interval,
        room: usize,
    ) -> Vec<&'i LaneInterval> {
        let mut lanes: Vec<_> = interval.lanes.iter().collect();
        if self.is_by_load {
            lanes.sort_by(|one, other| other.load.total_cmp(&one.load));
        }
        self.room = room;
        self.above = self.above.min(lanes.len().saturating_sub(room));
        lanes.into_iter().skip(self.above).take(room).collect()
    }
}
