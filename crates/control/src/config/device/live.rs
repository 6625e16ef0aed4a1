//! `kind = "af_xdp"`, `"af_packet"` and `"tap"`: interfaces of this machine.

use std::fmt;
use std::ops::RangeInclusive;

use rheostat_capture::filter::Filter;
use rheostat_io::backend::af_xdp::CopyMode;
use rheostat_io::backend::bpf::{AttachMode, FenceMode};
use rheostat_io::{DeviceFacts, Refusal};

use super::filter;
use rheostat_settings::declared::kind::{Kind, boolean, choice, count};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::text;
use rheostat_settings::reader::{Table, Value};

/// Bytes of a slot of a packet socket's ring.
const PACKET_SLOT: u64 = 2_048;
/// Bytes per descriptor and lane of an AF_XDP socket: fill, receive, transmit and completion ring.
const XDP_DESCRIPTOR: u64 = 48;

/// An interface of this machine, and how packets come from it and go to it.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveConfig {
    /// The interface, as the kernel names it. A run needs one; a configuration may leave it to the
    /// command line.
    pub interface: Option<String>,
    /// The way to it.
    pub access: Access,
    /// Entries of each ring between the kernel and a lane; a power of two.
    pub ring: u32,
    /// What the rewriting of the indirection table waits for.
    pub fence: FenceMode,
    /// Which packets are taken, and which are left to the kernel.
    pub filter: Filter,
    /// What becomes of the run when the interface is gone.
    pub on_loss: OnLoss,
}

/// What becomes of a run when an interface is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It ends, with an exit status of its own, so that the supervisor decides. The default: it needs no
    /// privileges, and a gateway that has lost an interface is noticed.
    #[default]
    Exit,
    /// It goes on with what is left, and opens the interface anew when one of its name is there again. The
    /// flows are kept. One thread keeps the capabilities that this takes.
    Wait,
}

/// The way to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rings shared with the driver, or with the kernel's receive path right behind it.
    AfXdp {
        /// Where the program that places packets is attached.
        attach: AttachMode,
        /// Whether packets are copied between driver and rings.
        copy: CopyMode,
        /// Packets that a lane without any has the kernel take from the driver, in place of interrupts.
        busy_poll: Option<u16>,
    },
    /// Rings shared with the kernel's packet sockets.
    AfPacket {
        /// Whether the kernel's own stack is kept from the packets that are taken.
        exclusive: bool,
    },
    /// An interface of the kernel of which this process is the other end.
    Tap,
}

/// The kinds of live devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveKind {
    AfXdp,
    AfPacket,
    Tap,
}

impl LiveKind {
    fn word(self) -> &'static str {
        match self {
            LiveKind::AfXdp => "af_xdp",
            LiveKind::AfPacket => "af_packet",
            LiveKind::Tap => "tap",
        }
    }
}

impl LiveConfig {
    /// Entries of rings.
    pub(crate) const RINGS: RangeInclusive<u64> = 64..=32_768;
    /// Entries of a ring by default.
    const RING: u32 = 2_048;

    /// A device of this kind at an interface, with nothing else said.
    pub(crate) fn new(kind: LiveKind, interface: Option<String>) -> LiveConfig {
        let access = match kind {
            LiveKind::AfXdp => {
                let (attach, copy) = (AttachMode::default(), CopyMode::default());
                Access::AfXdp { attach, copy, busy_poll: None }
            }
            LiveKind::AfPacket => Access::AfPacket { exclusive: true },
            LiveKind::Tap => Access::Tap,
        };
        LiveConfig {
            interface,
            access,
            ring: LiveConfig::RING,
            fence: FenceMode::default(),
            filter: Filter::default(),
            on_loss: OnLoss::default(),
        }
    }

    /// The device's kind.
    pub(crate) fn kind(&self) -> LiveKind {
        match self.access {
            Access::AfXdp { .. } => LiveKind::AfXdp,
            Access::AfPacket { .. } => LiveKind::AfPacket,
            Access::Tap => LiveKind::Tap,
        }
    }

    /// The kind as the file and the command line write it.
    pub fn word(&self) -> &'static str {
        self.kind().word()
    }

    pub(super) fn facts(&self) -> DeviceFacts {
        let alike = DeviceFacts {
            interface: self.interface.clone(),
            is_live: true,
            waits_for_interface: self.on_loss == OnLoss::Wait,
            ..DeviceFacts::PLAYED
        };
        let ring = u64::from(self.ring);
        match self.access {
            Access::AfXdp { .. } => DeviceFacts {
                maps_pool: true,
                needs_whole_segments: true,
                ring_bytes: ring * XDP_DESCRIPTOR,
                ..alike
            },
            Access::AfPacket { exclusive } => DeviceFacts {
                ring_bytes: ring * PACKET_SLOT,
                own_queues: Some(Refusal {
                    key: "kind",
                    label: self.word(),
                    why: "the kernel gives each lane a ring of its own",
                    help: "",
                }),
                not_beside_kernel: (!exclusive).then_some(Refusal {
                    key: "exclusive",
                    label: "",
                    why: "the kernel would see the service's segments, and reset its connections",
                    help: "remove `exclusive = false`",
                }),
                ..alike
            },
            Access::Tap => DeviceFacts {
                makes_interface: true,
                own_queues: Some(Refusal {
                    key: "kind",
                    label: self.word(),
                    why: "the kernel gives each lane a queue of its own",
                    help: "",
                }),
                not_beside_kernel: Some(Refusal {
                    key: "kind",
                    label: "",
                    why: "the kernel is at the other end of a tap interface, not at this one",
                    help: "write kind = \"af_xdp\" or \"af_packet\", or remove `beside_kernel`",
                }),
                ..alike
            },
        }
    }

    pub(super) fn read(
        kind: LiveKind,
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> LiveConfig {
        let keys = Keys::new();
        let mut live = LiveConfig::new(kind, keys.interface.read(table, findings));
        live.ring = keys.ring.read_or_default(table, findings).next_power_of_two();
        live.fence = keys.fence.read_or_default(table, findings);
        live.filter = filter::read(table, findings);
        live.on_loss = keys.on_loss.read_or_default(table, findings);
        match &mut live.access {
            Access::AfXdp { attach, copy, busy_poll } => {
                let keys = XdpKeys::new();
                *attach = keys.attach.read_or_default(table, findings);
                *copy = keys.copy.read_or_default(table, findings);
                *busy_poll = keys.busy_poll.read(table, findings);
            }
            Access::AfPacket { exclusive } => {
                *exclusive = PacketKeys::new().exclusive.read_or_default(table, findings);
            }
            Access::Tap => {}
        }
        live
    }

    /// The keys of a device of this kind.
    pub(super) fn keys(kind: LiveKind) -> Vec<Setting> {
        let mut keys = Keys::new().settings();
        keys.splice(3..3, filter::settings());
        keys.extend(match kind {
            LiveKind::AfXdp => XdpKeys::new().settings(),
            LiveKind::AfPacket => PacketKeys::new().settings(),
            LiveKind::Tap => Vec::new(),
        });
        keys
    }
}

const FENCES: [(&str, FenceMode); 2] = [("strict", FenceMode::Strict), ("fast", FenceMode::Fast)];
const LOSSES: [(&str, OnLoss); 2] = [("exit", OnLoss::Exit), ("wait", OnLoss::Wait)];
const PLACES: [(&str, AttachMode); 3] =
    [("auto", AttachMode::Auto), ("native", AttachMode::Native), ("generic", AttachMode::Generic)];
const COPIES: [(&str, CopyMode); 3] =
    [("auto", CopyMode::Auto), ("zero", CopyMode::Zero), ("copy", CopyMode::Copy)];

rheostat_settings::keys! {
    struct Keys {
        /// The interface, as the kernel names it. A run needs one; a configuration may leave it to the command line.
        interface: String = Kind::new(Form::Text, interface, String::clone).noun("interface"), example("\"eth0\"");
        /// Entries of each ring between the kernel and a lane; rounded up to a power of two.
        ring: u32 = count(LiveConfig::RINGS), default(LiveConfig::RING);
        /// What the rewriting of the indirection table waits for: strict (until no CPU works on packets by the old table) or fast.
        fence: FenceMode = choice(FENCES), default(FenceMode::default());
        /// What becomes of the run when the interface is gone: exit (it ends with status 3) or wait (it goes on, and opens the interface
        /// anew when it is back).
        on_loss: OnLoss = choice(LOSSES), default(OnLoss::default());
    }
}

rheostat_settings::keys! {
    struct XdpKeys {
        /// Where the program that places packets is attached: native (in the driver), generic (in front of the kernel's stack), or auto.
        attach: AttachMode = choice(PLACES), default(AttachMode::default());
        /// Whether packets are copied between driver and rings.
        copy: CopyMode = choice(COPIES), default(CopyMode::default());
        /// Packets that a lane without any has the kernel take from the driver, in place of interrupts.
        busy_poll: u16 = count(1..=1_024), example("64");
    }
}

rheostat_settings::keys! {
    struct PacketKeys {
        /// Whether the kernel's own stack is kept from the packets that are taken.
        exclusive: bool = boolean(), default(true);
    }
}

impl fmt::Display for LiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = self.interface.as_deref().unwrap_or("an interface still to be given");
        write!(f, "{} at {interface}, rings of {}", self.word(), self.ring)?;
        match self.access {
            Access::AfXdp { attach, copy, busy_poll } => {
                f.write_str(match attach {
                    AttachMode::Auto => "",
                    AttachMode::Native => ", in the driver",
                    AttachMode::Generic => ", in front of the kernel's stack",
                })?;
                f.write_str(match copy {
                    CopyMode::Auto => "",
                    CopyMode::Zero => ", without copying",
                    CopyMode::Copy => ", copying",
                })?;
                if let Some(packets) = busy_poll {
                    write!(f, ", lanes poll the driver for {packets} packets")?;
                }
            }
            Access::AfPacket { exclusive } => {
                f.write_str(if exclusive { ", kept from the kernel" } else { "" })?;
            }
            Access::Tap => {}
        }
        let (take, leave) = (self.filter.take.len(), self.filter.leave.len());
        if take + leave > 0 {
            write!(f, ", {take} kinds of packets taken, {leave} left to the kernel")?;
        }
        f.write_str(match self.fence {
            FenceMode::Strict => "",
            FenceMode::Fast => ", fast fences",
        })?;
        f.write_str(match self.on_loss {
            OnLoss::Exit => "",
            OnLoss::Wait => ", waited for when lost",
        })
    }
}

/// Whether the kernel would take `text` for the name of an interface.
pub(crate) fn is_interface_name(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c == '/' || c == '\0';
    (1..16).contains(&text.len()) && !text.contains(odd) && text != "." && text != ".."
}

/// A conversion to the name of an interface.
fn interface(value: &Value<'_>, findings: &mut Findings) -> Option<String> {
    let name = text(value, findings)?;
    if !is_interface_name(name) {
        let finding = value.mistake(format!("`{name}` cannot be the name of an interface"));
        findings.push(finding.help(
            "names have 1 to 15 characters, without spaces and `/`; `ip -brief link` lists them",
        ));
        return None;
    }
    Some(name.to_owned())
}
