//! Families of devices and their links.

use rheostat_base::DropReason;
use rheostat_io::DeviceCounters;

use super::Snapshot;
use super::family::{Family, Kind, Samples};
use crate::link_board::LinkWord;

const LINK: &[&str] = &["device", "interface"];

pub(super) const FAMILIES: &[Family] = &[
    count(
        "rheo_device_packets",
        "Packets that arrived, those dropped at once included",
        |run, to| {
            each(run, to, |device| device.arrived);
        },
    ),
    count("rheo_device_bytes", "Bytes of packets that arrived", |run, to| {
        each(run, to, |device| device.arrived_bytes);
    }),
    count("rheo_device_sent_packets", "Packets sent", |run, to| {
        each(run, to, |device| device.sent);
    }),
    count("rheo_device_sent_bytes", "Bytes of packets sent", |run, to| {
        each(run, to, |device| device.sent_bytes);
    }),
    count("rheo_device_copied_packets", "Packets that had to be copied to be sent", |run, to| {
        each(run, to, |device| device.copied);
    }),
    count("rheo_device_send_calls", "System calls that were to send packets", |run, to| {
        each(run, to, |device| device.send_calls);
    }),
    Family::new(
        "rheo_device_dropped_packets",
        Kind::Count,
        &["device", "reason"],
        "Packets that arrived and that no lane got, by reason",
        |run, to| {
            for (name, device) in run.devices.iter().zip(&run.sample.devices) {
                for (reason, dropped) in [
                    (DropReason::QueueFull, device.queue_full.iter().sum()),
                    (DropReason::NoBuffer, device.no_buffer),
                    (DropReason::FillEmpty, device.fill_empty),
                    (DropReason::Oversize, device.oversize),
                    (DropReason::Malformed, device.malformed),
                ] {
                    to.count([name, &reason.name()], dropped);
                }
            }
        },
    ),
    Family::new(
        "rheo_link_up",
        Kind::Gauge,
        LINK,
        "1 while packets pass the link of a live device, 0 otherwise",
        |run, to| {
            for link in &run.status.summary.links {
                let is_up = u64::from(link.state == LinkWord::Up);
                to.count([&link.device, &link.interface], is_up);
            }
        },
    ),
    Family::new(
        "rheo_link_vanished",
        Kind::Count,
        LINK,
        "Times that the interface vanished",
        |run, to| {
            for link in &run.status.summary.links {
                to.count([&link.device, &link.interface], link.vanished);
            }
        },
    ),
    Family::new("rheo_link_down", Kind::Count, LINK, "Times that the link went down", |run, to| {
        for link in &run.status.summary.links {
            to.count([&link.device, &link.interface], link.down);
        }
    }),
];

const fn count(name: &'static str, help: &'static str, of: fn(&Snapshot, &mut Samples)) -> Family {
    Family::new(name, Kind::Count, &["device"], help, of)
}

fn each(run: &Snapshot, to: &mut Samples, figure: fn(&DeviceCounters) -> u64) {
    for (name, device) in run.devices.iter().zip(&run.sample.devices) {
        to.count([name], figure(device));
    }
}
