//! `pteros topic hz`: intervals between messages, taken when they reach the
//! process, of serialized messages: decoding does not slow the count down.

use super::listening::{Listening, ListeningFlags, beat, listen, nothing_heard};
use super::window::{Summary, Window};
use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_count;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::time::UNIX_EPOCH;

/// Arguments of `topic hz`.
#[derive(Debug, Args)]
pub struct Hz {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "10000", value_parser = positive_count)]
    window: usize,
    /// Accepted for the sake of ros2 scripts: intervals are always wall time
    #[arg(long)]
    wall_time: bool,
    #[command(flatten)]
    listening: ListeningFlags,
    /// Names of the topics (e.g. /chatter)
    #[arg(required = true)]
    topic_name: Vec<String>,
}

struct Rate {
    listening: Listening,
    intervals: Window,
    last: Option<f64>,
    is_new: bool,
}

impl Hz {
    /// Prints a rate each second until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let end = self.listening.end();
        let several = self.topic_name.len() > 1;
        let mut rates = Vec::new();
        for topic in &self.topic_name {
            let Some(listening) = listen(&session, shared, topic, end)? else {
                return self
                    .listening
                    .end()
                    .map_or(Ok(()), |_| nothing_heard(&session, &self.topic_name));
            };
            if several && !shared.console.json {
                shared
                    .console
                    .line(format!("Subscribed to [{}]", listening.topic))?;
            }
            rates.push(Rate {
                listening,
                intervals: Window::new(self.window),
                last: None,
                is_new: false,
            });
        }
        let print = |rates: &mut Vec<Rate>| print_rates(shared, rates);
        let topics: Vec<String> = rates
            .iter()
            .map(|rate| rate.listening.topic.clone())
            .collect();
        beat(&session, shared, &topics, end, &mut rates, take, print)?;
        if end.is_some() && rates.iter().all(|rate| rate.last.is_none()) {
            return nothing_heard(&session, &self.topic_name);
        }
        Ok(())
    }
}

#[allow(clippy::ptr_arg, reason = "the shape that `beat` hands out")]
fn take(rates: &mut Vec<Rate>) -> Result<()> {
    for rate in rates {
        while let Ok(sample) = rate.listening.samples.try_recv() {
            let time = sample.info().reception_time;
            let now = time
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64();
            match rate.last {
                // The clock was set back: what was measured means nothing.
                Some(last) if now < last => rate.intervals.clear(),
                Some(last) => rate.intervals.push_or_drop_oldest(now - last),
                None => {}
            }
            rate.last = Some(now);
            rate.is_new = true;
        }
    }
    Ok(())
}

fn print_rates(shared: &Shared, rates: &mut [Rate]) -> Result<()> {
    let several = rates.len() > 1;
    let mut rows = Vec::new();
    for rate in rates.iter_mut().filter(|rate| rate.is_new) {
        let Some(summary) = rate.intervals.summary() else {
            continue;
        };
        rate.is_new = false;
        rows.push((rate.listening.topic.as_str(), summary));
    }
    for (topic, summary) in &rows {
        if shared.console.json {
            shared.console.json_line(&json!({
                "topic": topic,
                "rate": frequency(summary),
                "min": summary.min,
                "max": summary.max,
                "std_dev": summary.deviation,
                "window": summary.count,
            }))?;
        } else if !several {
            shared.console.line(format!(
                "average rate: {:.3}\n\tmin: {:.3}s max: {:.3}s std dev: {:.5}s window: {}",
                frequency(summary),
                summary.min,
                summary.max,
                summary.deviation,
                summary.count
            ))?;
        }
    }
    if several && !shared.console.json && !rows.is_empty() {
        shared.console.line(table(&rows))?;
    }
    Ok(())
}

fn frequency(summary: &Summary) -> f64 {
    if summary.mean > 0.0 {
        1.0 / summary.mean
    } else {
        0.0
    }
}

/// ros2's table for several topics: centred headings, cells to the left.
fn table(rows: &[(&str, Summary)]) -> String {
    let headings = [
        "topic",
        "rate",
        "min_delta",
        "max_delta",
        "std_dev",
        "window",
    ];
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|(topic, summary)| {
            [
                (*topic).to_string(),
                format!("{:.3}", frequency(summary)),
                format!("{:.3}", summary.min),
                format!("{:.3}", summary.max),
                format!("{:.5}", summary.deviation),
                summary.count.to_string(),
            ]
        })
        .collect();
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let widest = cells.iter().map(|row| row[column].len()).max();
            heading.len().max(widest.unwrap_or(0))
        })
        .collect();
    let mut lines = vec![
        join(&widths, |column, width| {
            format!("{:^width$}", headings[column])
        }),
        "=".repeat(widths.iter().sum::<usize>() + 3 * (headings.len() - 1)),
    ];
    lines.extend(
        cells
            .iter()
            .map(|row| join(&widths, |column, width| format!("{:<width$}", row[column]))),
    );
    lines.join("\n") + "\n"
}

fn join(widths: &[usize], cell: impl Fn(usize, usize) -> String) -> String {
    let cells: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| cell(column, *width))
        .collect();
    cells.join("   ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_topics_are_a_table_with_aligned_columns() {
        let mut window = Window::new(10);
        window.push_or_drop_oldest(0.5);
        let summary = window.summary().unwrap();
        let text = table(&[("/a", summary), ("/longer", summary)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines.iter().all(|line| line.len() == lines[1].len()),
            "{text}"
        );
        assert!(lines[2].starts_with("/a        2.000"), "{text}");
    }
}
