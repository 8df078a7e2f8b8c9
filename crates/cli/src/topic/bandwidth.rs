//! `pteros topic bw`: bandwidth in bytes of serialized messages per second.

use super::sampling::{
    SamplingFlags, TopicSamples, no_messages_error, run_every_second, subscribe_when_published,
};
use super::window::{SlidingWindow, Summary};
use crate::cli_context::CliContext;
use crate::sim_time::SessionClock;
use crate::value_parsers::positive_count;
use anyhow::Result;
use clap::Args;
use serde_json::json;

/// Arguments of `topic bw`.
#[derive(Debug, Args)]
pub struct Bandwidth {
    /// Average over at most this many messages
    #[arg(short = 'w', long, value_name = "N", default_value = "100", value_parser = positive_count)]
    window: usize,
    #[command(flatten)]
    sampling: SamplingFlags,
    /// Name of the topic (e.g. /chatter)
    topic_name: String,
}

struct BandwidthState {
    samples: TopicSamples,
    clock: SessionClock,
    /// Reception times in seconds, parallel to the sizes.
    times: SlidingWindow,
    sizes: SlidingWindow,
    newest: Option<f64>,
}

impl Bandwidth {
    /// Prints the bandwidth every second until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = self.sampling.sim_time.open(cli)?;
        let clock = self.sampling.sim_time.clock(&session);
        let end = self.sampling.end();
        let topics = [self.topic_name];
        let Some(listening) = subscribe_when_published(&session, &clock, cli, &topics[0], end)?
        else {
            return end.map_or(Ok(()), |_| no_messages_error(&session, &topics));
        };
        if !cli.console.json {
            cli.console
                .row(format!("Subscribed to [{}]", listening.topic))?;
        }
        let mut flow = BandwidthState {
            samples: listening,
            clock: clock.clone(),
            times: SlidingWindow::new(self.window),
            sizes: SlidingWindow::new(self.window),
            newest: None,
        };
        let topic = [flow.samples.topic.clone()];
        let show = |flow: &mut BandwidthState| print(cli, flow);
        run_every_second(&session, &clock, cli, &topic, end, &mut flow, take, show)?;
        if end.is_some() && flow.sizes.summary().is_none() {
            return no_messages_error(&session, &topics);
        }
        Ok(())
    }
}

fn take(flow: &mut BandwidthState) -> Result<()> {
    while let Ok(timed) = flow.samples.samples.try_recv() {
        let Some(now) = timed.steady_seconds else {
            continue;
        };
        if flow.newest.is_some_and(|newest| now < newest) {
            // Simulated time was reset.
            flow.times.clear();
            flow.sizes.clear();
        }
        flow.newest = Some(now);
        flow.times.push_or_drop_oldest(now);
        flow.sizes.push_or_drop_oldest(timed.sample.len() as f64);
    }
    Ok(())
}

fn print(cli: &CliContext, flow: &mut BandwidthState) -> Result<()> {
    let (Some(sizes), Some(oldest)) = (flow.sizes.summary(), flow.times.oldest()) else {
        return Ok(());
    };
    let seconds = flow.clock.steady_seconds().unwrap_or(oldest) - oldest;
    if sizes.count < 2 || seconds <= 0.0 {
        return Ok(());
    }
    let per_second = sizes.sum / seconds;
    if cli.console.json {
        cli.console.json_line(&json!({
            "topic": flow.samples.topic,
            "bytes_per_second": per_second,
            "messages": sizes.count,
            "mean_bytes": sizes.mean,
            "min_bytes": sizes.min,
            "max_bytes": sizes.max,
        }))?;
    } else {
        cli.console.line(text(per_second, &sizes))?;
    }
    Ok(())
}

/// ros2's format: all numbers in the unit that fits the bandwidth.
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
        let mut sizes = SlidingWindow::new(3);
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
