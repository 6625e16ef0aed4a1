//! An interface: what XDP can do on it, its queues, and the offloads that stand in the way.

use rheostat_kernel::{Channels, Napi, Rings, Spreading};

use super::{Finding, InterfaceFacts, Machine};

/// The longest packet that fits a page together with what native XDP needs around it; about, as drivers
/// differ.
const NATIVE_MTU: u32 = 3_498;
/// Descriptors of a receive ring below which a burst of a millisecond at 1 Mpps does not fit.
const DESCRIPTORS: u32 = 1_024;
/// Offloads that put packets together on receipt: they are longer than what arrived, or than a buffer.
const JOINING: [&str; 2] = ["rx-lro", "rx-gro-hw"];
/// Offloads that leave checksums to hardware that a veth pair does not have.
const CHECKSUMS: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];
/// Offloads by which segments longer than packets are sent.
const SEGMENTS: [&str; 3] = ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation"];

pub(super) fn examine(machine: &dyn Machine, name: &str, findings: &mut Vec<Finding>) {
    let first = findings.len();
    let Some(mtu) = machine.read(&format!("/sys/class/net/{name}/mtu")) else {
        let means = "a run with it cannot start";
        let error = Finding::error("interface", "there is none of this name", means);
        findings.push(Finding { interface: Some(name.to_owned()), ..error.fixed_by("ip link") });
        return;
    };
    let facts = machine.interface(name);
    let state = machine.read(&format!("/sys/class/net/{name}/operstate")).unwrap_or_default();
    findings.push(match state.as_str() {
        "down" => Finding::warning("link", "down", "no packet comes or goes")
            .fixed_by(format!("ip link set {name} up")),
        _ => Finding::ok("link", state),
    });
    xdp(&facts, findings);
    if let Ok(mtu) = mtu.parse() {
        length(name, mtu, &facts, findings);
    }
    queues(name, &facts, findings);
    findings.push(Finding::ok("busy polling", busy_polling(facts.napis.as_deref())));
    findings.extend(offloads(machine, name, &facts));
    for finding in &mut findings[first..] {
        finding.interface = Some(name.to_owned());
    }
}

fn xdp(facts: &InterfaceFacts, findings: &mut Vec<Finding>) {
    let driver = facts.driver.as_deref().unwrap_or("no driver with a name");
    let generic = "kind `af_xdp` works by generic XDP: every packet is copied, after the kernel has made \
                   its own buffer for it";
    findings.push(match (&facts.probe, facts.xdp) {
        (Some(Ok(())), Some(xdp)) if xdp.zero_copy => {
            Finding::ok("XDP", format!("{driver}: native, zero copy"))
        }
        (_, Some(xdp)) if xdp.native && xdp.zero_copy && facts.probe.is_none() => {
            Finding::ok("XDP", format!("{driver}: native, zero copy, as the driver reports"))
        }
        (Some(Ok(())), _) => Finding::ok("XDP", format!("{driver}: native, packets are copied")),
        (Some(Err(why)), _) => Finding::warning(
            "XDP",
            format!("{driver}: no native program can be attached: {why}"),
            generic,
        ),
        (None, Some(xdp)) if xdp.native => Finding::ok(
            "XDP",
            format!("{driver}: native, packets are copied, as the driver reports"),
        ),
        (None, Some(_)) => Finding::warning("XDP", format!("{driver}: not native"), generic),
        (None, None) => Finding::warning(
            "XDP",
            format!("{driver}: the kernel does not say"),
            "whether it is native is found out by trying: --probe",
        ),
    });
}

/// Whether lanes can poll the driver's queues in place of its interrupts. Never a lack: no run needs it.
fn busy_polling(napis: Option<&[Napi]>) -> String {
    match napis {
        Some([]) => "no NAPI instance at present; a driver with native XDP has one for each queue once a program is \
                     attached"
            .to_owned(),
        Some(napis) if napis.iter().all(|napi| napi.queue.is_none()) => {
            "not possible: the driver links none of its queues with a NAPI instance".to_owned()
        }
        Some(napis) if napis.iter().all(|napi| napi.settings.is_some()) => {
            format!("possible by `busy_poll`, {} NAPI instance(s)", napis.len())
        }
        _ => "not possible: single NAPI instances have no settings (Linux 6.13 and newer have)".to_owned(),
    }
}

fn length(name: &str, mtu: u32, facts: &InterfaceFacts, findings: &mut Vec<Finding>) {
    let native = facts.xdp.is_some_and(|xdp| xdp.native);
    let segments = facts.xdp.is_some_and(|xdp| xdp.segments);
    findings.push(if native && mtu > NATIVE_MTU && !segments {
        Finding::warning(
            "MTU",
            format!("{mtu} bytes"),
            "native XDP takes packets of one page: the driver may refuse, and generic XDP is used",
        )
        .fixed_by(format!("ip link set {name} mtu 3498"))
    } else {
        Finding::ok("MTU", format!("{mtu} bytes"))
    });
}

fn queues(name: &str, facts: &InterfaceFacts, findings: &mut Vec<Finding>) {
    match facts.channels {
        Some(Channels { now, most }) if now > 1 || most > 1 => {
            findings.push(Finding::ok("receive queues", format!("{now} of {most}")));
            match facts.spreading {
                Some(Spreading { entries, .. }) if entries > 0 => {
                    findings.push(Finding::ok("spreading", format!("table of {entries} entries")));
                }
                _ => findings.push(Finding::warning(
                    "spreading",
                    "the driver's indirection table cannot be read",
                    "packets are placed on lanes by the XDP program alone, within each queue",
                )),
            }
        }
        _ => findings.push(Finding::ok(
            "receive queues",
            "one; the XDP program spreads its packets over lanes",
        )),
    }
    if let Some(Rings { now, most }) = facts.rings.filter(|rings| rings.now > 0) {
        let found = format!("{now} descriptors of {most}");
        findings.push(match now < DESCRIPTORS && now < most {
            false => Finding::ok("receive ring", found),
            true => Finding::warning("receive ring", found, "a burst of packets is dropped sooner")
                .fixed_by(format!("ethtool -G {name} rx {}", most.min(4_096))),
        });
    }
}

/// The other end of a veth pair, where it is in the same namespace.
fn peer(machine: &dyn Machine, name: &str) -> Option<String> {
    let number = |name: &str, file: &str| {
        machine.read(&format!("/sys/class/net/{name}/{file}"))?.parse::<u32>().ok()
    };
    let (own, other) = (number(name, "ifindex")?, number(name, "iflink")?);
    machine.list("/sys/class/net").into_iter().find(|peer| {
        peer != name
            && number(peer, "ifindex") == Some(other)
            && number(peer, "iflink") == Some(own)
    })
}

/// The offloads by which packets of TCP are lost: joined ones, and of a veth pair those of the other end, where
/// the packets come from. Offloads of an end in another namespace cannot be read, which the finding states.
pub(super) fn offloads(machine: &dyn Machine, name: &str, facts: &InterfaceFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.offloads.as_ref().is_some_and(|on| has_any(on, &JOINING)) {
        findings.push(
            Finding::error(
                "joined packets",
                "the interface puts TCP segments together",
                "packets are longer than what arrived: they cannot be forwarded as they are, and drivers \
                 refuse native XDP",
            )
            .fixed_by(format!("ethtool -K {name} lro off rx-gro-hw off")),
        );
    }
    if facts.driver.as_deref() == Some("veth") {
        findings.extend(peer_offloads(machine, name));
    }
    findings
}

/// The offloads of the other end of a veth pair, as far as they can be read.
fn peer_offloads(machine: &dyn Machine, name: &str) -> Option<Finding> {
    const CHECK: &str = "offloads of a veth";
    let Some(peer) = peer(machine, name) else {
        let found = "its peer is in another namespace, and its offloads were not read";
        let means =
            "while they are on, packets of a TCP at the peer come without checksums, or too long";
        let fix = "ethtool -K PEER tx off tso off gso off  # at the peer";
        return Some(Finding::warning(CHECK, found, means).fixed_by(fix));
    };
    let on = machine.interface(&peer).offloads?;
    let (left, means) = match (has_any(&on, &CHECKSUMS), has_any(&on, &SEGMENTS)) {
        (false, false) => return None,
        (true, false) => ("checksums", "packets of a TCP at the peer come without checksums"),
        (false, true) => ("segmentation", "packets of a TCP at the peer come longer than the MTU"),
        (true, true) => (
            "checksums and segmentation",
            "packets of a TCP at the peer come without checksums, and longer than the MTU",
        ),
    };
    let found = format!("its peer `{peer}` leaves {left} to it");
    let fix = format!("ethtool -K {peer} tx off tso off gso off");
    Some(Finding::warning(CHECK, found, means).fixed_by(fix))
}

fn has_any(on: &[String], names: &[&str]) -> bool {
    names.iter().any(|name| on.iter().any(|on| on == name))
}
