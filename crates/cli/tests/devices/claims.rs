//! An interface belongs to one device of one process.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::path::Path;
use std::process::Command;

use rheostat_testkit::namespace::{isolated, shell};

use super::instance::Instance;
use super::place::{Place, pairs};
use super::{RHEO, text};

#[test]
fn a_second_process_on_an_interface_is_refused() {
    isolated(module_path!(), "a_second_process_on_an_interface_is_refused", || {
        pairs();
        let place = Place::new();
        place.config("af_packet", ["va", "vc"], "");
        let mut first = Instance::start(place);
        let run = |config: &Path| {
            let mut rheo = Command::new(RHEO);
            rheo.arg("run").arg(config).args(["--json", "--duration", "200ms"]).output().unwrap()
        };
        let second = run(&first.place.path("config.toml"));
        assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
        assert!(text(&second.stderr).contains("`va` is in use by another process"));
        // The claim ends with its process, however that ends.
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        let third = run(&first.place.path("config.toml"));
        assert_eq!(third.status.code(), Some(0), "{}", text(&third.stderr));
    });
}

#[test]
fn one_interface_for_two_devices_is_refused_under_any_name() {
    isolated(module_path!(), "one_interface_for_two_devices_is_refused_under_any_name", || {
        pairs();
        shell("ip link property add dev va altname uplink");
        let place = Place::new();
        for (interfaces, said) in [
            (["va", "va"], "both have interface `va`"),
            (["va", "uplink"], "`uplink` is another name of `va`"),
        ] {
            for kind in ["af_packet", "af_xdp"] {
                let config = place.config(kind, interfaces, "");
                for command in ["check", "run"] {
                    let output = Command::new(RHEO).arg(command).arg(&config).output().unwrap();
                    let errors = text(&output.stderr);
                    assert_eq!(output.status.code(), Some(2), "{command} {interfaces:?}: {errors}");
                    assert!(errors.contains(said), "{command} {interfaces:?}: {errors}");
                }
            }
        }
    });
}
