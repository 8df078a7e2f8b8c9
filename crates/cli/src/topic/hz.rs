//! `pteros topic hz`: intervals between the receptions of serialized messages.
//! Messages are not decoded without a filter, so decoding does not limit the rate.

use super::lookup::message_type;
use super::python_filter::PythonFilter;
use super::sampling::{
    SamplingFlags, TopicSamples, no_messages_error, run_every_second, subscribe_when_published,
};
use super::window::{SlidingWindow, Summary};
use crate::cli_context::CliContext;
use crate::sim_time::SimTimeFlag;
use crate::value_parsers::positive_count;
use anyhow::Result;
use clap::Args;
use pteros::log::escape_row;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, Value};
use serde_json::json;

/// Arguments of `topic hz`.
#[derive(Debug, Args)]
pub struct Hz {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "10000", value_parser = positive_count)]
    window: usize,
    /// Python expression over the message m; only messages of which it is true are
    /// counted (e.g. "m.data > 5")
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Measure in wall time, whatever --use-sim-time says
    #[arg(long)]
    wall_time: bool,
    #[command(flatten)]
    sampling: SamplingFlags,
    /// Names of the topics (e.g. /chatter)
    #[arg(required = true)]
    topic_name: Vec<String>,
}

struct RateState {
    samples: TopicSamples,
    filter: Option<TypedFilter>,
    intervals: SlidingWindow,
    last: Option<f64>,
    is_new: bool,
}

/// A filter and the type of the messages.
struct TypedFilter {
    filter: PythonFilter,
    message_type: DynamicType,
}

impl TypedFilter {
    /// A message that cannot be decoded is an error of the publisher. It does not
    /// count.
    fn accepts(&mut self, bytes: &[u8]) -> Result<bool> {
        match DynamicMessage::from_payload(&self.message_type, bytes) {
            Ok(message) => self.filter.accepts(&Value::Message(message)),
            Err(_) => Ok(false),
        }
    }
}

impl Hz {
    /// Prints the rate every second until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if let Some(text) = &self.filter {
            PythonFilter::parse(text)?;
        }
        let sim_time = if self.wall_time {
            SimTimeFlag::default()
        } else {
            self.sampling.sim_time
        };
        let session = sim_time.open(cli)?;
        let clock = sim_time.clock(&session);
        let end = self.sampling.end();
        let several = self.topic_name.len() > 1;
        let mut rates = Vec::new();
        for topic in &self.topic_name {
            let Some(listening) = subscribe_when_published(&session, &clock, cli, topic, end)?
            else {
                return self
                    .sampling
                    .end()
                    .map_or(Ok(()), |_| no_messages_error(&session, &self.topic_name));
            };
            if several && !cli.console.json {
                cli.console
                    .row(format!("Subscribed to [{}]", listening.topic))?;
            }
            let filter = match &self.filter {
                None => None,
                Some(text) => Some(TypedFilter {
                    filter: PythonFilter::parse(text)?,
                    message_type: message_type(
                        cli,
                        &session,
                        &listening.topic,
                        &listening.type_name,
                        "",
                    )?,
                }),
            };
            rates.push(RateState {
                samples: listening,
                filter,
                intervals: SlidingWindow::new(self.window),
                last: None,
                is_new: false,
            });
        }
        let print = |rates: &mut Vec<RateState>| print_rates(cli, rates);
        let topics: Vec<String> = rates
            .iter()
            .map(|rate| rate.samples.topic.clone())
            .collect();
        run_every_second(&session, &clock, cli, &topics, end, &mut rates, take, print)?;
        if end.is_some() && rates.iter().all(|rate| rate.last.is_none()) {
            return no_messages_error(&session, &self.topic_name);
        }
        Ok(())
    }
}

#[allow(
    clippy::ptr_arg,
    reason = "`run_every_second` passes its state by this type"
)]
fn take(rates: &mut Vec<RateState>) -> Result<()> {
    for rate in rates {
        while let Ok(timed) = rate.samples.samples.try_recv() {
            let Some(now) = timed.seconds else {
                continue;
            };
            if let Some(filter) = &mut rate.filter
                && !filter.accepts(&timed.sample)?
            {
                continue;
            }
            match rate.last {
                // The clock was set back, so the intervals are invalid.
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

fn print_rates(cli: &CliContext, rates: &mut [RateState]) -> Result<()> {
    let several = rates.len() > 1;
    let mut rows = Vec::new();
    for rate in rates.iter_mut().filter(|rate| rate.is_new) {
        let Some(summary) = rate.intervals.summary() else {
            continue;
        };
        rate.is_new = false;
        rows.push((rate.samples.topic.as_str(), summary));
    }
    for (topic, summary) in &rows {
        if cli.console.json {
            cli.console.json_line(&json!({
                "topic": topic,
                "rate": frequency(summary),
                "min": summary.min,
                "max": summary.max,
                "std_dev": summary.deviation,
                "window": summary.count,
            }))?;
        } else if !several {
            cli.console.line(format!(
                "average rate: {:.3}\n\tmin: {:.3}s max: {:.3}s std dev: {:.5}s window: {}",
                frequency(summary),
                summary.min,
                summary.max,
                summary.deviation,
                summary.count
            ))?;
        }
    }
    if several && !cli.console.json && !rows.is_empty() {
        cli.console.line(table(&rows))?;
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

/// ros2's table for several topics: centred headings, left-aligned cells.
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
                escape_row(topic).into_owned(),
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
        let mut window = SlidingWindow::new(10);
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
