//! The bar chart of the front page: Pteros beside the better of Cyclone DDS and Fast
//! DDS, for rows of docs/measurements/ros2.md.
//!
//! `cargo xtask picture` writes it. The page is the only place of the figures, so a new
//! measurement changes the chart, and a test compares both. It shows rows in which
//! Pteros is worse, too.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use crate::checkout::root;

/// The picture, from the root.
pub const CHART: &str = "docs/start/figures.svg";
const PAGE: &str = "docs/measurements/ros2.md";

/// Rows of the page by name and figure, with what they are about.
const ROWS: [(&str, &str, &str); 10] = [
    ("two-64B-10Hz", "p50", "latency, 64 B, 10 Hz"),
    ("two-64B-1000Hz", "p50", "latency, 64 B, 1 kHz"),
    ("two-64KB-100Hz", "p50", "latency, 64 KB"),
    ("two-1MB-100Hz", "p50", "latency, 1 MB"),
    ("two-4MB-10Hz", "p50", "latency, 4 MB"),
    ("two-1MB-100Hz", "CPU", "CPU time, 1 MB"),
    ("py-two-64B-100Hz", "p50", "latency in rclpy, 64 B"),
    ("nodes-1", "PSS", "memory of one process"),
    ("nodes-20", "PSS", "memory of 20 processes"),
    ("meet-20", "ms", "time until 20 nodes meet"),
];

/// One bar.
struct Bar {
    label: &'static str,
    figure: String,
    pteros: f64,
    better: f64,
}

/// Draws the chart of the page.
pub fn draw() -> Result<String> {
    let path = root().join(PAGE);
    let page =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(svg(&bars(&page)?))
}

fn bars(page: &str) -> Result<Vec<Bar>> {
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    ROWS.iter()
        .map(|&(name, figure, label)| {
            let row = rows.iter().find(|row| {
                row.len() > 4 && row[0].trim_end_matches('`') == name && row[1].starts_with(figure)
            });
            let row = row.with_context(|| format!("{PAGE} has no row {name} with {figure}"))?;
            let number = |at: usize| row[at].parse::<f64>().ok();
            let peers = [number(3), number(4)].into_iter().flatten();
            let better = peers.fold(f64::INFINITY, f64::min);
            let pteros = number(2).context("a figure of Pteros")?;
            ensure!(
                better.is_finite() && better > 0.0,
                "{PAGE}: row {name} has no figure of another plug-in"
            );
            Ok(Bar {
                label,
                figure: row[1].to_owned(),
                pteros,
                better,
            })
        })
        .collect()
}

const WIDTH: usize = 940;
const LEFT: usize = 230;
/// Pixels of a ratio of 1.
const SCALE: f64 = 400.0;
const ROW_HEIGHT: usize = 30;
const TOP: usize = 64;

fn svg(bars: &[Bar]) -> String {
    let height = TOP + bars.len() * ROW_HEIGHT + 34;
    let bottom = height - 28;
    let one = LEFT as f64 + SCALE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>rclcpp and rclpy programs on Pteros, relative to the better of Cyclone DDS and Fast DDS</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" fill=\"#1a1b26\"/>\n\
         <g font-family=\"system-ui, -apple-system, Segoe UI, sans-serif\" font-size=\"14\" fill=\"#c0caf5\">\n\
         <text x=\"20\" y=\"28\" font-size=\"16\" font-weight=\"bold\">ROS 2 programs on Pteros: the same program, another plug-in</text>\n\
         <text x=\"20\" y=\"48\" opacity=\"0.7\">Shorter is better. The line is the better of Cyclone DDS and Fast DDS.</text>\n"
    );
    for (row, bar) in bars.iter().enumerate() {
        let y = TOP + row * ROW_HEIGHT;
        let ratio = bar.pteros / bar.better;
        let length = (ratio * SCALE).clamp(2.0, SCALE * 1.2);
        let colour = if ratio <= 1.0 { "#7aa2f7" } else { "#f7768e" };
        let _ = write!(
            out,
            "<text x=\"20\" y=\"{}\">{}</text>\n\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{length:.0}\" height=\"18\" rx=\"3\" fill=\"{colour}\"/>\n\
             <text x=\"{:.0}\" y=\"{}\">{ratio:.2}</text>\n\
             <text x=\"{:.0}\" y=\"{}\" opacity=\"0.7\">{} beside {} {}</text>\n",
            y + 19,
            bar.label,
            y + 5,
            // Behind the bar, and not across the line.
            LEFT as f64 + length + 8.0,
            y + 19,
            one + SCALE * 0.2,
            y + 19,
            shown(bar.pteros),
            shown(bar.better),
            unit(&bar.figure),
        );
    }
    let _ = write!(
        out,
        "<line x1=\"{one:.0}\" y1=\"{TOP}\" x2=\"{one:.0}\" y2=\"{bottom}\" stroke=\"#e0af68\" stroke-width=\"2\"/>\n\
         <text x=\"20\" y=\"{}\" opacity=\"0.7\">Figures and method: {PAGE}</text>\n</g>\n</svg>\n",
        height - 10
    );
    out
}

/// What stands behind the comma of `p50, µs`, or the whole.
fn unit(figure: &str) -> &str {
    figure.split_once(", ").map_or(figure, |(_, unit)| unit)
}

/// Three digits at least, and no more behind the point than they need.
fn shown(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_of_the_front_page_has_the_figures_of_the_measurements() {
        let chart = std::fs::read_to_string(root().join(CHART)).unwrap();
        assert!(
            chart == draw().unwrap(),
            "{CHART} is older than {PAGE}: run cargo xtask picture --figures"
        );
        let front = std::fs::read_to_string(root().join("README.md")).unwrap();
        assert!(front.contains(CHART), "README.md does not show {CHART}");
    }

    #[test]
    fn the_better_of_two_peers_is_the_line_and_a_peer_without_a_figure_is_left_out() {
        let page: String = ROWS.iter().fold(String::new(), |page, (name, figure, _)| {
            page + &format!("| `{name}` | {figure}, ms | 5.0 | none in 90 s | 10.0 | – | 1 | – |\n")
        });
        let bars = bars(&page).unwrap();
        assert!(bars.iter().all(|bar| bar.better == 10.0));
        assert!(svg(&bars).contains("0.50"));
        let error = super::bars("").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("has no row two-64B-10Hz"), "{error}");
    }
}
