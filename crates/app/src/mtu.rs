//! Follows the MTUs of interfaces: the network layer and the devices of a run go by them as they change.

use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::DeviceId;
use rheostat_control::Config;
use rheostat_ip::Network;
use rheostat_kernel::InterfaceLink;
use rheostat_run::RunView;

/// The least MTU of IPv6 (RFC 8200, section 5).
const LEAST_V6: u32 = 1_280;

/// What goes by the MTUs of a run's interfaces.
pub(crate) struct Mtus {
    view: Arc<RunView>,
    /// None where devices have no addresses.
    network: Option<Arc<Network>>,
    /// By number of the device.
    devices: Vec<MtuDevice>,
    /// Held from the moment that an MTU is known until everything goes by it.
    turn: Mutex<()>,
}

/// A device, as far as its MTU is concerned.
struct MtuDevice {
    name: String,
    /// The interface; none where the device is none of the machine's.
    interface: Option<String>,
    /// The most that its configuration allows.
    configured: Option<u32>,
    has_v6: bool,
}

impl Mtus {
    /// The MTUs of the run that `view` shows.
    pub(crate) fn new(devices: Devices, network: Option<Arc<Network>>, view: Arc<RunView>) -> Mtus {
        Mtus { view, network, devices: devices.0, turn: Mutex::default() }
    }

    /// Lets everything go by another MTU of a device's link, and logs what follows from it.
    pub(crate) fn set(&self, device: DeviceId, mtu: u32) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(said) = self.apply(device, mtu) {
            tracing::info!(target: "links", "{said}");
        }
    }

    /// Goes by the MTUs that the interfaces have now, and logs what follows from those that are others than
    /// before.
    pub(crate) fn catch_up(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for (interface, device) in self.interfaces() {
            let Ok(link) = InterfaceLink::of(&interface) else { continue };
            let known = self.network.as_ref().and_then(|network| network.mtu(device));
            let configured = self.devices[device.index()].configured.unwrap_or(u32::MAX);
            let expected = link.mtu.min(configured).min(u32::from(u16::MAX));
            if known.is_some_and(|known| u32::from(known) != expected) {
                if let Some(said) = self.apply(device, link.mtu) {
                    tracing::info!(target: "links", "{said}");
                }
            } else {
                self.view.set_mtu(device, link.mtu);
            }
        }
    }

    /// Applies another MTU, and returns what to report about it.
    fn apply(&self, device: DeviceId, mtu: u32) -> Option<String> {
        let known = self.devices.get(device.index())?;
        self.view.set_mtu(device, mtu);
        let longest = self.view.longest_packet(device).unwrap_or(u32::MAX);
        let allowed = mtu.min(known.configured.unwrap_or(u32::MAX)).min(longest);
        let before = self.network.as_ref().and_then(|network| network.mtu(device));
        if let Some(network) = &self.network {
            network.set_mtu(device, u16::try_from(allowed).unwrap_or(u16::MAX));
        }
        let name = &known.name;
        let mut said = format!("device `{name}`: the MTU of its interface is {mtu} now");
        if self.network.is_none() {
            said += "; longer packets are dropped (too_big)";
        } else if allowed < mtu {
            let why =
                if allowed == longest { "its buffers carry" } else { "its configuration allows" };
            said += &format!("; {why} {allowed}");
        }
        if longest < mtu {
            said += &format!(
                "; packets longer than {longest} that arrive are lost (oversize): start the run again to receive them"
            );
        }
        let was_on = before.is_none_or(|before| u32::from(before) >= LEAST_V6);
        if known.has_v6 && allowed < LEAST_V6 {
            said += &format!("; IPv6 is off there until it is {LEAST_V6} or more (ipv6_off)");
        } else if known.has_v6 && !was_on {
            said += "; IPv6 is on there again";
        }
        Some(said)
    }

    /// The interfaces, with their devices.
    fn interfaces(&self) -> Vec<(String, DeviceId)> {
        let named = |(number, device): (usize, &MtuDevice)| {
            Some((device.interface.clone()?, DeviceId(number as u8)))
        };
        self.devices.iter().enumerate().filter_map(named).collect()
    }
}

/// The devices of a configuration, as far as their MTUs are concerned.
pub(crate) struct Devices(Vec<MtuDevice>);

impl Devices {
    pub(crate) fn of(config: &Config) -> Devices {
        let devices = config.devices.iter().map(|device| MtuDevice {
            name: device.name.clone(),
            interface: device.facts().interface,
            configured: device.mtu.map(u32::from),
            has_v6: device.addresses.iter().any(|own| own.address.is_ipv6()),
        });
        Devices(devices.collect())
    }
}
