//! F20: cost of QoS on the wire (Fernandez et al. 2020): large messages over
//! loopback with five QoS cases and packet capture.
//!
//! Beyond the paper, latency is also measured from the publish call to the
//! callback, and shared memory, which sends no packets, is measured beside UDP.

use crate::testbed::{Implementation, MeasurementFailure};

use crate::capture::{Capture, CaptureResult, Counts, SubmessageKind, TrafficClass};
use crate::experiment::{Experiment, Paper, Scope};
use crate::flow::{self, Flow};
use crate::keystore::Rules;
use crate::lab::Lab;
use crate::measurement::{
    Better, Configuration, Extent, LATENCY, Measurement, Metric, Published, Statistic,
};
use crate::report_items::{self, ReportItem, Table, TableEntry, Tone};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "f20.1",
    paper: Paper::F20,
    title: "Packets, losses, latency and throughput by QoS",
    reproduces: "tables II-XI",
    question: "What do reliability, history and durability cost in packets and in time, and is anything lost?",
    metrics: &[
        LATENCY,
        SPAN,
        FRAGMENT,
        THROUGHPUT,
        OVERHEAD,
        PROTOCOL_SHARE,
        PROTOCOL_PACKETS,
        PACKETS,
        DATA_PACKETS,
    ],
    configurations,
    run,
    published: PUBLISHED,
    report_items,
};

const SPAN: Metric = metric("span", "us", Better::Lower);
/// From the paper, for information as the two percentages below. Stacks split a
/// message of 250 kB into 4 to 19 packets, so values per packet are not comparable.
const FRAGMENT: Metric = metric("fragment", "us", Better::Neither);
const THROUGHPUT: Metric = metric("throughput", "Gbit/s", Better::Higher);
const OVERHEAD: Metric = metric("overhead", "%", Better::Neither);
/// Overhead without discovery: heartbeats, ACKNACKs and other protocol packets.
const PROTOCOL_SHARE: Metric = metric("protocol", "%", Better::Neither);
/// Compared instead: protocol packets per message.
const PROTOCOL_PACKETS: Metric = metric("protocol packets", "per message", Better::Lower);
const PACKETS: Metric = metric("packets", "", Better::Neither);
const DATA_PACKETS: Metric = metric("data packets", "", Better::Neither);

const fn metric(name: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric::new(name, unit, better, Statistic::Mean)
}

/// The letters of the paper: depth (none is KEEP_ALL), reliable, transient local.
const CASES: [(&str, Option<u64>, bool, bool); 5] = [
    ("a", Some(5), false, false),
    ("b", None, false, true),
    ("c", Some(5), true, false),
    ("d", Some(1000), true, false),
    ("e", None, true, true),
];

/// Packets per thousand that the capture may miss before its result is dropped.
const MISSED_PER_MILLE_MAX: u64 = 5;

/// A line of the paper's tables for ROS 2 Crystal over FastRTPS: latency from
/// packet to packet, throughput, overhead, messages lost of 1000.
macro_rules! printed {
    ($security:literal, $qos:literal, $size:literal, $value:literal, $source:literal) => {
        Published {
            case: &[
                ("security", $security),
                ("transport", "udp"),
                ("qos", $qos),
                ("size", $size),
            ],
            implementation: "FastRTPS",
            value: $value,
            source: $source,
        }
    };
}

#[rustfmt::skip]
const PUBLISHED: &[Published] = &[
    printed!("plain", "a", "250000", "105 us, 2.477 Gbit/s, overhead 1.23 %, 2 lost", "tables II, III"),
    printed!("plain", "a", "500000", "242.6 us, 2.459 Gbit/s, overhead 0.68 %, 7 lost", "tables IV, V"),
    printed!("plain", "a", "1000000", "443.8 us, 2.261 Gbit/s, overhead 0.26 %, 10 lost", "tables VI, VII"),
    printed!("plain", "a", "2000000", "1029 us, 1.868 Gbit/s, overhead 0.13 %, 77 lost", "tables VIII, IX"),
    printed!("plain", "b", "250000", "162 us, 1.590 Gbit/s, overhead 1.21 %, 12 lost", "tables II, III"),
    printed!("plain", "b", "500000", "335 us, 1.554 Gbit/s, overhead 0.57 %, 19 lost", "tables IV, V"),
    printed!("plain", "b", "1000000", "722.2 us, 1.451 Gbit/s, overhead 0.23 %, 17 lost", "tables VI, VII"),
    printed!("plain", "b", "2000000", "1471 us, 1.369 Gbit/s, overhead 0.13 %, 24 lost", "tables VIII, IX"),
    printed!("plain", "c", "250000", "118 us, 2.130 Gbit/s, overhead 33.56 %, 4 lost", "tables II, III"),
    printed!("plain", "c", "500000", "242 us, 2.085 Gbit/s, overhead 42.13 %, 3 lost", "tables IV, V"),
    printed!("plain", "c", "1000000", "529.9 us, 1.938 Gbit/s, overhead 43.89 %, 28 lost", "tables VI, VII"),
    printed!("plain", "c", "2000000", "1266 us, 1.767 Gbit/s, overhead 42.23 %, 99 lost", "tables VIII, IX"),
    printed!("plain", "d", "250000", "129.6 us, 1.979 Gbit/s, overhead 21.38 %, 0 lost", "tables II, III"),
    printed!("plain", "d", "500000", "260.5 us, 2.024 Gbit/s, overhead 28.39 %, 0 lost", "tables IV, V"),
    printed!("plain", "d", "1000000", "608.7 us, 1.869 Gbit/s, overhead 31.04 %, 0 lost", "tables VI, VII"),
    printed!("plain", "d", "2000000", "1317 us, 1.720 Gbit/s, overhead 32.59 %, 0 lost", "tables VIII, IX"),
    printed!("plain", "e", "250000", "128.1 us, 2.127 Gbit/s, overhead 21.91 %, 0 lost", "tables II, III"),
    printed!("plain", "e", "500000", "243.4 us, 2.125 Gbit/s, overhead 28.02 %, 0 lost", "tables IV, V"),
    printed!("plain", "e", "1000000", "558.5 us, 1.986 Gbit/s, overhead 30.98 %, 0 lost", "tables VI, VII"),
    printed!("plain", "e", "2000000", "1313 us, 1.806 Gbit/s, overhead 32.54 %, 0 lost", "tables VIII, IX"),
    printed!("secured", "a", "250000", "250.7 us, 0.988 Gbit/s, overhead 1.38 %, 122 lost", "tables II, III"),
    printed!("secured", "a", "500000", "522.2 us, 0.959 Gbit/s, overhead 0.64 %, 55 lost", "tables IV, V"),
    printed!("secured", "a", "1000000", "1065 us, 0.935 Gbit/s, overhead 0.30 %, 41 lost", "tables VI, VII"),
    printed!("secured", "a", "2000000", "2139 us, 0.846 Gbit/s, overhead 0.13 %, 17 lost", "tables VIII, IX"),
    printed!("secured", "b", "250000", "345.6 us, 0.730 Gbit/s, overhead 1.21 %, 50 lost", "tables II, III"),
    printed!("secured", "b", "500000", "730.8 us, 0.700 Gbit/s, overhead 0.56 %, 25 lost", "tables IV, V"),
    printed!("secured", "b", "1000000", "1347 us, 0.759 Gbit/s, overhead 0.27 %, 19 lost", "tables VI, VII"),
    printed!("secured", "b", "2000000", "- us, - Gbit/s, overhead 0.13 %, 42 lost", "tables VIII, IX"),
    printed!("secured", "c", "250000", "282.2 us, 0.876 Gbit/s, overhead 2.81 %, 103 lost", "tables II, III"),
    printed!("secured", "c", "500000", "1233 (sic) us, 0.876 Gbit/s, overhead - %, 49 lost", "tables IV, V"),
    printed!("secured", "c", "1000000", "1233 us, 0.876 Gbit/s, overhead 1.82 %, 49 lost", "tables VI, VII"),
    printed!("secured", "c", "2000000", "2591 us, 0.830 Gbit/s, overhead 1.70 %, 22 lost", "tables VIII, IX"),
    printed!("secured", "d", "250000", "297.7 us, 0.850 Gbit/s, overhead 2.99 %, 121 lost", "tables II, III"),
    printed!("secured", "d", "500000", "563.1 us, 0.889 Gbit/s, overhead 2.09 %, 58 lost", "tables IV, V"),
    printed!("secured", "d", "1000000", "1249 us, 0.864 Gbit/s, overhead 2.82 %, 16 lost", "tables VI, VII"),
    printed!("secured", "d", "2000000", "3497 us, 0.751 Gbit/s, overhead 0.71 %, 0 lost", "tables VIII, IX"),
    printed!("secured", "e", "250000", "287.9 us, 0.861 Gbit/s, overhead 2.90 %, 129 lost", "tables II, III"),
    printed!("secured", "e", "500000", "577.8 us, 0.884 Gbit/s, overhead 2.10 %, 39 lost", "tables IV, V"),
    printed!("secured", "e", "1000000", "1240 us, 0.868 Gbit/s, overhead 2.59 %, 19 lost", "tables VI, VII"),
    printed!("secured", "e", "2000000", "3147 us, 0.799 Gbit/s, overhead 1.25 %, 0 lost", "tables VIII, IX"),
    printed!("secured", "d", "4000000", "failed with errors", "IV-B"),
    printed!("secured", "e", "4000000", "failed with errors", "IV-B"),
];

fn sizes(extent: Extent) -> &'static [u64] {
    match extent {
        Extent::Smoke => &[250_000],
        Extent::Quick => &[250_000, 4_000_000],
        // 0.25 MB are four fragments of 64 KiB in the paper, so MB are millions.
        Extent::Full => &[250_000, 500_000, 1_000_000, 2_000_000, 4_000_000],
    }
}

fn flow(qos: &str, size: u64, extent: Extent) -> Flow {
    let case = CASES.iter().find(|(name, ..)| *name == qos);
    let &(_, depth, is_reliable, is_transient_local) = case.unwrap_or(&CASES[0]);
    Flow {
        is_intra: false,
        is_serialized: false,
        is_text: false,
        size,
        count: extent.choose(5, 15, 1000),
        warmup: 0,
        // At most 80 MB/s, which every stack can carry.
        rate: if size > 1_000_000 { 20 } else { 50 },
        is_reliable,
        is_transient_local,
        depth,
        deadline_ms: 0,
        subscribers: 1,
        waits_for_match: true,
        is_real_time: false,
        is_loaned: false,
    }
}

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let mut configurations = Vec::new();
    let mut add =
        |security: &str, transport: &str, qos: &str, size: u64, implementation, seconds| {
            let case = vec![
                ("security", security.to_owned()),
                ("transport", transport.to_owned()),
                ("qos", qos.to_owned()),
                ("size", size.to_string()),
            ];
            configurations.push(Configuration {
                case,
                implementation,
                seconds,
            });
        };
    let transports: [(&str, &[&'static str]); 2] = [
        ("udp", &["pteros", "cyclone", "fastdds"]),
        ("shared memory", &["pteros", "fastdds"]),
    ];
    for (transport, implementations) in transports {
        for (qos, ..) in CASES {
            let is_wire = transport == "udp";
            // Without packets the cases hardly differ.
            let is_left_out = !is_wire && scope.extent != Extent::Full && qos != "e";
            for size in sizes(scope.extent) {
                let seconds = flow(qos, *size, scope.extent).seconds();
                for implementation in scope.among(implementations) {
                    if !is_left_out {
                        add("plain", transport, qos, *size, implementation, seconds);
                    }
                }
            }
        }
    }
    for (qos, ..) in CASES {
        let is_left_out = scope.extent == Extent::Quick && !["a", "e"].contains(&qos);
        for size in sizes(scope.extent) {
            let seconds = flow(qos, *size, scope.extent).seconds() + 0.5;
            for implementation in scope.among(&["pteros", "cyclone", "fastdds"]) {
                if !is_left_out {
                    add("secured", "udp", qos, *size, implementation, seconds);
                }
            }
        }
    }
    configurations
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let is_wire = configuration.get("transport") == "udp";
    let is_secured = configuration.get("security") == "secured";
    let mut implementation =
        by_transport(lab.implementation(configuration.implementation)?, is_wire);
    if is_secured {
        implementation = lab.secured(&implementation, Rules::F20)?;
    }
    let flow = flow(
        configuration.get("qos"),
        configuration.number("size"),
        lab.extent,
    );
    // Half the size, because stacks count different bytes. Announcements are much
    // smaller.
    let capture = Capture::start("lo", None, flow.size / 2);
    let capture = capture.map_err(|error| MeasurementFailure::Unsupported(format!("{error:#}")))?;
    let flowed = flow::run(lab, &implementation, &flow)?;
    let mut measured = flowed.measured(&flow);
    add_packets(&mut measured, &capture.stop()?, flow.count);
    Ok(measured)
}

/// The implementation with UDP or with shared memory, whatever its default is.
fn by_transport(implementation: &Implementation, is_wire: bool) -> Implementation {
    let mut implementation = implementation.clone();
    let off = match implementation.stack {
        "pteros" => Some(("PTEROS_SHARED_MEMORY", "off")),
        "fastdds" => Some(("HOST_UDP", "on")),
        _ => None,
    };
    if let (true, Some((name, value))) = (is_wire, off) {
        implementation.environment.push((name, value.to_owned()));
    }
    implementation
}

/// Metrics of the packets as the paper defines them (IV-A).
fn add_packets(measured: &mut Measurement, results: &CaptureResult, messages: u64) {
    let CaptureResult { counts, missed } = results;
    if *missed > 0 {
        measured
            .notes
            .push(format!("the capture missed {missed} packets"));
    }
    if *missed * 1000 > counts.packets() * MISSED_PER_MILLE_MAX {
        return;
    }
    measured
        .values
        .push((PACKETS.name, counts.packets_between() as f64));
    measured
        .values
        .push((DATA_PACKETS.name, counts.user_data.count as f64));
    measured
        .values
        .push((OVERHEAD.name, counts.overhead_percent()));
    let (data, other) = (counts.user_data.count, counts.user_other.count);
    let beside = other as f64 / messages.max(1) as f64;
    measured.values.push((PROTOCOL_PACKETS.name, beside));
    // With encryption discovery and protocol packets cannot be distinguished.
    if counts.of(SubmessageKind::Secure, TrafficClass::None) == 0 {
        let answers = other as f64 / (data + other).max(1) as f64 * 100.0;
        measured.values.push((PROTOCOL_SHARE.name, answers));
    }
    let Some((span, fragment, throughput)) = times(counts) else {
        return;
    };
    measured.values.push((SPAN.name, span));
    measured.values.push((FRAGMENT.name, fragment));
    measured.values.push((THROUGHPUT.name, throughput));
}

/// Means over messages of several packets: microseconds from the first to the last
/// packet, microseconds from packet to packet, and Gbit/s.
fn times(counts: &Counts) -> Option<(f64, f64, f64)> {
    // One of the two is empty.
    let messages = counts.messages().chain(counts.bursts());
    let spans = messages.filter(|m| m.packets > 1 && m.last_ns > m.first_ns);
    let spans: Vec<(f64, f64, f64)> = spans
        .map(|message| {
            let us = (message.last_ns - message.first_ns) as f64 / 1e3;
            let gbit = message.bytes as f64 * 8.0 / (us * 1e3);
            (us, us / (message.packets - 1) as f64, gbit)
        })
        .collect();
    let mean =
        |of: fn(&(f64, f64, f64)) -> f64| spans.iter().map(of).sum::<f64>() / spans.len() as f64;
    (!spans.is_empty()).then(|| (mean(|s| s.0), mean(|s| s.1), mean(|s| s.2)))
}

fn report_items(view: &View) -> Vec<ReportItem> {
    let mut all = Vec::new();
    for metric in [&LATENCY, &SPAN, &THROUGHPUT, &PROTOCOL_PACKETS] {
        all.push(ReportItem::Table(report_items::comparison(view, metric)));
    }
    all.extend(
        sizes_of(view)
            .into_iter()
            .flat_map(|size| {
                let tables = [("plain", 1), ("secured", 2)];
                tables.map(|(security, number)| packets(view, &size, security, number))
            })
            .filter(|table| !table.rows.is_empty())
            .map(ReportItem::Table),
    );
    for transport in view.values("transport") {
        let title =
            format!("{transport}, reliable, keep all, transient local (1e): latency by size");
        let wanted = [
            ("transport", transport),
            ("qos", "e"),
            ("security", "plain"),
        ];
        all.push(report_items::lines(view, title, "size", &LATENCY, |c| {
            c.is(&wanted)
        }));
    }
    all
}

fn sizes_of(view: &View) -> Vec<String> {
    view.values("size")
        .iter()
        .map(|size| (*size).to_owned())
        .collect()
}

/// As tables II, III and similar: a row per case and stack, with the change against
/// the stack's own case 1a.
fn packets(view: &View, size: &str, security: &str, number: u8) -> Table {
    let columns = [
        "case",
        "stack",
        "packets",
        "data packets",
        "overhead %",
        "protocol %",
        "per message",
        "lost",
        "fragment us",
        "Δ%",
        "message us",
        "Δ%",
        "Gbit/s",
        "Δ%",
    ];
    let mut rows = Vec::new();
    for (qos, ..) in CASES {
        let is_of = |c: &&crate::results::ConfigurationResult, qos: &str, security: &str| {
            c.is(&[
                ("transport", "udp"),
                ("security", security),
                ("qos", qos),
                ("size", size),
            ])
        };
        for configuration in view
            .configurations
            .iter()
            .filter(|c| is_of(c, qos, security))
        {
            let base = view.configurations.iter().find(|c| {
                is_of(c, "a", "plain") && c.implementation == configuration.implementation
            });
            let lost = configuration.delivery.map(|d| d.lost());
            let mut row = vec![
                TableEntry::plain(format!("{number}{qos}")),
                TableEntry::plain(configuration.implementation.clone()),
            ];
            for metric in [
                &PACKETS,
                &DATA_PACKETS,
                &OVERHEAD,
                &PROTOCOL_SHARE,
                &PROTOCOL_PACKETS,
            ] {
                row.push(value_entry(configuration, metric));
            }
            row.push(match lost {
                None => TableEntry::with_tone("–", Tone::Faint),
                Some(0) => TableEntry::plain("0"),
                Some(lost) => TableEntry::with_tone(lost.to_string(), Tone::Bad),
            });
            for metric in [&FRAGMENT, &SPAN, &THROUGHPUT] {
                row.push(value_entry(configuration, metric));
                let own = configuration.metric_values(metric.name).map(|f| f.median());
                let first = base
                    .and_then(|c| c.metric_values(metric.name))
                    .map(|f| f.median());
                row.push(match (own, first) {
                    (Some(own), Some(first)) if (qos != "a" || number > 1) && first > 0.0 => {
                        TableEntry::plain(format!("{:+.1}", (own - first) / first * 100.0))
                    }
                    _ => TableEntry::with_tone("–", Tone::Faint),
                });
            }
            rows.push(row);
        }
    }
    Table {
        title: format!(
            "{} on loopback, {security}: packets",
            report_items::value_text("size", size)
        ),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        note: "Packets are RTPS from the first to the last with a part of a message. Overhead \
               are those without message data. Protocol packets are heartbeats, ACKNACKs and the like, to the end. Percentages and \
               the time of a fragment do not compare stacks, because a message has 4 to 19 packets: compare the protocol packets \
               per message. Message: from its first packet to its last. \
               Encrypted packets hide their content: the first that make half a message are its beginning. From then on those of a \
               kilobyte and more count as parts of messages, a pause of 8 ms ends a message, and shorter ones are protocol packets. \
               Changes are those against the stack's own case 1a."
            .into(),
    }
}

fn value_entry(configuration: &crate::results::ConfigurationResult, metric: &Metric) -> TableEntry {
    match configuration.metric_values(metric.name) {
        Some(values) => TableEntry::plain(report_items::number(values.median())),
        None => TableEntry::with_tone("–", Tone::Faint),
    }
}
