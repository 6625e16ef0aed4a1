//! What a person has chosen to see, and the loads of the last minute.

use std::collections::VecDeque;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::interval::{Interval, LaneInterval};

/// Loads kept of each lane.
const KEPT: usize = 60;
/// Characters of a filter at most.
const LONGEST: usize = 30;

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
    /// A part of the names that are shown; all are while it is empty.
    pub(super) filter: String,
    /// Keys go into the filter.
    pub(super) is_typing: bool,
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
            KeyCode::F(10) => return Action::Quit,
            _ if self.is_typing => self.edit(key.code),
            KeyCode::F(4) | KeyCode::Char('\\' | '/') => self.is_typing = true,
            KeyCode::Char('q') => return Action::Quit,
            // The last that was opened is closed first.
            KeyCode::Esc if self.has_help => self.has_help = false,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return Action::Quit,
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

    /// A key goes into the filter.
    fn edit(&mut self, key: KeyCode) {
        match key {
            KeyCode::Esc => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Enter | KeyCode::F(4) => self.is_typing = false,
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if self.filter.chars().count() < LONGEST => self.filter.push(c),
            _ => {}
        }
    }

    /// The lanes, reasons, devices, counters and classes whose names have the filter in them, whatever its case.
    pub(super) fn filtered(&self, interval: &Interval) -> Interval {
        let mut shown = interval.clone();
        let wanted = self.filter.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&wanted);
        shown.lanes.retain(|lane| {
            let parts =
                [Some(format!("lane {}", lane.number)), lane.role.clone(), lane.mode.clone()];
            parts.iter().flatten().any(|part| has(part))
        });
        shown.reasons.retain(|(reason, _)| has(reason));
        shown.devices.retain(|device| has(&device.name));
        shown.counters.retain(|(name, _)| has(name));
        shown.classes.retain(|class| has(&class.name));
        shown
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
