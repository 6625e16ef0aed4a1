use rheostat_control::Registry;
use rheostat_io::{DeviceRegistration, OpenError, Opening, SimNic};
use rheostat_nf::registry::Registration;
use serde_json::Value;

use super::{UnknownKey, explain};
use crate::App;
use rheostat_control::Reference;

fn explained(key: &str) -> Result<String, UnknownKey> {
    explain(&Reference::of(&App::new().registry), key, false)
}

#[test]
fn a_setting_has_type_unit_bounds_default_help_and_example() {
    let quota = explained("function.nat.quota").unwrap();
    let expected = "function.nat.quota: External ports one host may have at a time; any number without it.\n  \
                    type       count\n  \
                    unit       one of k, M, G\n  \
                    bounds     1 to 1M\n  \
                    default    none\n  \
                    example    quota = 1000";
    assert_eq!(quota, expected);
    let port = explained("serve.port").unwrap();
    assert!(port.contains("it must be given") && port.contains("example    port = 80"), "{port}");
    // A key of several tables is explained for each.
    let idle = explained("idle").unwrap();
    assert!(idle.contains("function.monitor.idle") && idle.contains("function.antiddos.idle"));
    let ring = explained("device.exclusive").unwrap();
    assert!(ring.contains("only with  `kind = \"af_packet\"`") && ring.contains("default    true"));
}

#[test]
fn a_section_lists_its_keys() {
    let serve = explained("serve").unwrap();
    for key in ["service", "port", "scheduler", "root", "idle_timeout"] {
        assert!(serve.contains(&format!("\n  {key} ")), "{key} in {serve}");
    }
    let nat = explained("[function.nat]").unwrap();
    assert!(nat.starts_with("[function.nat]: translates addresses and ports"), "{nat}");
    assert!(nat.contains("[timeouts]") && nat.contains("[[forward]]"), "{nat}");
    assert!(nat.contains("external") && nat.contains("(required)"), "{nat}");
}

#[test]
fn a_function_without_settings_says_so() {
    let expected =
        "function.router: routes between devices with addresses\n  settings   none, and no table";
    assert_eq!(explained("function.router").as_deref(), Ok(expected));
    assert_eq!(explained("router").as_deref(), Ok(expected));
    let unknown = explained("function.roter").unwrap_err();
    assert_eq!(unknown.nearest.first().map(String::as_str), Some("function.router"));
}

#[test]
fn an_unknown_key_has_the_nearest_names() {
    let unknown = explained("functoin.nat.qouta").unwrap_err();
    assert_eq!(unknown.nearest.first().map(String::as_str), Some("function.nat.quota"));
    assert!(unknown.to_string().contains("near it are `function.nat.quota`"), "{unknown}");
}

#[test]
fn json_has_the_same_and_the_keys_of_sections() {
    let text = explain(&Reference::of(&App::new().registry), "workers", true).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let workers = &json["settings"][0];
    assert_eq!(workers["key"], "workers");
    let lanes = workers["keys"].as_array().unwrap().iter();
    let lanes = lanes.clone().find(|key| key["key"] == "workers.lanes").unwrap();
    assert_eq!((&lanes["type"], &lanes["bounds"]), (&"whole number".into(), &"1 to 64".into()));
}

/// A structure of an author.
#[derive(Debug, serde::Deserialize)]
struct Quota {
    #[allow(dead_code)]
    ports: u16,
    #[allow(dead_code)]
    strict: Option<bool>,
}

#[test]
fn an_own_kind_of_device_shows_its_keys() {
    let open =
        |_: &str, _: &Opening<'_>| -> Result<SimNic, OpenError> { unreachable!("not opened") };
    let registry = Registry::new()
        .with_device(DeviceRegistration::new("card", open))
        .with_device(DeviceRegistration::interface("wire", open));
    let reference = Reference::of(&registry);
    let argument = explain(&reference, "device.argument", false).unwrap();
    let expected = "device.argument: The text that the device is opened with.\n  \
                    only with  `kind = \"card\"`\n  type       text\n  default    none\n  \
                    example    argument = \"text\"";
    assert_eq!(argument, expected);
    let losses = explain(&reference, "device.on_loss", false).unwrap();
    let own = losses.split("\n\n").find(|part| part.contains("`kind = \"wire\"`")).unwrap();
    assert!(own.contains("bounds     exit, wait") && own.contains("default    exit"), "{own}");
}

#[test]
fn own_functions_show_the_fields_of_their_structures() {
    let keys = <Quota as rheostat_settings::Section>::keys;
    let own = Registration { name: "quota", keys, ..rheostat_functions::ALL[0] };
    let reference = Reference::of(&Registry::new().with_functions(&[own]));
    let ports = explain(&reference, "function.quota.ports", false).unwrap();
    assert!(ports.contains("A field of the author's own structure."), "{ports}");
    assert!(ports.contains("whole number between 0 and 65535"), "{ports}");
    assert!(explain(&reference, "function.quota.strict", false).unwrap().contains("true or false"));
}
