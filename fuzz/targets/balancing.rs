//! Any packets through the load balancer in its three modes, and through the policer, on two lanes: what
//! every chain owes, and no packet of the policer's that is longer than what came in.
#![no_main]

mod lanes;

use std::net::IpAddr;
use std::sync::OnceLock;

use lanes::{Made, made};
use libfuzzer_sys::fuzz_target;
use rheostat_base::DeviceId;
use rheostat_nf::Stage;
use rheostat_functions::lb::{
    BackendConfig, Health, LbConfig, Mode, OnDown, ServiceConfig, Sides, TunnelConfig,
};
use rheostat_functions::policer::{
    Actions, Burst, Classes, Count, Meter, PolicerConfig, Rate, Subject,
};
use rheostat_functions::{Lb, Policer};
use rheostat_state::StateLayout;
use rheostat_steer::Whose;

/// Services on addresses that short inputs are likely to name, with a path so narrow that tunnels meet
/// its end.
fn balancer() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let service = |vip: &str, protocol: u8, mode: Mode| ServiceConfig {
            name: format!("{vip} {protocol}"),
            vip: address(vip),
            protocol,
            ports: Vec::new(),
            mode,
            on_down: OnDown::Reset,
            quic: None,
            check: None,
            backends: (1..4_u16)
                .map(|number| BackendConfig {
                    address: match address(vip) {
                        IpAddr::V4(_) => IpAddr::from([10, 1, 0, number as u8]),
                        IpAddr::V6(_) => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, number]),
                    },
                    port: (mode == Mode::Nat).then_some(8_080),
                    weight: number.into(),
                    health: if number == 3 { Health::Down } else { Health::Up },
                    server_id: None,
                })
                .collect(),
        };
        let services = vec![
            service("10.0.0.1", 6, Mode::DsrIpip),
            service("10.0.0.1", 17, Mode::DsrGue),
            service("10.0.0.2", 6, Mode::Nat),
            service("10.0.0.2", 17, Mode::Nat),
            service("fd00::1", 6, Mode::DsrIpip),
            service("fd00::1", 17, Mode::DsrGue),
            service("fd00::2", 17, Mode::Nat),
        ];
        let sources = ["172.16.0.0/16", "fd00:7::/64"].map(|prefix| prefix.parse().unwrap());
        let config = LbConfig {
            seed: 5,
            table_size: 307,
            services,
            tunnel: TunnelConfig {
                mtu: 1_280,
                sources: sources.to_vec(),
                ..TunnelConfig::default()
            },
            sides: Sides { inside: DeviceId(0), outside: DeviceId(0) },
            ..LbConfig::default()
        };
        let mut layout = StateLayout::new();
        made(Stage::new(Lb::new(config), &mut layout).unwrap(), layout)
    })
}

fn policer() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let (rate, burst) = (Rate::new(8_000).unwrap(), Burst::new(600).unwrap());
        let meter = Meter::two_rate(rate, burst, rate, burst).unwrap();
        let config = PolicerConfig {
            subject: Subject { whose: Whose::Source, v4: 24, v6: 64 },
            from: None,
            count: Count::Ip,
            classes: Classes::new(Some(meter)),
            colours: None,
            actions: Actions::default(),
            pass_when_full: false,
            pass_non_ip: true,
        };
        let mut layout = StateLayout::new();
        made(Stage::new(Policer::new(config), &mut layout).unwrap(), layout)
    })
}

fuzz_target!(|input: (bool, Vec<(u16, Vec<u8>)>)| {
    let (balances, frames) = input;
    if !lanes::is_small(&frames) {
        return;
    }
    if balances {
        let Made { chain, steering } = balancer();
        lanes::run(chain, steering, &frames);
        return;
    }
    let Made { chain, steering } = policer();
    let (left, counted) = lanes::run(chain, steering, &frames);
    assert_eq!(counted.originated, 0);
    for packet in left {
        assert!(frames.iter().any(|(_, frame)| frame.len() == packet.bytes.len()));
    }
});
