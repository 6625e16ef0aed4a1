//! A page that shows what traffic is like.

use rheostat_plot::{Axis, BarChart, Line, LineChart, Page, Unit};
use rheostat_traffic::statistics::{Curve, Histogram, Series, Summary};

/// The page for traffic that `command` made or read.
pub(super) fn page(title: &str, command: &str, summary: &Summary) -> String {
    let mut page = Page::new(title);
    page.code(command);
    page.code(&summary.to_string());
    let Summary { flow_packets, flow_packets_share, flow_bytes_share, flow_seconds, .. } = summary;
    let Series {
        flow_packets: packets,
        flow_bytes: bytes,
        flow_seconds: seconds,
        packet_bytes,
        over_time,
    } = &summary.series;
    let share = || Axis::linear("share of the flows up to this", Unit::Share).from(0.0);

    let says = format!(
        "{} of the flows are a single packet, 95 % have at most {}; the largest hundredth has {} of all packets.",
        Unit::Share.show(summary.flows_of_one_packet),
        Unit::Count.show(flow_packets.p95),
        Unit::Share.show(flow_packets_share.top_1_percent),
    );
    let chart = LineChart::new(Axis::log("packets of a flow", Unit::Count), share())
        .with(line("flows", packets));
    page.figure("Flow sizes in packets", &says, &chart);

    let says = format!(
        "The largest hundredth of the flows has {} of all bytes, the largest tenth {}.",
        Unit::Share.show(flow_bytes_share.top_1_percent),
        Unit::Share.show(flow_bytes_share.top_10_percent),
    );
    let chart = LineChart::new(Axis::log("bytes of a flow", Unit::Bytes), share())
        .with(line("flows", bytes));
    page.figure("Flow sizes in bytes", &says, &chart);

    let says = format!(
        "From its first packet to its last, half of the flows take up to {}, 95 % up to {}.",
        Unit::Seconds.show(flow_seconds.p50),
        Unit::Seconds.show(flow_seconds.p95),
    );
    let chart = LineChart::new(Axis::log("duration of a flow", Unit::Seconds), share())
        .with(line("flows", seconds));
    page.figure("Flow durations", &says, &chart);

    let says = format!(
        "{} of the packets are below 74 bytes, {} of full size.",
        Unit::Share.show(summary.packets_below_74_bytes),
        Unit::Share.show(summary.packets_of_full_size),
    );
    page.figure("Packet sizes", &says, &sizes(packet_bytes));

    let at = |index: usize| (index as f64 + 0.5) * over_time.interval;
    let burst = summary.burstiness.first().map_or(String::new(), |fine| {
        format!(
            " Over {} the variance of counts is {:.1} times their mean; chance alone makes it 1.",
            Unit::Seconds.show(fine.window),
            fine.dispersion
        )
    });
    let says = format!(
        "{} on average.{burst}",
        Unit::PacketRate.show(summary.packets as f64 / summary.seconds.max(1e-9))
    );
    let rates = over_time.packets_per_second.iter().enumerate().map(|(i, rate)| (at(i), *rate));
    let time = || Axis::linear("time", Unit::Seconds).from(0.0);
    let chart =
        LineChart::new(time(), Axis::linear("packets per second", Unit::PacketRate).from(0.0))
            .with(Line::new("packets", rates).area());
    page.figure("Rate over time", &says, &chart);

    let says = format!(
        "At most {} flows lie between their first packet and their last at once.",
        summary.flows_at_once
    );
    let flows = over_time.flows.iter().enumerate().map(|(i, flows)| (at(i), *flows as f64));
    let chart = LineChart::new(time(), Axis::linear("flows at once", Unit::Count).from(0.0))
        .with(Line::new("flows at once", flows).area());
    page.figure("Flows over time", &says, &chart);

    let says =
        format!("{} flows begin per second.", Unit::Count.show(summary.flows_new_per_second));
    let new = over_time.new_flows_per_second.iter().enumerate().map(|(i, new)| (at(i), *new));
    let chart = LineChart::new(time(), Axis::linear("new flows per second", Unit::Count).from(0.0))
        .with(Line::new("new flows", new).area());
    page.figure("New flows over time", &says, &chart);
    page.finish()
}

/// A distribution; values of nothing have no place on a logarithmic axis.
fn line(name: &str, curve: &Curve) -> Line {
    let points = curve.value.iter().copied().zip(curve.share.iter().copied());
    Line::new(name, points.filter(|(value, _)| *value > 0.0)).step()
}

fn sizes(histogram: &Histogram) -> BarChart {
    let all: u64 = histogram.packets.iter().sum();
    let name = |bar: usize| (bar as u64 * histogram.width).to_string();
    let bars = histogram.packets.iter().enumerate();
    let bars = bars.map(|(bar, packets)| (name(bar), *packets as f64 / all.max(1) as f64));
    BarChart::histogram("bytes, from", Axis::linear("share of the packets", Unit::Share), bars)
}
