//! What is known exactly about M/G/1 and M/M/k. Times are in mean service times.

/// The mean wait of M/G/1 (Pollaczek-Khinchine), where `second_moment` is E\[S²\] ÷ E\[S\]².
pub fn pollaczek_khinchine(load: f64, second_moment: f64) -> f64 {
    load * second_moment / (2.0 * (1.0 - load))
}

/// The share of the packets that wait in M/M/k (Erlang C).
pub fn erlang_c(servers: u16, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    // Erlang B by its recursion, and C from B.
    let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
    blocked / (1.0 - load * (1.0 - blocked))
}

/// The mean wait of M/M/k.
pub fn markov_wait(servers: u16, load: f64) -> f64 {
    erlang_c(servers, load) / (f64::from(servers) * (1.0 - load))
}

/// The share of the packets of M/M/k that stay longer than `time`: a wait, exponential at the rate k·(1 - load) for those that
/// wait, and a service behind it.
fn markov_stays_longer(servers: u16, load: f64, time: f64) -> f64 {
    let (waits, rate) = (erlang_c(servers, load), f64::from(servers) * (1.0 - load));
    let service = (-time).exp();
    let both = if (rate - 1.0).abs() < 1e-6 {
        (1.0 + time) * service
    } else {
        (rate * service - (-rate * time).exp()) / (rate - 1.0)
    };
    (1.0 - waits) * service + waits * both
}

/// The time that all but one in a hundred packets of M/M/k stay within.
pub fn markov_p99(servers: u16, load: f64) -> f64 {
    // M/M/1 at this load is slower than k servers of this speed.
    let (mut low, mut high) = (0.0, 100_f64.ln() / (1.0 - load));
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if markov_stays_longer(servers, load, middle) > 0.01 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(is: f64, exact: f64) {
        assert!((is - exact).abs() < 1e-6 * exact.max(1.0), "{is} is not {exact}");
    }

    #[test]
    fn one_server_is_the_closed_form() {
        for load in [0.1, 0.5, 0.8, 0.95] {
            close(markov_wait(1, load), pollaczek_khinchine(load, 2.0));
            close(markov_p99(1, load), 100_f64.ln() / (1.0 - load));
        }
    }

    #[test]
    fn two_servers_are_the_closed_form() {
        // M/M/2: C = 2·load² ÷ (1 + load), W = load² ÷ (1 - load²).
        for load in [0.1, 0.5, 0.9] {
            close(erlang_c(2, load), 2.0 * load * load / (1.0 + load));
            close(markov_wait(2, load), load * load / (1.0 - load * load));
        }
    }

    #[test]
    fn the_tail_is_continuous_where_both_rates_are_equal() {
        // k·(1 - load) = 1 for four servers at 0.75.
        let at = |load| markov_p99(4, load);
        assert!(at(0.75 - 1e-5) < at(0.75) && at(0.75) < at(0.75 + 1e-5));
        assert!(at(0.75 + 1e-5) - at(0.75 - 1e-5) < 1e-3);
    }

    #[test]
    fn mean_of_the_tail_is_wait_and_service() {
        // E[T] = ∫ P(T > t) dt, by trapezoids.
        for (servers, load) in [(1, 0.5), (4, 0.75), (4, 0.9), (8, 0.6)] {
            let step = 0.01;
            let tail = |n: u32| markov_stays_longer(servers, load, f64::from(n) * step);
            let sum: f64 = (0..60_000).map(|n| step * (tail(n) + tail(n + 1)) / 2.0).sum();
            assert!(
                (sum - 1.0 - markov_wait(servers, load)).abs() < 1e-4,
                "{servers} {load} {sum}"
            );
        }
    }
}
