//! The statistics as a table.

use super::flow_statistics::FlowRow;
use std::time::Duration;

/// Heading and rows, each cut to `width` columns.
pub fn lines(rows: &[FlowRow], width: usize) -> Vec<String> {
    let mut cells: Vec<[String; COLUMNS]> = vec![HEADINGS.map(str::to_string)];
    cells.extend(rows.iter().map(cells_of));
    let mut widths = [0; COLUMNS];
    for row in &cells {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(cell.chars().count());
        }
    }
    let mut shown = [true; COLUMNS];
    for column in DROPPED_FIRST {
        if total(&widths, &shown) > width {
            shown[column] = false;
        }
    }
    cells
        .iter()
        .map(|row| line(row, &widths, &shown).chars().take(width).collect())
        .collect()
}

const COLUMNS: usize = 10;
const HEADINGS: [&str; COLUMNS] = [
    "TOPIC", "TYPE", "SIZE", "FROM", "TO", "PATH", "HZ", "P50", "P95", "LOST",
];
/// Columns that a narrow terminal omits, the least important first.
const DROPPED_FIRST: [usize; 3] = [1, 3, 2];
/// Columns of numbers.
const RIGHT_ALIGNED: [usize; 5] = [2, 6, 7, 8, 9];

fn cells_of(row: &FlowRow) -> [String; COLUMNS] {
    let is_heard = row.count > 0;
    let when_heard = |text: String| if is_heard { text } else { "-".into() };
    let type_name = row.type_name.replace("/msg/", "/");
    [
        row.topic.clone(),
        type_name,
        when_heard(bytes(row.payload_bytes)),
        row.from.clone(),
        row.to.clone(),
        row.path.clone().unwrap_or_else(|| "waiting".into()),
        when_heard(format!("{:.1}", row.rate)),
        row.p50_ns.map_or("-".into(), latency),
        row.p95_ns.map_or("-".into(), latency),
        when_heard(row.lost.to_string()),
    ]
}

fn total(widths: &[usize; COLUMNS], shown: &[bool; COLUMNS]) -> usize {
    let columns = widths.iter().zip(shown).filter(|(_, shown)| **shown);
    let with_gaps: usize = columns.map(|(width, _)| width + 2).sum();
    with_gaps.saturating_sub(2)
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS], shown: &[bool; COLUMNS]) -> String {
    let mut text = String::new();
    for (column, cell) in row.iter().enumerate().filter(|(column, _)| shown[*column]) {
        let width = widths[column];
        if RIGHT_ALIGNED.contains(&column) {
            text += &format!("{cell:>width$}  ");
        } else {
            text += &format!("{cell:<width$}  ");
        }
    }
    text.trim_end().to_string()
}

/// `922 KB`, with decimal prefixes as in networking.
pub fn bytes(count: usize) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..10_000 => format!("{:.1} KB", count as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} KB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// `85 µs`, with two or three significant digits.
pub fn latency(nanoseconds: u64) -> String {
    let time = Duration::from_nanos(nanoseconds);
    let (value, unit) = match nanoseconds {
        0..1_000_000 => (time.as_secs_f64() * 1e6, "µs"),
        1_000_000..1_000_000_000 => (time.as_secs_f64() * 1e3, "ms"),
        _ => (time.as_secs_f64(), "s"),
    };
    if value < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_abbreviated() {
        assert_eq!(bytes(24), "24 B");
        assert_eq!(bytes(5_830), "5.8 KB");
        assert_eq!(bytes(921_664), "922 KB");
        assert_eq!(latency(850), "0.8 µs");
        assert_eq!(latency(85_000), "85 µs");
        assert_eq!(latency(1_250_000), "1.2 ms");
    }

    #[test]
    fn a_narrow_terminal_shows_the_essential_columns() {
        let row = FlowRow {
            topic: "/camera/image_raw".into(),
            type_name: "sensor_msgs/msg/Image".into(),
            from: "camera".into(),
            to: "viewer".into(),
            ..FlowRow::default()
        };
        let wide = lines(std::slice::from_ref(&row), 200);
        assert!(wide[1].contains("sensor_msgs/Image"));
        assert!(wide[1].contains("waiting"));
        let narrow = lines(&[row], 70);
        assert!(!narrow[1].contains("sensor_msgs"));
        assert!(narrow.iter().all(|line| line.chars().count() <= 70));
    }
}
