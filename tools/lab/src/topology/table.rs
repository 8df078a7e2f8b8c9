//! Tables of `ros2-performance`: its column names in its order, with columns of
//! Pteros at the end. A name longer than its column is followed by a space, so that
//! splitting at spaces works.

use std::fmt::Write as _;
use std::iter;

use super::resources::Resources;
use super::result::{ProcessResult, Row};

const WIDE: usize = 15;
const NARROW: usize = 10;

const LATENCY: [(&str, usize); 15] = [
    ("node", WIDE),
    ("topic", WIDE),
    ("size_b", NARROW),
    ("received_msgs", WIDE),
    ("late_msgs", NARROW),
    ("too_late_msgs", WIDE),
    ("lost_msgs", NARROW),
    ("mean_us", NARROW),
    ("sd_us", NARROW),
    ("min_us", NARROW),
    ("max_us", NARROW),
    ("freq_hz", NARROW),
    ("throughput_Kb_per_sec", 22),
    ("duplicates", 11),
    ("reordered", NARROW),
];

const TOTAL: [(&str, usize); 8] = [
    ("received_msgs", WIDE),
    ("mean_us", NARROW),
    ("late_msgs", NARROW),
    ("late_perc", NARROW),
    ("too_late_msgs", WIDE),
    ("too_late_perc", WIDE),
    ("lost_msgs", NARROW),
    ("lost_perc", NARROW),
];

const RESOURCES: [(&str, usize); 9] = [
    ("time_ms", WIDE),
    ("cpu_perc", NARROW),
    ("arena_KB", WIDE),
    ("in_use_KB", WIDE),
    ("mmap_KB", WIDE),
    ("rss_KB", WIDE),
    ("vsz_KB", WIDE),
    ("pss_KB", WIDE),
    ("threads", NARROW),
];

/// `latency_all.txt`: subscriptions, clients and publishers of one process. For a
/// publisher the latencies are durations of publish calls.
pub fn latency_all(rows: &[Row]) -> String {
    let mut text = String::new();
    for (kind, title) in [
        ("subscription", "Subscriptions stats:"),
        ("client", "Clients stats:"),
        ("publisher", "Publishers stats:"),
    ] {
        let of_kind: Vec<&Row> = rows.iter().filter(|row| row.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title}");
        head(&mut text, &LATENCY);
        for row in of_kind {
            let [mean, sd, min, max] = row.latency_us.map(|us| format!("{:.0}", us.round()));
            let cells = [
                row.node.clone(),
                row.entity.clone(),
                row.bytes.to_string(),
                row.received.to_string(),
                row.late.to_string(),
                row.too_late.to_string(),
                row.lost.to_string(),
                mean,
                sd,
                min,
                max,
                short(row.frequency),
                short(row.bytes_per_second / 1024.0),
                row.duplicates.to_string(),
                row.reordered.to_string(),
            ];
            line(&mut text, &LATENCY, &cells);
        }
    }
    text
}

/// `latency_total.txt`: everything that subscriptions and clients received.
pub fn latency_total<'a>(processes: impl IntoIterator<Item = &'a ProcessResult>) -> String {
    let rows = processes.into_iter().flat_map(|process| &process.rows);
    let receiving_rows: Vec<&Row> = rows.filter(|row| row.kind != "publisher").collect();
    let sum = |of: fn(&Row) -> u64| receiving_rows.iter().map(|row| of(row)).sum::<u64>();
    let received = sum(|row| row.received);
    let (late, too_late, lost) = (
        sum(|row| row.late),
        sum(|row| row.too_late),
        sum(|row| row.lost),
    );
    let weighted = receiving_rows.iter().filter(|row| row.received > 0);
    // Rows with late messages only have no mean.
    let weighted = weighted.filter(|row| !row.latency_us[0].is_nan());
    let latency: f64 = weighted
        .map(|row| row.received as f64 * row.latency_us[0])
        .sum();
    let percent = |part: u64, whole: u64| match whole {
        0 => "0".into(),
        _ => short(part as f64 / whole as f64 * 100.0),
    };
    let mean = match received {
        0 => "nan".into(),
        _ => format!("{:.0}", (latency / received as f64).round()),
    };
    let mut text = String::new();
    head(&mut text, &TOTAL);
    let cells = [
        received.to_string(),
        mean,
        late.to_string(),
        percent(late, received),
        too_late.to_string(),
        percent(too_late, received),
        lost.to_string(),
        percent(lost, received + lost),
    ];
    line(&mut text, &TOTAL, &cells);
    text
}

/// `resources.txt`. The columns of glibc's mallinfo (arena, in use, mmap) are 0, as
/// the framework writes without it. PSS and threads are additions.
pub fn resources_table(samples: &[Resources]) -> String {
    let mut text = String::new();
    head(&mut text, &RESOURCES);
    for sample in samples {
        let cells = [
            sample.time_ms.to_string(),
            short(sample.cpu_percent),
            "0".into(),
            "0".into(),
            "0".into(),
            sample.rss_kb.to_string(),
            sample.vsz_kb.to_string(),
            sample.pss_kb.to_string(),
            sample.threads.to_string(),
        ];
        line(&mut text, &RESOURCES, &cells);
    }
    text
}

fn head(text: &mut String, columns: &[(&str, usize)]) {
    let names: Vec<String> = columns.iter().map(|(name, _)| (*name).into()).collect();
    line(text, columns, &names);
}

fn line(text: &mut String, columns: &[(&str, usize)], cells: &[String]) {
    let mut whole = String::new();
    for ((_, width), cell) in columns.iter().zip(cells) {
        let width = width - 1;
        let _ = write!(whole, "{cell:<width$} ");
    }
    let _ = writeln!(text, "{}", whole.trim_end());
}

/// Six significant digits as C++ streams print, without an exponent.
fn short(value: f64) -> String {
    if !value.is_finite() {
        return "nan".into();
    }
    // `log10` would link the whole mathematical library into each process.
    let tens = iter::successors(Some(1.0), |ten| Some(ten * 10.0));
    let whole_digits = tens.take_while(|ten| value.abs() >= *ten).count();
    let text = format!("{value:.*}", 6_usize.saturating_sub(whole_digits));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracker::{TopicLoad, Tracker};
    use super::*;

    fn process() -> ProcessResult {
        let load = TopicLoad {
            bytes: 36,
            frequency: 100.0,
        };
        let mut received = Tracker::new("a_node_with_a_long_name", "amazon");
        for (number, us) in [(0, 100), (1, 300), (3, 2_500), (4, 11_000)] {
            let now = number as i64 * 10_000_000;
            received.scan(7, number, now, us, load);
        }
        let mut said = Tracker::new("n", "amazon");
        said.published(0, 5, load);
        ProcessResult {
            rows: vec![
                Row::of("subscription", &received),
                Row::of("publisher", &said),
            ],
            ..ProcessResult::default()
        }
    }

    #[test]
    fn lines_split_into_as_many_words_as_there_are_columns() {
        let text = latency_all(&process().rows);
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[1], ["Subscriptions", "stats:"]);
        assert_eq!(words[2].len(), LATENCY.len());
        let expected = [
            "a_node_with_a_long_name",
            "amazon",
            "36",
            "4",
            "1",
            "1",
            "1",
            "967",
            "1087",
            "100",
            "2500",
            "100",
            "3.51562",
            "0",
            "0",
        ];
        assert_eq!(words[3], expected);
        assert_eq!(words[5], ["Publishers", "stats:"]);
    }

    #[test]
    fn totals_are_sums_and_shares_of_received_messages() {
        let text = latency_total([&process(), &process()]);
        let words: Vec<&str> = text
            .lines()
            .nth(1)
            .expect("two lines")
            .split_whitespace()
            .collect();
        assert_eq!(words, ["8", "967", "2", "25", "2", "25", "2", "20"]);
        let nothing = latency_total([]);
        assert!(nothing.lines().nth(1).expect("two lines").contains("nan"));
    }

    #[test]
    fn numbers_have_six_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (15.0, "15"),
            (1.0 / 3.0, "0.333333"),
            (1234567.8, "1234568"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_result_survives_the_pipe_to_the_parent_process() {
        let there = process();
        let line = there.to_json().to_string();
        let back = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ProcessResult::from_json(&back), Some(there));
    }
}
