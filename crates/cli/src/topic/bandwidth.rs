//! `pteros topic bw`: bytes of serialized messages per second.

use super::listening::{Listening, ListeningFlags, beat, listen, nothing_heard};
use super::window::{Summary, Window};
use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_count;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::time::Instant;

/// Arguments of `topic bw`.
#[derive(Debug, Args)]
pub struct Bandwidth {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "100", value_parser = positive_count)]
    window: usize,
    #[command(flatten)]
    listening: ListeningFlags,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

struct Flow {
    listening: Listening,
    started: Instant,
    /// Arrival times in seconds since `started`, beside the sizes.
    times: Window,
    sizes: Window,
}

impl Bandwidth {
    /// Prints a bandwidth each second until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let end = self.listening.end();
        let topics = [self.topic_name];
        let Some(listening) = listen(&session, shared, &topics[0], end)? else {
            return end.map_or(Ok(()), |_| nothing_heard(&session, &topics));
        };
        if !shared.console.json {
            shared
                .console
                .line(format!("Subscribed to [{}]", listening.topic))?;
        }
        let mut flow = Flow {
            listening,
            started: Instant::now(),
            times: Window::new(self.window),
            sizes: Window::new(self.window),
        };
        let topic = [flow.listening.topic.clone()];
        beat(&session, shared, &topic, end, &mut flow, take, |flow| {
            print(shared, flow)
        })?;
        if end.is_some() && flow.sizes.summary().is_none() {
            return nothing_heard(&session, &topics);
        }
        Ok(())
    }
}

fn take(flow: &mut Flow) -> Result<()> {
    while let Ok(sample) = flow.listening.samples.try_recv() {
        flow.times
            .push_or_drop_oldest(flow.started.elapsed().as_secs_f64());
        flow.sizes.push_or_drop_oldest(sample.len() as f64);
    }
    Ok(())
}

fn print(shared: &Shared, flow: &mut Flow) -> Result<()> {
    let (Some(sizes), Some(oldest)) = (flow.sizes.summary(), flow.times.oldest()) else {
        return Ok(());
    };
    let seconds = flow.started.elapsed().as_secs_f64() - oldest;
    if sizes.count < 2 || seconds <= 0.0 {
        return Ok(());
    }
    let per_second = sizes.sum / seconds;
    if shared.console.json {
        shared.console.json_line(&json!({
            "topic": flow.listening.topic,
            "bytes_per_second": per_second,
            "messages": sizes.count,
            "mean_bytes": sizes.mean,
            "min_bytes": sizes.min,
            "max_bytes": sizes.max,
        }))?;
    } else {
        shared.console.line(text(per_second, &sizes))?;
    }
    Ok(())
}

/// ros2's form: all numbers in the unit that suits the bandwidth.
fn text(per_second: f64, sizes: &Summary) -> String {
    let unit = |bytes: f64| {
        if per_second < 1e3 {
            format!("{bytes:.0} B")
        } else if per_second < 1e6 {
            format!("{:.2} KB", bytes / 1e3)
        } else {
            format!("{:.2} MB", bytes / 1e6)
        }
    };
    format!(
        "{}/s from {} messages\n\tMessage size mean: {} min: {} max: {}",
        unit(per_second),
        sizes.count,
        unit(sizes.mean),
        unit(sizes.min),
        unit(sizes.max)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_of_the_bandwidth() {
        let mut sizes = Window::new(3);
        sizes.push_or_drop_oldest(24.0);
        let sizes = sizes.summary().unwrap();
        assert_eq!(
            text(24.0, &sizes),
            "24 B/s from 1 messages\n\tMessage size mean: 24 B min: 24 B max: 24 B"
        );
        assert!(
            text(2_500.0, &sizes)
                .starts_with("2.50 KB/s from 1 messages\n\tMessage size mean: 0.02 KB")
        );
        assert!(text(2.5e6, &sizes).starts_with("2.50 MB/s"));
    }
}
