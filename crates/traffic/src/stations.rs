//! Traffic as it arrives at one port of a bridge.

use std::net::IpAddr;

use rheostat_packet::wire::{EthernetFrameMut, MacAddress};
use rheostat_packet::{Headers, tuple};

use rheostat_io::{Arrival, Source};

/// Those frames of a source that come from the stations behind one port: each address is a station's, each station
/// has a link address, and is behind one of the ports. Over all ports of a bridge, with the same source for each, this
/// is the whole source.
#[derive(Debug)]
pub struct Stations<S> {
    source: S,
    stations: u32,
    port: u32,
    ports: u32,
}

impl<S: Source> Stations<S> {
    /// What of `source` arrives at port `port` of `ports`, from its part of `stations` stations.
    ///
    /// # Panics
    /// Without stations, or without ports.
    pub fn new(source: S, stations: u32, port: u32, ports: u32) -> Stations<S> {
        assert!(stations > 0 && ports > 0, "at least one station on at least one port");
        Stations { source, stations, port, ports }
    }

    fn station(&self, address: IpAddr) -> u32 {
        let low = match address {
            IpAddr::V4(v4) => v4.to_bits(),
            IpAddr::V6(v6) => v6.to_bits() as u32,
        };
        // Fibonacci hashing: addresses that follow each other are stations anywhere.
        ((u64::from(low.wrapping_mul(0x9e37_79b1)) * u64::from(self.stations)) >> 32) as u32
    }
}

/// The link address of a station, administered locally.
fn mac(station: u32) -> MacAddress {
    let [a, b, c, d] = station.to_be_bytes();
    [0x02, 0, a, b, c, d]
}

impl<S: Source> Source for Stations<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        loop {
            let arrival = self.source.next(frame)?;
            let headers = Headers::parse_bytes(frame, arrival.wire_len as usize, arrival.link);
            let ends = headers.ok().and_then(|headers| tuple::addresses(frame, &headers));
            let Some(ends) = ends else { continue };
            let (from, to) = (self.station(ends.first()), self.station(ends.second()));
            if from % self.ports != self.port {
                continue;
            }
            let Ok(mut link) = EthernetFrameMut::new(frame) else { continue };
            link.set_source(mac(from));
            link.set_destination(mac(to));
            return Some(arrival);
        }
    }

    fn is_fed(&self) -> bool {
        self.source.is_fed()
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;
    use crate::{Mix, MixConfig};

    fn frames(mut source: impl Source) -> Vec<(u64, Vec<u8>)> {
        let mut frame = Vec::new();
        std::iter::from_fn(|| {
            let arrival = source.next(&mut frame)?;
            Some((arrival.time.as_nanos(), frame.clone()))
        })
        .collect()
    }

    #[test]
    fn the_ports_together_get_the_whole_source() {
        let mix = || {
            let config = MixConfig { flows: 100, packets: Some(3_000), ..MixConfig::default() };
            Mix::new(config).expect("a mix")
        };
        let mut all = Vec::new();
        let mut ports: HashMap<Vec<u8>, HashSet<u32>> = HashMap::new();
        for port in 0..3 {
            let part = frames(Stations::new(mix(), 50, port, 3));
            assert!(part.len() > 300, "{} frames on port {port}", part.len());
            for (_, frame) in &part {
                assert_eq!(frame[0] & 1, 0, "no group address");
                ports.entry(frame[6..12].to_vec()).or_default().insert(port);
            }
            all.extend(part);
        }
        assert!(ports.len() > 40, "{} stations", ports.len());
        assert!(ports.values().all(|ports| ports.len() == 1), "a station has one port");
        all.sort_unstable();
        let above_link = |frames: &[(u64, Vec<u8>)]| -> Vec<_> {
            frames.iter().map(|(time, frame)| (*time, frame[12..].to_vec())).collect()
        };
        let mut whole = above_link(&frames(mix()));
        let mut parts = above_link(&all);
        whole.sort_unstable();
        parts.sort_unstable();
        assert!(whole == parts, "{} of {} frames", parts.len(), whole.len());
    }
}
