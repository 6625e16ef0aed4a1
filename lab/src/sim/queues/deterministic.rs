//! What is known exactly about M/D/k. Times are in service times.

/// The mean wait of M/D/k, after C. D. Crommelin, "Delay probability formulas when the holding times are constant", P.O.
/// Electrical Engineers' Journal 25 (1932), pages 41-50: with A = k·load arrivals in a service time on average,
/// W = Σ_{i≥1} e^(−iA) [ Σ_{j≥ik} (iA)^j/j! − (k/A) Σ_{j≥ik+1} (iA)^j/j! ].
///
/// Exact to 1e-9: the sum ends where parts are below 1e-12. They fall by e^(-k·(1 - load)²/2) at least; `None` where 30,000 are not
/// enough, from a load of about 0.96 on for one server and 0.985 for eight.
pub fn deterministic_wait(servers: u16, load: f64) -> Option<f64> {
    let offered = f64::from(servers) * load;
    let (mut sum, mut log_factorial, mut known) = (0.0, 0.0, 0);
    for i in 1..30_000_u32 {
        let mean = f64::from(i) * offered;
        let first = u64::from(i) * u64::from(servers);
        // Poisson probabilities from j = i·k on, by logarithms so that they do not overflow.
        log_factorial += (known + 1..=first).map(|j| (j as f64).ln()).sum::<f64>();
        known = first;
        let mut term = (first as f64 * mean.ln() - mean - log_factorial).exp();
        let (mut from_first, mut behind, mut j) = (0.0, 0.0, first);
        while term > 1e-18 || (j as f64) < mean {
            from_first += term;
            if j > first {
                behind += term;
            }
            j += 1;
            term *= mean / j as f64;
        }
        let part = from_first - behind / load;
        sum += part;
        if part < 1e-12 {
            return Some(sum);
        }
    }
    None
}

/// The highest load at which the distribution of M/D/k is computed: its cost grows with 1 ÷ (1 - load)³.
const HIGHEST_LOAD: f64 = 0.95;
/// A distribution is settled when no probability changes by more than this in a service time.
const SETTLED: f64 = 1e-13;

/// The time that all but one in a hundred packets of M/D/k stay within, after G. J. Franx, "A simple solution for the M/D/c
/// waiting time distribution", Operations Research Letters 29 (2001), pages 221-229: with Q_n the probability that at most n packets
/// wait, for n - 1 <= x < n,
/// P(W <= x) = Σ_{j=0}^{nk-1} Q_{nk-j-1} e^(−A(n−x)) (A(n−x))^j/j!.
///
/// Exact to 1e-6; `None` above a load of 0.95.
pub fn deterministic_p99(servers: u16, load: f64) -> Option<f64> {
    if load > HIGHEST_LOAD {
        return None;
    }
    let distribution = WaitDistribution::new(servers, load);
    // M/M/1 at this load is slower.
    let (mut low, mut high) = (0.0, 100_f64.ln() / (1.0 - load));
    if distribution.up_to(0.0) >= 0.99 {
        return Some(1.0);
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if distribution.up_to(middle) < 0.99 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(1.0 + high)
}

/// How long packets of M/D/k wait.
struct WaitDistribution {
    servers: usize,
    offered: f64,
    /// By n, the probability that at most n packets wait; 1 behind the end.
    waiting: Vec<f64>,
}

impl WaitDistribution {
    fn new(servers: u16, load: f64) -> WaitDistribution {
        let (servers, offered) = (usize::from(servers), f64::from(servers) * load);
        let mut sum = 0.0;
        let mut cumulative = stationary(servers, offered).into_iter().map(|p| {
            sum += p;
            sum
        });
        let waiting = cumulative.by_ref().skip(servers).collect();
        WaitDistribution { servers, offered, waiting }
    }

    /// P(W <= `time`).
    fn up_to(&self, time: f64) -> f64 {
        let ends = time.floor() + 1.0;
        let (mean, most) = (self.offered * (ends - time), ends as usize * self.servers - 1);
        let mut arrivals = (-mean).exp();
        (0..=most).fold(0.0, |sum, j| {
            if j > 0 {
                arrivals *= mean / j as f64;
            }
            sum + self.waiting.get(most - j).copied().unwrap_or(1.0) * arrivals
        })
    }
}

/// The probabilities of so many packets in M/D/k. A service time later, those that were served have left, and a Poisson number of
/// others have come: this is repeated until nothing changes.
fn stationary(servers: usize, offered: f64) -> Vec<f64> {
    let load = offered / servers as f64;
    // Beyond, probabilities are below 1e-13: they fall by e^(-2·(1 - load)) or faster.
    let length = servers + (offered + 12.0 * offered.sqrt() + 20.0 + 15.0 / (1.0 - load)) as usize;
    let mut poisson = vec![(-offered).exp()];
    while (poisson.len() as f64) < offered || poisson[poisson.len() - 1] > 1e-17 {
        let last = poisson[poisson.len() - 1];
        poisson.push(last * offered / poisson.len() as f64);
    }
    let mut now = vec![0.0; length];
    now[0] = 1.0;
    loop {
        let mut next = vec![0.0; length];
        let served: f64 = now[..=servers].iter().sum();
        let left = std::iter::once(served).chain(now[servers + 1..].iter().copied());
        for (rest, probability) in left.enumerate() {
            for (cell, arrivals) in next[rest..].iter_mut().zip(&poisson) {
                *cell += probability * arrivals;
            }
        }
        let all: f64 = next.iter().sum();
        next.iter_mut().for_each(|cell| *cell /= all);
        let change = next.iter().zip(&now).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        now = next;
        if change < SETTLED {
            return now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::pollaczek_khinchine;
    use super::*;

    #[test]
    fn the_mean_wait_of_one_server_is_the_closed_form() {
        for load in [0.1, 0.5, 0.8, 0.95] {
            let exact = pollaczek_khinchine(load, 1.0);
            assert!((deterministic_wait(1, load).unwrap() - exact).abs() < 1e-6, "{load}");
        }
        assert_eq!(deterministic_wait(1, 0.99), None);
    }

    #[test]
    fn the_distribution_of_waits_has_the_mean_that_crommelin_gives() {
        for (servers, load) in [(1, 0.5), (2, 0.8), (4, 0.9), (8, 0.7)] {
            let distribution = WaitDistribution::new(servers, load);
            // E[W] = ∫ P(W > x) dx, by trapezoids, whole times apart: the first derivative jumps there.
            let step = 1e-3;
            let tail = |n: u32| 1.0 - distribution.up_to(f64::from(n) * step);
            let sum: f64 = (0..60_000).map(|n| step * (tail(n) + tail(n + 1)) / 2.0).sum();
            let exact = deterministic_wait(servers, load).unwrap();
            assert!((sum - exact).abs() < 1e-4, "M/D/{servers} {load}: {sum} is not {exact}");
        }
    }

    #[test]
    fn who_waits_for_one_server_is_known() {
        // P(W = 0) = 1 - load; P(W <= x) = (1 - load) e^(load·x) below a service time.
        let distribution = WaitDistribution::new(1, 0.6);
        for x in [0.0, 0.3, 0.99] {
            let exact = 0.4 * (0.6_f64 * x).exp();
            assert!((distribution.up_to(x) - exact).abs() < 1e-9, "{x}");
        }
        assert_eq!(deterministic_p99(8, 0.1), Some(1.0));
        assert_eq!(deterministic_p99(4, 0.96), None);
    }
}
