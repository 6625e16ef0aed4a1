//! Opening a device: memory, sockets, program.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use rheostat_base::QueueId;
use rheostat_kernel::Interface;
use rheostat_kernel::capability::Capability;
use rheostat_kernel::xdp_features;
use rheostat_packet::mbuf::PoolArea;
use rheostat_packet::{BURST, Loans, Mempool, PoolCache};
use rustix::io::Errno;

use super::attachment::{Attachment, LaneSockets};
use super::busy_poll::BusyPoll;
use super::config::{CopyMode, XdpConfig};
use super::counters::Counters;
use super::frame_rings::FrameRings;
use super::release::{self, ReleaseProbe};
use super::ring::{Consumer, Producer};
use super::transmit_state::{AT_ONCE, TransmitState};
use crate::backend::bpf::{AttachMode, XdpProgram};
use crate::backend::interface_error::InterfaceError;
use crate::sys::ring_mapping::RingMapping;
use crate::sys::xdp_socket::{Descriptor, PACKET_HEADROOM, Place, Transfer, XdpSocket};

/// An Ethernet header with a VLAN tag.
pub(super) const LONGEST_LINK_HEADER: usize = 18;

/// A ring of packets.
pub(super) type PacketRing = Arc<RingMapping<Descriptor>>;

/// A ring of buffers.
pub(super) type FrameRing = Arc<RingMapping<u64>>;

/// The rings of one lane.
pub(super) struct LaneRings {
    /// By hardware queue; none, where the first of the lanes that share them has them.
    pub(super) receive: Vec<Consumer<PacketRing>>,
    pub(super) transmit: Producer<PacketRing>,
}

/// How many packets rings hold, and buffers the kernel gets.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Buffers that wait for packets, on each hardware queue.
    buffers: u32,
    /// Of a FILL ring.
    fill: u32,
    /// Of a COMPLETION ring.
    completion: u32,
    /// Of an RX ring.
    receive: u32,
    /// Of a TX ring.
    transmit: u32,
}

/// A way to bind sockets.
#[derive(Clone, Copy, Debug)]
struct Way {
    transfer: Transfer,
    /// Packets may lie in several buffers (Linux 6.6).
    pieces: bool,
}

/// The sockets of a device, bound, and their rings.
struct Bound {
    // Dropped first: a mapping keeps its socket.
    /// FILL and COMPLETION, by hardware queue.
    frames: Vec<[FrameRing; 2]>,
    lanes: Vec<BoundLane>,
}

/// The part of a lane.
#[derive(Default)]
struct BoundLane {
    // Dropped first: a mapping keeps its socket.
    receive: Vec<Consumer<PacketRing>>,
    transmit: Option<Producer<PacketRing>>,
    /// By hardware queue: those with RX rings.
    sockets: Vec<XdpSocket>,
    /// The one with a TX ring, if it is none of them.
    sender: Option<XdpSocket>,
}

/// Why sockets could not be opened.
struct Refusal {
    doing: &'static str,
    queue: u32,
    error: Errno,
}

/// The refusal of a step on a hardware queue.
fn refuse<E: Into<io::Error>>(doing: &'static str, queue: u32) -> impl Fn(E) -> Refusal {
    move |error| {
        let error = Errno::from_io_error(&error.into()).unwrap_or(Errno::IO);
        Refusal { doing, queue, error }
    }
}

/// Opens the device that `config` describes, with buffers from `pool`.
pub(super) fn open(
    config: &XdpConfig,
    pool: &Mempool,
) -> Result<(Attachment, Vec<LaneRings>), InterfaceError> {
    let area = pool.area();
    check(config, &area)?;
    let fit = fit(config, pool.capacity())?;
    let (bound, way) = Binding { config, area, fit: &fit }.bind()?;
    let Fit { interface, index, hardware_queues, mtu, sizes } = fit;

    let mut program = XdpProgram::load_fenced(&config.programs(), config.fence)?;
    if let Some(placement) = &config.placement {
        // The program is not attached yet, so the fence need not be awaited.
        program.table().rewrite(placement)?;
    }
    for lane in 0..config.queues {
        let receiving = lane - lane % config.claimants;
        for (queue, socket) in (0..).zip(&bound.lanes[usize::from(receiving)].sockets) {
            program.register(queue, lane, std::os::fd::AsFd::as_fd(socket))?;
        }
    }
    let fails = |doing, needed| InterfaceError::set_up(doing, &config.interface, needed);
    let probe = |queue| ReleaseProbe::new(Place { interface: index, queue });
    let probes = match way.transfer {
        Transfer::Zero => (0..hardware_queues).map(probe).collect::<io::Result<Vec<_>>>(),
        Transfer::Copy => Ok(Vec::new()),
    };
    let probes =
        probes.map_err(fails("make a socket that waits for its release", Capability::NetRaw))?;
    let queues = bound.frames.into_iter().map(|[fill, completion]| {
        // SAFETY: these are the rings of sockets that work in the pool, and every address on them is
        // lent through these loans.
        unsafe { FrameRings::new(Loans::new(pool), fill, completion) }
    });
    let counters = Counters::new(config.queues, config.claimants, hardware_queues);
    let counters = Arc::new(counters);
    let mut rings = Vec::new();
    let lanes = bound.lanes.into_iter().zip(0..).map(|(lane, number)| {
        let BoundLane { receive, transmit, sockets, sender } = lane;
        let transmit = transmit.expect("each lane sends on one of the queues");
        let transmit_queue = Attachment::transmit_queue(QueueId(number), hardware_queues as usize);
        let at_once = AT_ONCE.min(config.descriptors);
        let sending = sender.as_ref().unwrap_or_else(|| &sockets[transmit_queue]);
        let has_budget = sending.set_transmit_budget(at_once).is_ok();
        let at_once = if has_budget { at_once } else { BURST as u32 };
        let lane = LaneSockets {
            waiting: receive.iter().map(Consumer::gauge).collect(),
            transmit: TransmitState::new(transmit.gauge(), way.transfer, at_once, counters.clone()),
            transmit_queue,
            sockets,
            sender,
        };
        rings.push(LaneRings { receive, transmit });
        lane
    });
    // From here on, whatever goes wrong, dropping the attachment gives everything up in order.
    let mut attachment = Attachment {
        interface,
        index,
        mtu: AtomicU32::new(mtu as u32),
        program: Some(program),
        busy_poll: None,
        mode: AttachMode::Auto,
        transfer: way.transfer,
        probes,
        pieces: way.pieces,
        queues: queues.collect(),
        lanes: lanes.collect(),
        claimants: config.claimants.into(),
        counters: counters.clone(),
        pool: pool.clone(),
        stamps: config.stamps.clone(),
    };
    let mut cache = PoolCache::new(pool.clone());
    for queue in &attachment.queues {
        let mut wanted = sizes.buffers as usize;
        while wanted > 0 {
            match queue.refill(wanted, &mut cache) {
                0 => break,
                given => wanted -= given,
            }
        }
    }
    let program = attachment.program.as_mut().expect("it was put there above");
    attachment.mode = program.attach(index, config.mode)?;
    if let Some(budget) = config.busy_poll {
        let sockets = attachment.lanes.iter().flat_map(LaneSockets::all);
        let started = BusyPoll::start(index, sockets, budget);
        let polling = "have lanes poll the driver's queues (`busy_poll`)";
        attachment.busy_poll = Some(started.map_err(fails(polling, Capability::NetAdmin))?);
    }
    Ok((attachment, rings))
}

/// An interface that fits a configuration.
#[derive(Debug)]
pub(super) struct Fit {
    interface: Interface,
    index: u32,
    hardware_queues: u32,
    mtu: usize,
    sizes: Sizes,
}

/// Looks at the interface without opening anything, for a pool of so many buffers.
pub(super) fn fit(config: &XdpConfig, buffers: usize) -> Result<Fit, InterfaceError> {
    let missing =
        |source| InterfaceError::NoInterface { interface: config.interface.clone(), source };
    let interface = Interface::new(&config.interface).map_err(missing)?;
    let index = interface.index().map_err(missing)?;
    let hardware_queues = interface.receive_queues().map_err(missing)?;
    if config.ordered && hardware_queues > 1 {
        let interface = config.interface.clone();
        return Err(InterfaceError::Ordered { interface, queues: hardware_queues });
    }
    let mtu = interface.mtu().map_err(missing)? as usize;
    let sizes = sizes(config, buffers, hardware_queues)?;
    // What the driver does not state, the kernel answers when the sockets are bound.
    if config.copy == CopyMode::Zero && xdp_features(index).is_ok_and(|driver| !driver.zero_copy) {
        let (interface, source) = (config.interface.clone(), Errno::OPNOTSUPP.into());
        return Err(InterfaceError::NoZeroCopy { interface, source });
    }
    Ok(Fit { interface, index, hardware_queues, mtu, sizes })
}

fn check(config: &XdpConfig, area: &PoolArea) -> Result<(), InterfaceError> {
    if config.queues == 0 {
        return Err(InterfaceError::NoQueue);
    }
    let (lanes, claimants) = (config.queues, config.claimants);
    if claimants == 0 || !lanes.is_multiple_of(claimants) {
        return Err(InterfaceError::Claimants { lanes, claimants });
    }
    let descriptors = config.descriptors;
    if !descriptors.is_power_of_two() || !(64..=32_768).contains(&descriptors) {
        return Err(InterfaceError::Descriptors(descriptors));
    }
    let (stride, headroom) = (area.stride, area.headroom);
    if !matches!(stride, 2_048 | 4_096) || !(PACKET_HEADROOM..stride).contains(&headroom) {
        return Err(InterfaceError::Layout { stride, headroom });
    }
    Ok(())
}

/// A quarter of the pool at most waits for packets, so that there is something left to work with; a
/// lane that is slow fills its own ring and not those of the others, unless they share it.
fn sizes(config: &XdpConfig, buffers: usize, queues: u32) -> Result<Sizes, InterfaceError> {
    let (lanes, rings) = (u32::from(config.queues), u32::from(config.queues / config.claimants));
    let share = (buffers / 4) as u32 / queues;
    let least = 2 * BURST as u32;
    if share < least {
        let needed = (4 * least * queues) as usize;
        return Err(InterfaceError::PoolTooSmall { buffers, queues, needed });
    }
    let wanted = config.descriptors.saturating_mul(rings).min(share).min(32_768);
    let for_each = (wanted / rings).max(least).min(config.descriptors);
    Ok(Sizes {
        buffers: wanted,
        fill: wanted.next_power_of_two(),
        completion: config.descriptors.saturating_mul(lanes).min(32_768).next_power_of_two(),
        // Rounded down, so that all of them together are no more than there are buffers.
        receive: 1 << for_each.ilog2(),
        transmit: config.descriptors,
    })
}

/// What the sockets of a device are bound by.
struct Binding<'a> {
    config: &'a XdpConfig,
    area: PoolArea,
    fit: &'a Fit,
}

const REGISTER: &str = "share the packet buffers with the kernel";

impl Binding<'_> {
    /// Binds sockets in the best way that works.
    fn bind(&self) -> Result<(Bound, Way), InterfaceError> {
        let XdpConfig { copy, mode, .. } = *self.config;
        let pieces = self.fit.mtu + LONGEST_LINK_HEADER > self.area.stride - self.area.headroom;
        let zero = Way { transfer: Transfer::Zero, pieces };
        let with_copy = [true, false].map(|pieces| Way { transfer: Transfer::Copy, pieces });
        let ways = match copy {
            CopyMode::Zero => vec![zero],
            // In front of a generic program there is nothing to work without a copy.
            CopyMode::Auto if mode != AttachMode::Generic => [&[zero], &with_copy[..]].concat(),
            CopyMode::Auto | CopyMode::Copy => with_copy.to_vec(),
        };
        let last = ways.len() - 1;
        for (number, way) in ways.into_iter().enumerate() {
            match self.bind_patiently(way) {
                Ok(bound) => return Ok((bound, way)),
                Err(refusal) if number == last || refusal.holds_for_every_way() => {
                    return Err(self.explain(&refusal, way));
                }
                Err(_) => {}
            }
        }
        unreachable!("the last way was returned from")
    }

    /// Binds sockets; waits for a queue that its last owner, maybe killed a moment ago, is about to lose.
    fn bind_patiently(&self, way: Way) -> Result<Bound, Refusal> {
        let timeout = Instant::now() + release::TIMEOUT;
        loop {
            match self.bind_all(way) {
                Err(refusal) if refusal.error == Errno::BUSY && Instant::now() < timeout => {
                    std::thread::sleep(release::INTERVAL);
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes and binds the sockets of all lanes on all hardware queues: of lanes that share RX rings, the first has the
    /// sockets that receive, and each of the others one to send through. The memory is registered anew for
    /// each device, so that devices live and work independently of each other; within a device all sockets
    /// share the registration of the first.
    fn bind_all(&self, way: Way) -> Result<Bound, Refusal> {
        let Fit { index: interface, hardware_queues, ref sizes, .. } = *self.fit;
        let lanes = usize::from(self.config.queues);
        let lanes = std::iter::repeat_with(BoundLane::default).take(lanes).collect();
        let mut bound = Bound { frames: Vec::new(), lanes };
        for queue in 0..hardware_queues {
            let place = Place { interface, queue };
            for number in 0..self.config.queues {
                let receives = number.is_multiple_of(self.config.claimants);
                let transmit_queue =
                    Attachment::transmit_queue(QueueId(number), hardware_queues as usize);
                let sends = transmit_queue == queue as usize;
                if !receives && !sends {
                    continue;
                }
                let socket = XdpSocket::new().map_err(refuse("open an AF_XDP socket", queue))?;
                let is_owner = (queue, number) == (0, 0);
                if is_owner {
                    // SAFETY: the pool's memory stays mapped while buffers are lent, and the record of
                    // loans holds the pool; what is posted is lent.
                    unsafe { socket.register(&self.area) }.map_err(refuse(REGISTER, queue))?;
                }
                if number == 0 {
                    let frames = socket.frame_rings(sizes.fill, sizes.completion);
                    let (fill, completion) =
                        frames.map_err(refuse("make FILL and COMPLETION rings", queue))?;
                    bound.frames.push([fill, completion].map(Arc::new));
                }
                let first =
                    bound.lanes[0].sockets.get(if number == 0 { 0 } else { queue as usize });
                let (receive, transmit) = (
                    receives.then(|| socket.receive_ring(sizes.receive)).transpose(),
                    sends.then(|| socket.transmit_ring(sizes.transmit)).transpose(),
                );
                let receive = receive.map_err(refuse("make an RX ring", queue))?;
                let transmit = transmit.map_err(refuse("make a TX ring", queue))?;
                let outcome = match first {
                    Some(first) => socket.bind_shared(place, first),
                    None => socket.bind(place, way.transfer, way.pieces),
                };
                outcome.map_err(refuse("bind a socket", queue))?;
                let lane = &mut bound.lanes[usize::from(number)];
                lane.receive.extend(receive.map(|ring| Consumer::new(Arc::new(ring))));
                if let Some(ring) = transmit {
                    lane.transmit = Some(Producer::new(Arc::new(ring)));
                }
                match receives {
                    true => lane.sockets.push(socket),
                    false => lane.sender = Some(socket),
                }
            }
        }
        Ok(bound)
    }

    fn explain(&self, refusal: &Refusal, way: Way) -> InterfaceError {
        let Refusal { doing, queue, error } = *refusal;
        let interface = self.config.interface.clone();
        let source = io::Error::from(error);
        match error {
            Errno::BUSY => InterfaceError::Busy { interface, queue },
            Errno::NOBUFS | Errno::NOMEM if doing == REGISTER => {
                InterfaceError::Memory { bytes: self.area.bytes, source }
            }
            Errno::NODEV => InterfaceError::NoInterface { interface, source },
            _ if way.transfer == Transfer::Zero && !refusal.holds_for_every_way() => {
                InterfaceError::NoZeroCopy { interface, source }
            }
            _ => InterfaceError::set_up(doing, &interface, Capability::NetRaw)(source),
        }
    }
}

impl Refusal {
    /// Whether other ways to bind would be refused, too.
    fn holds_for_every_way(&self) -> bool {
        matches!(self.error, Errno::PERM | Errno::ACCESS | Errno::BUSY)
    }
}
