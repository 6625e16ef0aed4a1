//! NAPI instances: what polls a hardware queue in the kernel, and when it does so without an interrupt
//! (Documentation/networking/napi.rst; settings of single instances since Linux 6.13).

use std::io;
use std::time::Duration;

use crate::netlink::{ACKNOWLEDGE, DUMP, find};

use super::Netdev;

const NETDEV_CMD_QUEUE_GET: u8 = 10;
const NETDEV_A_QUEUE_ID: u16 = 1;
const NETDEV_A_QUEUE_IFINDEX: u16 = 2;
const NETDEV_A_QUEUE_TYPE: u16 = 3;
const NETDEV_A_QUEUE_NAPI_ID: u16 = 4;
/// `NETDEV_QUEUE_TYPE_RX`.
const RECEIVE: u64 = 0;

const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_CMD_NAPI_SET: u8 = 14;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_DEFER_HARD_IRQS: u16 = 5;
const NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT: u16 = 6;
const NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT: u16 = 7;

/// When a NAPI instance polls without an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NapiSettings {
    /// How many polls without packets leave the interrupt off, a timer in its place (`defer-hard-irqs`).
    pub deferrals: u32,
    /// When that timer is due (`gro-flush-timeout`). The interrupt is deferred if neither is zero.
    pub timer: Duration,
    /// How long the interrupt stays off after an epoll_wait(2) that polled the queue and found packets
    /// (`irq-suspend-timeout`). Zero: not at all.
    pub suspension: Duration,
}

/// One instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Napi {
    /// Its number in the network namespace; drivers assign a new one when a queue is set up anew.
    pub id: u32,
    /// The receive queue that the driver links with it. A socket that is bound to a queue finds its instance by that; many
    /// drivers, those of virtual interfaces among them, link none.
    pub queue: Option<u32>,
    /// What it is set to; `None` before Linux 6.13, where only whole interfaces have settings.
    pub settings: Option<NapiSettings>,
}

/// The instances of the interface of this index. A virtual Ethernet interface has them only while an XDP program is
/// attached or GRO is on.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where the kernel does not know the question (before Linux 6.8), or the interface.
pub fn napis(index: u32) -> io::Result<Vec<Napi>> {
    let netdev = Netdev::open()?;
    let asked = [(NETDEV_A_QUEUE_IFINDEX, &index.to_ne_bytes()[..])];
    let queues = netdev.ask(NETDEV_CMD_QUEUE_GET, DUMP, &asked)?;
    let queues: Vec<_> = queues.iter().filter_map(|answer| receive_queue(answer)).collect();
    let asked = [(NETDEV_A_NAPI_IFINDEX, &index.to_ne_bytes()[..])];
    let answers = netdev.ask(NETDEV_CMD_NAPI_GET, DUMP, &asked)?;
    Ok(answers.iter().filter_map(|answer| napi(answer, &queues)).collect())
}

/// Sets an instance.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN in the initial user namespace; `EOPNOTSUPP` before Linux 6.13;
/// `ENOENT` when the instance is gone.
pub fn set_napi(id: u32, settings: NapiSettings) -> io::Result<()> {
    let nanos = |time: Duration| (time.as_nanos() as u64).to_ne_bytes();
    let asked = [
        (NETDEV_A_NAPI_ID, &id.to_ne_bytes()[..]),
        (NETDEV_A_NAPI_DEFER_HARD_IRQS, &settings.deferrals.to_ne_bytes()[..]),
        (NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, &nanos(settings.timer)[..]),
        (NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT, &nanos(settings.suspension)[..]),
    ];
    Netdev::open()?.ask(NETDEV_CMD_NAPI_SET, ACKNOWLEDGE, &asked)?;
    Ok(())
}

/// A number among attributes; the kernel writes four bytes where they are enough.
fn number(answer: &[u8], wanted: u16) -> Option<u64> {
    let value = find(answer, wanted)?;
    match value.len() {
        4 => Some(u64::from(u32::from_ne_bytes(value.try_into().ok()?))),
        _ => Some(u64::from_ne_bytes(value.try_into().ok()?)),
    }
}

/// The number of a receive queue, and of the instance that serves it.
fn receive_queue(answer: &[u8]) -> Option<(u32, u32)> {
    let of = |wanted| number(answer, wanted);
    let napi = of(NETDEV_A_QUEUE_NAPI_ID).filter(|_| of(NETDEV_A_QUEUE_TYPE) == Some(RECEIVE))?;
    Some((of(NETDEV_A_QUEUE_ID)? as u32, napi as u32))
}

fn napi(answer: &[u8], queues: &[(u32, u32)]) -> Option<Napi> {
    let of = |wanted| number(answer, wanted);
    let settings = || {
        Some(NapiSettings {
            deferrals: of(NETDEV_A_NAPI_DEFER_HARD_IRQS)? as u32,
            timer: Duration::from_nanos(of(NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT)?),
            suspension: Duration::from_nanos(of(NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT)?),
        })
    };
    let id = of(NETDEV_A_NAPI_ID)? as u32;
    let queue = queues.iter().find(|(_, napi)| *napi == id).map(|(queue, _)| *queue);
    Some(Napi { id, queue, settings: settings() })
}

#[cfg(test)]
mod tests {
    use crate::netlink::attribute;

    use super::*;

    #[test]
    fn an_instance_is_read_with_its_settings_and_without() {
        let mut answer = attribute(NETDEV_A_NAPI_IFINDEX, &3_u32.to_ne_bytes());
        assert_eq!(napi(&answer, &[]), None, "an instance has a number");
        answer.extend(attribute(NETDEV_A_NAPI_ID, &8_193_u32.to_ne_bytes()));
        let bare = Napi { id: 8_193, queue: None, settings: None };
        assert_eq!(napi(&answer, &[(0, 8_194)]), Some(bare));
        answer.extend(attribute(NETDEV_A_NAPI_DEFER_HARD_IRQS, &2_u32.to_ne_bytes()));
        answer.extend(attribute(NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, &200_000_u32.to_ne_bytes()));
        answer.extend(attribute(NETDEV_A_NAPI_IRQ_SUSPEND_TIMEOUT, &(5_u64 << 32).to_ne_bytes()));
        let settings = NapiSettings {
            deferrals: 2,
            timer: Duration::from_micros(200),
            suspension: Duration::from_nanos(5 << 32),
        };
        let found = napi(&answer, &[(0, 8_194), (1, 8_193)]);
        assert_eq!(found, Some(Napi { queue: Some(1), settings: Some(settings), ..bare }));
    }

    #[test]
    fn a_receive_queue_names_its_instance_if_the_driver_does() {
        let of = |kind: u32| {
            let mut answer = attribute(NETDEV_A_QUEUE_ID, &1_u32.to_ne_bytes());
            answer.extend(attribute(NETDEV_A_QUEUE_TYPE, &kind.to_ne_bytes()));
            answer
        };
        let napi = attribute(NETDEV_A_QUEUE_NAPI_ID, &8_193_u32.to_ne_bytes());
        assert_eq!(receive_queue(&of(0)), None);
        assert_eq!(receive_queue(&[of(0), napi.clone()].concat()), Some((1, 8_193)));
        assert_eq!(receive_queue(&[of(1), napi].concat()), None, "a transmit queue");
    }

    #[test]
    fn the_loopback_interface_has_no_instances() {
        match napis(1) {
            Ok(napis) => assert_eq!(napis, []),
            Err(error) => println!("not run: this kernel does not answer ({error})"),
        }
    }
}
