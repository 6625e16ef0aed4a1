//! The link address of a service at the end of a tap interface's cable.

use std::hash::{DefaultHasher, Hash, Hasher};

use rheostat_control::config::DeviceConfig;

/// The link address of a device at the end of a cable whose other end is an interface of the kernel, which has an address of its own.
/// The same from run to run, and another for other addresses.
pub(super) fn link_address(device: &DeviceConfig) -> [u8; 6] {
    let mut hasher = DefaultHasher::new();
    device.name.hash(&mut hasher);
    device.addresses.iter().for_each(|own| (own.address, own.length).hash(&mut hasher));
    let [a, b, c, d, e, ..] = hasher.finish().to_be_bytes();
    // Administered locally (IEEE 802).
    [2, a, b, c, d, e]
}

#[cfg(test)]
mod tests {
    use rheostat_control::Config;
    use rheostat_kernel::InterfaceLink;

    use super::super::plan;
    use crate::app::App;

    #[test]
    fn the_end_of_a_tap_cable_has_a_link_address_of_its_own() {
        let kernels = [2, 0, 0, 0, 0, 9];
        let mac = |kind: &str, more: &str| {
            let text = format!(
                "[[device]]\nname = \"lan\"\nkind = \"{kind}\"\ninterface = \"lan0\"\n{more}\n\
                 [serve]\nservice = \"echo\"\nport = 7\n"
            );
            let (config, _) = Config::parse(&text, "file", &App::new().registry).unwrap();
            let link = InterfaceLink { mac: Some(kernels), mtu: 1_500 };
            let (network, _) = plan(&config, 0, &move |_| Ok(Some(link))).unwrap().unwrap();
            network.interfaces()[0].mac
        };
        let address = "address = \"10.0.0.1/24\"";
        let tap = mac("tap", address);
        assert!(tap[0] == 2 && tap != kernels, "{tap:?}");
        assert_eq!(tap, mac("tap", address), "the same from run to run");
        assert_ne!(tap, mac("tap", "address = \"10.0.0.2/24\""));
        let given = mac("tap", &format!("{address}\nmac = \"02:00:00:00:00:07\""));
        assert_eq!(given, [2, 0, 0, 0, 0, 7]);
        assert_eq!(mac("af_packet", address), kernels);
    }
}
