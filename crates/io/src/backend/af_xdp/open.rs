//! Opening a device: memory, sockets, program.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use rheostat_base::QueueId;
use rheostat_kernel::Interface;
use rheostat_kernel::capability::{self, Capability};
use rheostat_kernel::xdp_features;
use rheostat_packet::mbuf::PoolArea;
use rheostat_packet::{BURST, Loans, Mempool, PoolCache};
use rustix::io::Errno;

use super::attachment::{Attachment, LaneSockets};
use super::busy_poll::BusyPoll;
use super::config::{CopyMode, XdpConfig};
use super::counters::Counters;
use super::frame_rings::FrameRings;
use super::open_error::XdpOpenError;
use super::release::{self, ReleaseProbe};
use super::ring::{Consumer, Producer};
use super::transmit_state::{AT_ONCE, TransmitState};
use crate::backend::bpf::{AttachMode, XdpProgram};
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

/// What opening the sockets came to.
struct Bound {
    // Dropped first: a mapping keeps its socket.
    rings: Vec<LaneRings>,
    /// FILL and COMPLETION, by hardware queue.
    frames: Vec<[FrameRing; 2]>,
    /// By lane, and then by hardware queue: those with RX rings.
    sockets: Vec<Vec<XdpSocket>>,
    /// By lane: the one with a TX ring, if it is none of them.
    senders: Vec<Option<XdpSocket>>,
}

/// Which lanes receive from which sockets.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    lanes: u16,
    /// So many in a row receive from the same rings.
    claimants: u16,
    hardware_queues: u32,
}

/// Why sockets could not be opened.
struct Refusal {
    what: &'static str,
    queue: u32,
    error: Errno,
}

/// Opens the device that `config` describes, with buffers from `pool`.
pub(super) fn open(
    config: &XdpConfig,
    pool: &Mempool,
) -> Result<(Attachment, Vec<LaneRings>), XdpOpenError> {
    let area = pool.area();
    check(config, &area)?;
    let Fit { interface, index, hardware_queues, mtu, sizes } = fit(config, pool.capacity())?;
    let long = mtu + LONGEST_LINK_HEADER > area.stride - area.headroom;
    let lanes = Lanes { lanes: config.queues, claimants: config.claimants, hardware_queues };
    let (bound, way) = bind(config, index, lanes, sizes, &area, long)?;

    let mut program = XdpProgram::load_fenced(&config.programs(), config.fence)?;
    if let Some(placement) = &config.placement {
        // The program is not attached yet, so the fence need not be awaited.
        program.table().rewrite(placement)?;
    }
    for lane in 0..config.queues {
        let receiving = lane - lane % config.claimants;
        for (queue, socket) in (0..).zip(&bound.sockets[usize::from(receiving)]) {
            program.register(queue, lane, std::os::fd::AsFd::as_fd(socket))?;
        }
    }
    let probe = |queue| ReleaseProbe::new(Place { interface: index, queue });
    let probes = match way.transfer {
        Transfer::Zero => (0..hardware_queues).map(probe).collect::<io::Result<Vec<_>>>(),
        Transfer::Copy => Ok(Vec::new()),
    };
    let probes = probes.map_err(|source| XdpOpenError::Socket {
        interface: config.interface.clone(),
        what: "make a socket that waits for its release",
        source,
    })?;
    let Bound { rings, frames, sockets, senders } = bound;
    let queues = frames.into_iter().map(|[fill, completion]| {
        // SAFETY: these are the rings of sockets that work in the pool, and every address on them is
        // lent through these loans.
        unsafe { FrameRings::new(Loans::new(pool), fill, completion) }
    });
    let sockets = sockets.into_iter().zip(senders);
    let lanes = sockets.zip(&rings).zip(0..).map(|(((sockets, sender), rings), lane)| {
        let transmit_queue = Attachment::transmit_queue(QueueId(lane), hardware_queues as usize);
        let at_once = AT_ONCE.min(config.descriptors);
        let sending = sender.as_ref().unwrap_or_else(|| &sockets[transmit_queue]);
        let is_told = sending.set_transmit_budget(at_once).is_ok();
        let at_once = if is_told { at_once } else { BURST as u32 };
        LaneSockets {
            waiting: rings.receive.iter().map(Consumer::gauge).collect(),
            transmit: TransmitState::new(rings.transmit.gauge(), way.transfer, at_once),
            transmit_queue,
            sockets,
            sender,
        }
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
        counters: Arc::new(Counters::new(config.queues, config.claimants, hardware_queues)),
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
        attachment.busy_poll = Some(started.map_err(|error| refuse_busy_poll(config, error))?);
    }
    Ok((attachment, rings))
}

fn refuse_busy_poll(config: &XdpConfig, source: io::Error) -> XdpOpenError {
    let what = "have lanes poll the driver's queues (`busy_poll`)";
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            XdpOpenError::Permission(capability::Refusal::new(what, &[Capability::NetAdmin]))
        }
        _ => XdpOpenError::Socket { interface: config.interface.clone(), what, source },
    }
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
pub(super) fn fit(config: &XdpConfig, buffers: usize) -> Result<Fit, XdpOpenError> {
    let missing =
        |source| XdpOpenError::NoInterface { interface: config.interface.clone(), source };
    let interface = Interface::new(&config.interface).map_err(missing)?;
    let index = interface.index().map_err(missing)?;
    let hardware_queues = interface.receive_queues().map_err(missing)?;
    if config.ordered && hardware_queues > 1 {
        let interface = config.interface.clone();
        return Err(XdpOpenError::Ordered { interface, queues: hardware_queues });
    }
    let mtu = interface.mtu().map_err(missing)? as usize;
    let sizes = sizes(config, buffers, hardware_queues)?;
    // What the driver does not state, the kernel answers when the sockets are bound.
    if config.copy == CopyMode::Zero && xdp_features(index).is_ok_and(|driver| !driver.zero_copy) {
        let (interface, source) = (config.interface.clone(), Errno::OPNOTSUPP.into());
        return Err(XdpOpenError::NoZeroCopy { interface, source });
    }
    Ok(Fit { interface, index, hardware_queues, mtu, sizes })
}

fn check(config: &XdpConfig, area: &PoolArea) -> Result<(), XdpOpenError> {
    if config.queues == 0 {
        return Err(XdpOpenError::NoQueue);
    }
    let (lanes, claimants) = (config.queues, config.claimants);
    if claimants == 0 || !lanes.is_multiple_of(claimants) {
        return Err(XdpOpenError::Claimants { lanes, claimants });
    }
    let descriptors = config.descriptors;
    if !descriptors.is_power_of_two() || !(64..=32_768).contains(&descriptors) {
        return Err(XdpOpenError::Descriptors(descriptors));
    }
    let (stride, headroom) = (area.stride, area.headroom);
    if !matches!(stride, 2_048 | 4_096) || !(PACKET_HEADROOM..stride).contains(&headroom) {
        return Err(XdpOpenError::Layout { stride, headroom });
    }
    Ok(())
}

/// A quarter of the pool at most waits for packets, so that there is something left to work with; a
/// lane that is slow fills its own ring and not those of the others, unless they share it.
fn sizes(config: &XdpConfig, buffers: usize, queues: u32) -> Result<Sizes, XdpOpenError> {
    let (lanes, rings) = (u32::from(config.queues), u32::from(config.queues / config.claimants));
    let share = (buffers / 4) as u32 / queues;
    let least = 2 * BURST as u32;
    if share < least {
        let needed = (4 * least * queues) as usize;
        return Err(XdpOpenError::PoolTooSmall { buffers, queues, needed });
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

/// Binds sockets in the best way that works.
fn bind(
    config: &XdpConfig,
    index: u32,
    lanes: Lanes,
    sizes: Sizes,
    area: &PoolArea,
    long: bool,
) -> Result<(Bound, Way), XdpOpenError> {
    let zero = Way { transfer: Transfer::Zero, pieces: long };
    let copy = [true, false].map(|pieces| Way { transfer: Transfer::Copy, pieces });
    let ways = match config.copy {
        CopyMode::Zero => vec![zero],
        // In front of a generic program there is nothing to work without a copy.
        CopyMode::Auto if config.mode != AttachMode::Generic => [&[zero], &copy[..]].concat(),
        CopyMode::Auto | CopyMode::Copy => copy.to_vec(),
    };
    let last = ways.len() - 1;
    for (number, way) in ways.into_iter().enumerate() {
        match bind_patiently(lanes, index, sizes, area, way) {
            Ok(bound) => return Ok((bound, way)),
            // Refusals that are the same for every way.
            Err(refusal) if matches!(refusal.error, Errno::PERM | Errno::ACCESS | Errno::BUSY) => {
                return Err(refusal.explain(config, area, way));
            }
            Err(refusal) if number == last => return Err(refusal.explain(config, area, way)),
            Err(_) => {}
        }
    }
    unreachable!("the last way was returned from")
}

/// Binds sockets; waits for a queue that its last owner, maybe killed a moment ago, is about to lose.
fn bind_patiently(
    lanes: Lanes,
    index: u32,
    sizes: Sizes,
    area: &PoolArea,
    way: Way,
) -> Result<Bound, Refusal> {
    let timeout = Instant::now() + release::TIMEOUT;
    loop {
        match bind_all(lanes, index, sizes, area, way) {
            Err(refusal) if refusal.error == Errno::BUSY && Instant::now() < timeout => {
                std::thread::sleep(release::INTERVAL);
            }
            outcome => return outcome,
        }
    }
}

/// Makes and binds the sockets of all lanes on all hardware queues: of lanes that share RX rings, the first has the sockets
/// that receive, and each of the others one to send through. The memory is registered anew for
/// each device, so that devices live and work independently of each other; within a device all sockets
/// share the registration of the first.
fn bind_all(
    lanes: Lanes,
    index: u32,
    sizes: Sizes,
    area: &PoolArea,
    way: Way,
) -> Result<Bound, Refusal> {
    let Lanes { lanes, claimants, hardware_queues: queues } = lanes;
    let mut bound = Bound {
        rings: Vec::new(),
        frames: Vec::new(),
        sockets: (0..lanes).map(|_| Vec::new()).collect(),
        senders: (0..lanes).map(|_| None).collect(),
    };
    let mut receive: Vec<Vec<_>> = (0..lanes).map(|_| Vec::new()).collect();
    let mut transmit: Vec<Option<PacketRing>> = (0..lanes).map(|_| None).collect();
    for queue in 0..queues {
        let place = Place { interface: index, queue };
        for lane in 0..usize::from(lanes) {
            let receives = lane.is_multiple_of(claimants.into());
            let sends =
                Attachment::transmit_queue(QueueId(lane as u16), queues as usize) == queue as usize;
            if !receives && !sends {
                continue;
            }
            let refuse = |what| move |error| Refusal { what, queue, error };
            let refuse_io = |what| {
                move |error: io::Error| {
                    let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                    Refusal { what, queue, error }
                }
            };
            let socket = XdpSocket::new().map_err(refuse("open an AF_XDP socket"))?;
            let is_owner = (queue, lane) == (0, 0);
            if is_owner {
                // SAFETY: the pool's memory stays mapped while buffers are lent, and the record of
                // loans holds the pool; what is posted is lent.
                unsafe { socket.register(area) }.map_err(refuse(REGISTER))?;
            }
            if lane == 0 {
                let (fill, completion) = socket
                    .frame_rings(sizes.fill, sizes.completion)
                    .map_err(refuse_io("make FILL and COMPLETION rings"))?;
                bound.frames.push([fill, completion].map(Arc::new));
            }
            if receives {
                let ring =
                    socket.receive_ring(sizes.receive).map_err(refuse_io("make an RX ring"))?;
                receive[lane].push(Consumer::new(Arc::new(ring)));
            }
            if sends {
                let ring =
                    socket.transmit_ring(sizes.transmit).map_err(refuse_io("make a TX ring"))?;
                transmit[lane] = Some(Arc::new(ring));
            }
            let outcome = match lane {
                0 if is_owner => socket.bind(place, way.transfer, way.pieces),
                0 => socket.bind_shared(place, &bound.sockets[0][0]),
                _ => socket.bind_shared(place, &bound.sockets[0][queue as usize]),
            };
            outcome.map_err(refuse("bind a socket"))?;
            match receives {
                true => bound.sockets[lane].push(socket),
                false => bound.senders[lane] = Some(socket),
            }
        }
    }
    bound.rings = receive
        .into_iter()
        .zip(transmit)
        .map(|(receive, transmit)| LaneRings {
            receive,
            transmit: Producer::new(transmit.expect("each lane sends on one of the queues")),
        })
        .collect();
    Ok(bound)
}

const REGISTER: &str = "share the packet buffers with the kernel";

impl Refusal {
    fn explain(self, config: &XdpConfig, area: &PoolArea, way: Way) -> XdpOpenError {
        let interface = config.interface.clone();
        let source = io::Error::from(self.error);
        match self.error {
            Errno::PERM | Errno::ACCESS => {
                let needed = [Capability::NetRaw];
                XdpOpenError::Permission(capability::Refusal::new(self.what, &needed))
            }
            Errno::BUSY => XdpOpenError::Busy { interface, queue: self.queue },
            Errno::NOBUFS | Errno::NOMEM if self.what == REGISTER => {
                XdpOpenError::Memory { bytes: area.bytes, source }
            }
            Errno::NODEV => XdpOpenError::NoInterface { interface, source },
            _ if way.transfer == Transfer::Zero => XdpOpenError::NoZeroCopy { interface, source },
            _ => XdpOpenError::Socket { interface, what: self.what, source },
        }
    }
}
