//! What was found, for people.

use std::fmt;

use super::{Quantiles, Summary, TopShares};

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_packets(f)?;
        self.write_flows(f)?;
        for (place, figures) in self.burstiness.iter().enumerate() {
            let title = if place == 0 { "burstiness" } else { "" };
            write!(
                f,
                "\n{title:<12} in {} ms: dispersion {:.2}, fullest {:.2} times the mean",
                figures.window * 1e3,
                figures.dispersion,
                figures.peak_to_mean
            )?;
        }
        if self.stamps_backward + self.gaps_cut > 0 {
            write!(
                f,
                "\nstamps       {} lay before the one before, {} gaps were cut",
                self.stamps_backward, self.gaps_cut
            )?;
        }
        Ok(())
    }
}

impl Summary {
    fn write_packets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |count: u64| if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 };
        writeln!(
            f,
            "packets      {} in {:.3} s ({} per second), {} bytes ({} Mbit/s)",
            self.packets,
            self.seconds,
            Rate(rate(self.packets)),
            self.bytes,
            Rate(rate(self.bytes) * 8.0 / 1e6)
        )?;
        writeln!(f, "             bytes: {}", Figures(&self.packet_bytes))?;
        writeln!(
            f,
            "             {} below 74 bytes, {} of full size",
            Percent(self.packets_below_74_bytes),
            Percent(self.packets_of_full_size)
        )?;
        writeln!(
            f,
            "             {} TCP, {} UDP, {} ICMP; {} IPv6; {} unparsed",
            Percent(self.tcp),
            Percent(self.udp),
            Percent(self.icmp),
            Percent(self.ipv6),
            self.unparsed
        )
    }

    fn write_flows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "flows        {}, at most {} at once, {} IPv6",
            self.flows,
            self.flows_at_once,
            Percent(self.flows_ipv6)
        )?;
        writeln!(
            f,
            "             {} new per second; active in a second {}, at most {}, {} of them new",
            Rate(self.flows_new_per_second),
            Rate(self.flows_active_per_second),
            self.flows_active_most,
            Percent(self.flows_new_among_active)
        )?;
        writeln!(
            f,
            "             {} of one packet, {} below 10",
            Percent(self.flows_of_one_packet),
            Percent(self.flows_below_10_packets)
        )?;
        let sizes = [
            ("packets", &self.flow_packets, &self.flow_packets_share),
            ("bytes", &self.flow_bytes, &self.flow_bytes_share),
        ];
        for (what, quantiles, TopShares { top_1_percent, top_10_percent }) in sizes {
            writeln!(f, "             {what}: {}", Figures(quantiles))?;
            writeln!(
                f,
                "             largest 1 % have {} of the {what}, largest 10 % {}",
                Percent(*top_1_percent),
                Percent(*top_10_percent)
            )?;
        }
        write!(f, "             seconds: {}", Figures(&self.flow_seconds))
    }
}

/// Whole where that is exact enough.
struct Rate(f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0 < 100.0 { 3 } else { 0 };
        write!(f, "{:.digits$}", self.0)
    }
}

struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.0 * 100.0)
    }
}

struct Figures<'a>(&'a Quantiles);

impl fmt::Display for Figures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { mean, p50, p90, p95, p99, most } = self.0;
        // More digits of what is small.
        let digits = if *most < 100.0 && mean.fract() != 0.0 { 3 } else { 1 };
        write!(
            f,
            "mean {mean:.digits$}, 50 % up to {}, 90 % {}, 95 % {}, 99 % {}, all {}",
            Short(*p50),
            Short(*p90),
            Short(*p95),
            Short(*p99),
            Short(*most)
        )
    }
}

/// A number without zeros behind the point.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 1e4).round() / 1e4;
        write!(f, "{rounded}")
    }
}
