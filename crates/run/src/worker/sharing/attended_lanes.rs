//! The lanes to which a worker comes back after its short timeout.

use rheostat_base::sync::attendance::Attendance;

pub(super) struct AttendedLanes<'a> {
    attendance: &'a Attendance,
    lanes: Vec<usize>,
}

impl<'a> AttendedLanes<'a> {
    pub(super) fn new(attendance: &'a Attendance) -> AttendedLanes<'a> {
        AttendedLanes { attendance, lanes: Vec::new() }
    }

    /// Attends a lane from now on.
    pub(super) fn attend(&mut self, lane: usize) {
        if !self.lanes.contains(&lane) {
            self.attendance.attend(lane);
            self.lanes.push(lane);
        }
    }

    /// Attends no other lane from now on.
    pub(super) fn leave_all_but(&mut self, kept: Option<usize>) {
        for lane in self.lanes.extract_if(.., |lane| Some(*lane) != kept) {
            self.attendance.leave(lane);
        }
    }
}
