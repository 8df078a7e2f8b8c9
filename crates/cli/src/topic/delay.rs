//! `pteros topic delay`: reception time less the header's stamp.

use super::listening::{Listening, ListeningFlags, beat, listen, nothing_heard};
use super::window::Window;
use crate::interface::named::full_or_as_written;
use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_count;
use anyhow::{Result, bail};
use clap::Args;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use serde_json::json;
use std::time::UNIX_EPOCH;

/// Arguments of `topic delay`.
#[derive(Debug, Args)]
pub struct Delay {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "10000", value_parser = positive_count)]
    window: usize,
    #[command(flatten)]
    listening: ListeningFlags,
    /// Name of the topic, of a type with a header (e.g. /scan)
    topic_name: String,
}

struct Ages {
    listening: Listening,
    message_type: DynamicType,
    seconds: Window,
    is_new: bool,
}

impl Delay {
    /// Prints a delay each second until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let library = shared.library()?;
        let session = Session::open(shared, None)?;
        let end = self.listening.end();
        let topics = [self.topic_name];
        let Some(listening) = listen(&session, shared, &topics[0], end)? else {
            return end.map_or(Ok(()), |_| nothing_heard(&session, &topics));
        };
        let description = library.describe(&full_or_as_written(&library, &listening.type_name))?;
        let has_header = description.type_description.fields.iter().any(|field| {
            field.name == "header" && field.field_type.nested_type_name == "std_msgs/msg/Header"
        });
        if !has_header {
            bail!(
                "topic '{}' is of type {}, which has no header of type std_msgs/msg/Header, so nothing says when its messages were made; try: pteros topic hz {}",
                listening.topic,
                listening.type_name,
                listening.topic
            );
        }
        let mut ages = Ages {
            message_type: DynamicType::new(&description)?,
            listening,
            seconds: Window::new(self.window),
            is_new: false,
        };
        let topic = [ages.listening.topic.clone()];
        beat(&session, shared, &topic, end, &mut ages, take, |ages| {
            print(shared, ages)
        })?;
        if end.is_some() && ages.seconds.summary().is_none() {
            return nothing_heard(&session, &topics);
        }
        Ok(())
    }
}

fn take(ages: &mut Ages) -> Result<()> {
    while let Ok(sample) = ages.listening.samples.try_recv() {
        // A message that does not decode is the publisher's mistake, not ours.
        let Ok(message) = DynamicMessage::from_payload(&ages.message_type, &sample) else {
            continue;
        };
        let stamp =
            number(&message, "header.stamp.sec") + number(&message, "header.stamp.nanosec") * 1e-9;
        let time = sample.info().reception_time;
        let now = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        ages.seconds.push_or_drop_oldest(now.as_secs_f64() - stamp);
        ages.is_new = true;
    }
    Ok(())
}

fn print(shared: &Shared, ages: &mut Ages) -> Result<()> {
    let Some(summary) = ages.seconds.summary() else {
        return Ok(());
    };
    let is_new = std::mem::take(&mut ages.is_new);
    if shared.console.json {
        if is_new {
            shared.console.json_line(&json!({
                "topic": ages.listening.topic,
                "delay": summary.mean,
                "min": summary.min,
                "max": summary.max,
                "std_dev": summary.deviation,
                "window": summary.count,
            }))?;
        }
    } else if is_new {
        shared.console.line(format!(
            "average delay: {:.3}\n\tmin: {:.3}s max: {:.3}s std dev: {:.5}s window: {}",
            summary.mean, summary.min, summary.max, summary.deviation, summary.count
        ))?;
    } else {
        shared.console.line("no new messages")?;
    }
    Ok(())
}

fn number(message: &DynamicMessage, path: &str) -> f64 {
    let value = message.get(path).ok().and_then(|value| value.as_f64());
    // The type was checked to have these fields.
    value.unwrap_or(0.0)
}
