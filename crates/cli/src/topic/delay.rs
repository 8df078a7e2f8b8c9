//! `pteros topic delay`: reception time minus the stamp in the header.

use super::sampling::{
    SamplingFlags, TopicSamples, no_messages_error, run_every_second, subscribe_when_published,
};
use super::window::SlidingWindow;
use crate::cli_context::CliContext;
use crate::interface::type_names::full_or_as_written;
use crate::value_parsers::positive_count;
use anyhow::{Result, bail};
use clap::Args;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use serde_json::json;

/// Arguments of `topic delay`.
#[derive(Debug, Args)]
pub struct Delay {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "10000", value_parser = positive_count)]
    window: usize,
    #[command(flatten)]
    sampling: SamplingFlags,
    /// Name of the topic, of a type with a header (e.g. /scan)
    topic_name: String,
}

struct DelayState {
    samples: TopicSamples,
    message_type: DynamicType,
    seconds: SlidingWindow,
    is_new: bool,
}

impl Delay {
    /// Prints the delay every second until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let library = cli.library()?;
        let session = self.sampling.sim_time.open(cli)?;
        let clock = self.sampling.sim_time.clock(&session);
        let end = self.sampling.end();
        let topics = [self.topic_name];
        let Some(listening) = subscribe_when_published(&session, &clock, cli, &topics[0], end)?
        else {
            return end.map_or(Ok(()), |_| no_messages_error(&session, &topics));
        };
        let description = library.describe(&full_or_as_written(&library, &listening.type_name))?;
        let has_header = description.type_description.fields.iter().any(|field| {
            field.name == "header" && field.field_type.nested_type_name == "std_msgs/msg/Header"
        });
        if !has_header {
            bail!(
                "topic '{}' is of type {}, which has no header of type std_msgs/msg/Header, so its messages have no time stamp; try: pteros topic hz {}",
                listening.topic,
                listening.type_name,
                listening.topic
            );
        }
        let mut ages = DelayState {
            message_type: DynamicType::new(&description)?,
            samples: listening,
            seconds: SlidingWindow::new(self.window),
            is_new: false,
        };
        let topic = [ages.samples.topic.clone()];
        let show = |ages: &mut DelayState| print(cli, ages);
        run_every_second(&session, &clock, cli, &topic, end, &mut ages, take, show)?;
        if end.is_some() && ages.seconds.summary().is_none() {
            return no_messages_error(&session, &topics);
        }
        Ok(())
    }
}

fn take(ages: &mut DelayState) -> Result<()> {
    while let Ok(timed) = ages.samples.samples.try_recv() {
        let Some(now) = timed.seconds else {
            continue;
        };
        // A message that cannot be decoded is an error of the publisher. It is
        // skipped.
        let Ok(message) = DynamicMessage::from_payload(&ages.message_type, &timed.sample) else {
            continue;
        };
        let stamp =
            number(&message, "header.stamp.sec") + number(&message, "header.stamp.nanosec") * 1e-9;
        ages.seconds.push_or_drop_oldest(now - stamp);
        ages.is_new = true;
    }
    Ok(())
}

fn print(cli: &CliContext, ages: &mut DelayState) -> Result<()> {
    let Some(summary) = ages.seconds.summary() else {
        return Ok(());
    };
    let is_new = std::mem::take(&mut ages.is_new);
    if cli.console.json {
        if is_new {
            cli.console.json_line(&json!({
                "topic": ages.samples.topic,
                "delay": summary.mean,
                "min": summary.min,
                "max": summary.max,
                "std_dev": summary.deviation,
                "window": summary.count,
            }))?;
        }
    } else if is_new {
        cli.console.line(format!(
            "average delay: {:.3}\n\tmin: {:.3}s max: {:.3}s std dev: {:.5}s window: {}",
            summary.mean, summary.min, summary.max, summary.deviation, summary.count
        ))?;
    } else {
        cli.console.line("no new messages")?;
    }
    Ok(())
}

fn number(message: &DynamicMessage, path: &str) -> f64 {
    let value = message.get(path).ok().and_then(|value| value.as_f64());
    // The type has these fields, as checked above.
    value.unwrap_or(0.0)
}
