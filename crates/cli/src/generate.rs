//! `rheo gen`: writes generated traffic to a capture, or describes it.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::ProgressBar;
use rheostat_base::unit::{parse_count, parse_duration, parse_packet_rate};
use rheostat_io::CaptureWriter;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};
use rheostat_traffic::{Mix, MixConfig, Source, Statistics};

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo gen --output mix.pcap --packets 1M
  rheo gen --output long.pcapng --rate 2Mpps --duration 10s --flows 1M --seed 7
  rheo gen --packets 1M --describe")]
pub(crate) struct Args {
    /// The capture to write (.pcap or .pcapng).
    #[arg(long, value_name = "FILE", required_unless_present = "describe")]
    pub(crate) output: Option<PathBuf>,
    /// How many packets.
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value = "100k")]
    pub(crate) packets: u64,
    /// For how long, on the clock of the traffic.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "packets")]
    pub(crate) duration: Option<Duration>,
    /// Packets per second.
    #[arg(long, value_name = "RATE", value_parser = parse_packet_rate, default_value = "1Mpps")]
    pub(crate) rate: u64,
    /// Flows under way at any time.
    #[arg(long, value_name = "COUNT", value_parser = parse_count, default_value = "64k")]
    pub(crate) flows: u64,
    /// The share of flows over IPv6.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub ipv6_share: f64,
    /// The exponent of the tail of flow sizes.
    #[arg(long, value_name = "EXPONENT", default_value_t = 1.1)]
    pub(crate) zipf: f64,
    /// The seed of all random choices.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Say what the traffic is like.
    #[arg(long)]
    pub(crate) describe: bool,
    /// Say it as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Generates, writes and describes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut mix = Mix::new(MixConfig {
        flows: u32::try_from(args.flows).unwrap_or(u32::MAX),
        packets_per_second: args.rate,
        ipv6_share: args.ipv6_share,
        zipf: args.zipf,
        seed: args.seed,
        packets: args.duration.is_none().then_some(args.packets),
        duration: args.duration,
        ..MixConfig::default()
    })?;
    let mut pool = PoolCache::new(Mempool::new(&MempoolConfig {
        buffers: 1_024,
        ..MempoolConfig::default()
    })?);
    let writer = args.output.as_deref().map(CaptureWriter::create).transpose()?;
    let mut sink = writer.as_ref().map(CaptureWriter::sink);
    let bar =
        if io::stderr().is_terminal() { ProgressBar::new(1_000) } else { ProgressBar::hidden() };
    let mut statistics = args.describe.then(Statistics::default);
    let mut frame = Vec::new();
    let mut count = 0_u64;
    while let Some(arrival) = mix.next(&mut frame) {
        if let Some(statistics) = &mut statistics {
            statistics.count(arrival.time, &frame, arrival.wire_len, arrival.link);
        }
        if let Some(sink) = &mut sink {
            let mut packet = pool.alloc_from(&frame).expect("the mix makes frames of one buffer");
            packet.meta.timestamp = arrival.time;
            packet.meta.set_link(arrival.link);
            sink.take(std::slice::from_ref(&packet));
            pool.free(packet);
        }
        count += 1;
        if count.is_multiple_of(65_536) {
            bar.set_position((mix.progress().unwrap_or(0.0) * 1_000.0) as u64);
        }
    }
    bar.finish_and_clear();
    if let Some(writer) = &writer {
        writer.close()?;
    }
    let summary = statistics.map(|statistics| statistics.summary());
    match (&summary, args.json) {
        (Some(summary), true) => {
            out!("{}", serde_json::to_string(summary).map_err(io::Error::from)?)
        }
        (Some(summary), false) => out!("{summary}"),
        (None, true) => {
            out!("{}", serde_json::json!({ "packets": count, "flows": mix.flows_started() }))
        }
        (None, false) => out!("{count} packets of {} flows", mix.flows_started()),
    }
    Ok(ExitCode::SUCCESS)
}
