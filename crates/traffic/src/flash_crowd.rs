//! A surge of visitors to one service.
//!
//! RSS++ (Barbette, Katsikas, Maguire, Kostić, CoNEXT '19, section 5.3) wants surges absorbed, and cites that
//! services receive hundreds of times their usual load. Here the load is the mix until a surge begins; then it
//! is `factor` times as much, and all that is added are new connections of visitors to one service.

mod config;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rheostat_base::Time;
use rheostat_packet::LinkType;

pub use config::FlashCrowdConfig;

use crate::SourceError;
use crate::frame::{self, FrameEndpoints};
use crate::merged::Merged;
use crate::poisson::Poisson;
use crate::usual::NUMBERS;
use crate::visit::{OngoingVisit, Visits};
use rheostat_io::{Arrival, Source};

/// The mix, and now and then a crowd.
pub struct FlashCrowd(Merged<Box<dyn Source>>);

impl FlashCrowd {
    /// A flash crowd as `config` describes it; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense.
    pub fn new(config: &FlashCrowdConfig) -> Result<FlashCrowd, SourceError> {
        config.check()?;
        let usual = config.usual_rate();
        let mix = config.usual.mix(usual, config.seed)?;
        let mut rng = SmallRng::seed_from_u64(!config.seed);
        let mut arrivals = Poisson::new(usual * (config.factor - 1.0));
        arrivals.pass(&mut rng);
        let crowd = Crowd {
            rng,
            arrivals,
            visits: Visits::new(config.visitors),
            came: 0,
            service: config.service,
            at: config.at,
            lasting: config.lasting,
            every: config.every,
        };
        Ok(FlashCrowd(Merged::new([Box::new(mix) as Box<dyn Source>, Box::new(crowd)])))
    }
}

impl Source for FlashCrowd {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0.next(frame)
    }
}

/// The crowd, on a clock that stands still between surges.
struct Crowd {
    rng: SmallRng,
    arrivals: Poisson,
    visits: Visits,
    came: u64,
    service: SocketAddr,
    at: Duration,
    lasting: Duration,
    every: Option<Duration>,
}

impl Crowd {
    /// When what the crowd sends at `time` of its clock arrives; `None` when the last surge is over.
    fn place(&self, time: Time) -> Option<Time> {
        let (ns, lasting) = (time.as_nanos(), self.lasting.as_nanos() as u64);
        let (surge, within) = (ns / lasting, ns % lasting);
        let pause = match self.every {
            Some(every) => every.as_nanos() as u64,
            None if surge == 0 => 0,
            None => return None,
        };
        Some(Time::ZERO + self.at + Duration::from_nanos(surge.saturating_mul(pause) + within))
    }
}

impl Source for Crowd {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let time = self.place(self.arrivals.now())?;
        let (came, service) = (&mut self.came, self.service);
        let packet = self.visits.next_packet(&mut self.rng, |_| {
            let number = NUMBERS + *came;
            *came += 1;
            let visitor = FrameEndpoints::of_flow(number, service.is_ipv6(), 0).source();
            OngoingVisit::new(visitor, service, true)
        });
        frame::write(&packet, frame);
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}
