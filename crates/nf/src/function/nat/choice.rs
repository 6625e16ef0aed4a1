//! Which port of a class a flow gets.

use std::ops::RangeInclusive;

use rand::Rng;

/// The first ports that need no privilege (RFC 4787, REQ-3).
pub(super) const UNPRIVILEGED: u16 = 1_024;

/// What a port is chosen for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The inner port.
    pub(super) inner: u16,
    /// The ports that may be given out.
    pub(super) ports: RangeInclusive<u16>,
    /// Whether a privileged inner port may get a privileged one outside of them.
    pub(super) privileged: bool,
}

/// Chooses one of the ports of `class`, ascending, of which `usable` says which can be had; at most
/// `tries` are asked for.
///
/// The inner port itself, if the class has it. Else one that nobody can foresee (RFC 6056): the first that can
/// be had from a random one on. Privileged ports stay privileged if possible, others never become so
/// (RFC 4787, REQ-3), and even ones stay even if possible (REQ-4).
pub(super) fn choose(
    class: &[u16],
    wanted: &Wanted,
    rng: &mut impl Rng,
    mut tries: usize,
    mut usable: impl FnMut(u16) -> bool,
) -> Option<u16> {
    let Wanted { inner, ports, privileged } = wanted;
    let keeps_privilege = *privileged && *inner < UNPRIVILEGED;
    let allowed = ports.contains(inner) || keeps_privilege;
    if allowed && *inner != 0 && class.binary_search(inner).is_ok() && usable(*inner) {
        return Some(*inner);
    }
    let low = within(class, &(1..=UNPRIVILEGED - 1));
    let high = within(class, ports);
    let ranges = [if keeps_privilege { low } else { &[] }, high];
    for same_parity in [true, false] {
        for range in ranges {
            let fits = |port: u16| (port % 2 == inner % 2) == same_parity;
            if range.is_empty() {
                continue;
            }
            let (before, from) = range.split_at(rng.random_range(0..range.len()));
            for port in from.iter().chain(before).copied().filter(|port| fits(*port)) {
                if tries == 0 {
                    return None;
                }
                tries -= 1;
                if usable(port) {
                    return Some(port);
                }
            }
        }
    }
    None
}

/// The part of ascending ports that lies in a range.
fn within<'a>(class: &'a [u16], ports: &RangeInclusive<u16>) -> &'a [u16] {
    let start = class.partition_point(|port| port < ports.start());
    let end = class.partition_point(|port| port <= ports.end());
    class.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashSet;

    fn wanted(inner: u16) -> Wanted {
        Wanted { inner, ports: 1_024..=65_535, privileged: true }
    }

    fn class() -> Vec<u16> {
        (0..512).map(|rank| rank * 128 + rank % 5).collect()
    }

    #[test]
    fn the_port_itself_comes_first_then_range_and_parity_hold() {
        let class = class();
        let mut rng = StdRng::seed_from_u64(1);
        let mut choose = |inner, usable: &dyn Fn(u16) -> bool| {
            choose(&class, &wanted(inner), &mut rng, usize::MAX, usable)
        };
        assert_eq!(choose(1_409, &|_| true), Some(1_409));
        for _ in 0..200 {
            let port = choose(1_409, &|port| port != 1_409).unwrap();
            assert!(port >= 1_024 && port % 2 == 1 && class.contains(&port));
            assert_eq!(choose(80, &|_| true).map(|port| (port < 1_024, port % 2)), Some((true, 0)));
        }
        // When no port of its parity can be had, another will do; no privileged one for others.
        assert_eq!(choose(1_409, &|port| port % 2 == 0).unwrap() % 2, 0);
        assert_eq!(choose(1_409, &|port| port < 1_024), None);
        assert!(choose(80, &|port| port >= 1_024).is_some());
    }

    #[test]
    fn every_port_that_can_be_had_is_had_before_none_is_left() {
        let class = class();
        let mut rng = StdRng::seed_from_u64(2);
        let mut taken = HashSet::new();
        while let Some(port) =
            choose(&class, &wanted(2_000), &mut rng, usize::MAX, |port| !taken.contains(&port))
        {
            taken.insert(port);
        }
        assert_eq!(taken.len(), class.iter().filter(|port| **port >= 1_024).count());
        assert_eq!(choose(&class, &wanted(2_000), &mut rng, 3, |_| false), None);
    }

    #[test]
    fn ports_cannot_be_foreseen() {
        let class = class();
        let mut rng = StdRng::seed_from_u64(3);
        let ports: Vec<_> = (0..2_000)
            .map(|_| choose(&class, &wanted(1_025), &mut rng, usize::MAX, |_| true).unwrap())
            .collect();
        let distinct: HashSet<_> = ports.iter().collect();
        assert!(distinct.len() > 190, "{} of about 202 odd ones", distinct.len());
        // Knowing the last one tells little about the next.
        let near = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 600).count();
        assert!(near < 120, "{near} of 2,000 follow closely on another");
    }
}
