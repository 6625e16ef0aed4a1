//! Interfaces by which this machine is reached.
//!
//! Timed: processes, devices.

use std::process::{Command, Output};

use rheostat_testkit::namespace::{isolated, shell};

use super::place::{Place, pairs};
use super::{RHEO, text};

fn rheo(arguments: &[&str], place: &Place) -> Output {
    let mut rheo = Command::new(RHEO);
    rheo.args(arguments).arg(place.path("config.toml"));
    rheo.env("SSH_CONNECTION", "192.0.2.7 50000 198.51.100.1 22").output().unwrap()
}

#[test]
fn the_interface_of_the_default_route_or_of_ssh_is_taken_by_force_alone() {
    isolated(
        module_path!(),
        "the_interface_of_the_default_route_or_of_ssh_is_taken_by_force_alone",
        || {
            pairs();
            let run = ["run", "--json", "--duration", "100ms"];
            let by_force = ["run", "--json", "--duration", "100ms", "--force"];
            for (kind, prepare, said) in [
                (
                    "af_packet",
                    "ip route add default dev vc",
                    "interface of this machine's default route",
                ),
                (
                    "af_xdp",
                    "ip address add 198.51.100.1/24 dev va",
                    "your ssh connection from 192.0.2.7",
                ),
            ] {
                let place = Place::new();
                place.config(kind, ["va", "vc"], "");
                let before = rheo(&run, &place);
                assert_eq!(before.status.code(), Some(0), "{}", text(&before.stderr));
                shell(prepare);
                let refused = rheo(&run, &place);
                let errors = text(&refused.stderr).replace("\n  ", " ");
                assert_eq!(refused.status.code(), Some(2), "{errors}");
                assert!(errors.contains(said) && errors.contains("--force"), "{errors}");
                let checked = rheo(&["check"], &place);
                assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
                assert!(text(&checked.stderr).contains(said), "{}", text(&checked.stderr));
                let forced = rheo(&by_force, &place);
                assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
                shell("ip route flush table main; ip address flush dev va");
            }
        },
    );
}
