use std::collections::HashSet;

use super::*;

#[test]
fn a_scan_tries_every_port_of_every_host_once_and_then_from_another_port() {
    let target = IpAddr::from([10, 7, 0, 1]);
    let tried: HashSet<_> = (0..8 * 65_536).map(|number| scanned(target, number)).collect();
    assert_eq!(tried.len(), 8 * 65_536);
    assert_eq!(scanned(target, 0).0, scanned(target, 8 * 65_536).0);
    assert_ne!(scanned(target, 0).1, scanned(target, 8 * 65_536).1);
    let all_inside = tried.iter().all(|((host, _), _)| match host {
        IpAddr::V4(v4) => v4.octets()[..2] == [10, 7],
        IpAddr::V6(_) => false,
    });
    assert!(all_inside);
}

#[test]
fn attackers_are_elsewhere() {
    let mut rng = SmallRng::seed_from_u64(1);
    for _ in 0..100_000 {
        let IpAddr::V4(v4) = outsider::draw(false, &mut rng) else { panic!("asked for IPv4") };
        let [a, b, ..] = v4.octets();
        assert!(!matches!((a, b), (0 | 10 | 127 | 224.., _) | (192, 168) | (172, 16..32)), "{v4}");
        let IpAddr::V6(v6) = outsider::draw(true, &mut rng) else { panic!("asked for IPv6") };
        assert_eq!(v6.octets()[0] >> 5, 1, "{v6}");
    }
}

#[test]
fn an_attack_is_a_part_of_the_traffic() {
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        let config = AttackConfig { share, ..AttackConfig::default() };
        let error = Attack::new(&config).err().unwrap();
        assert!(matches!(error, SourceError::Share { what: "share", .. }), "{error}");
    }
}
