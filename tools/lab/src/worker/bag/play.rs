//! The player's spacing: a recording of one message per period is played to a
//! subscription of another context. A loop of bare sleeps runs before and after it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;
use pteros_bag::{BagOptions, BagReader, BagTopic, BagWriter, Player, PlayerOptions};

use super::process::{TIMEOUT, monotonic_ns, node, open, quantiles_text, sleep_until};

/// Where the recording begins, in nanoseconds since 1970.
const START_NS: u64 = 1_700_000_000_000_000_000;

/// Records, plays, and measures.
#[derive(Debug, Args)]
pub struct Play {
    /// The new bag
    #[arg(long)]
    folder: PathBuf,
    /// The topic
    #[arg(long)]
    topic: String,
    /// Messages per second
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Messages
    #[arg(long)]
    count: usize,
}

impl Play {
    pub fn run(self) -> Result<()> {
        self.write_bag()?;
        let mut of_timer = self.timer_errors(self.count / 2);
        let played = self.play()?;
        of_timer.extend(self.timer_errors(self.count / 2));
        println!(
            "spaced count={} {}",
            played.len() + 1,
            quantiles_text(played)
        );
        println!("timed {}", quantiles_text(of_timer));
        Ok(())
    }

    fn period_ns(&self) -> u64 {
        1_000_000_000 / self.rate
    }

    fn write_bag(&self) -> Result<()> {
        let mut writer = BagWriter::create(&self.folder, BagOptions::default())?;
        let channel = writer.add_topic(BagTopic {
            name: format!("/{}", self.topic),
            type_name: "std_msgs/msg/Int64".into(),
            serialization_format: "cdr".into(),
            definition: "int64 data\n".into(),
            offered_qos: vec![QosProfile::default().keep_last(1000)],
            ..BagTopic::default()
        })?;
        for number in 0..self.count {
            let number = u64::try_from(number)?;
            let time = START_NS + number * self.period_ns();
            let mut payload = vec![0, 1, 0, 0];
            payload.extend(number.to_le_bytes());
            writer.write(channel, time, time, &payload)?;
        }
        writer.finish(&Default::default())?;
        Ok(())
    }

    /// How much each wake-up of a bare loop differs from its period.
    fn timer_errors(&self, count: usize) -> Vec<u64> {
        let begin = monotonic_ns() + self.period_ns();
        let mut woken = Vec::with_capacity(count);
        for number in 0..u64::try_from(count).unwrap_or(0) {
            sleep_until(begin + number * self.period_ns());
            woken.push(monotonic_ns());
        }
        self.errors(&woken)
    }

    /// How much each space between two moments differs from the period.
    fn errors(&self, moments: &[u64]) -> Vec<u64> {
        let spaces = moments.windows(2).filter_map(|two| match two {
            [before, after] => Some(after.saturating_sub(*before)),
            _ => None,
        });
        spaces
            .map(|space| space.abs_diff(self.period_ns()))
            .collect()
    }

    /// The errors of the spaces between the moments of publication.
    fn play(&self) -> Result<Vec<u64>> {
        let (context, player_node, executor) = open("bag_player")?;
        let other = Context::with_options(ContextOptions::from_process()?)?;
        let listener = node(&other, "bag_listener")?;
        let beside = SingleThreadedExecutor::new(&other);
        beside.add_node(&listener)?;
        let received = Arc::new(Mutex::new(Vec::with_capacity(self.count)));
        let (sink, count) = (received.clone(), self.count);
        let on_message = move |sample: Sample<Int64>| {
            let published = sample.info().source_timestamp;
            let mut received = sink.lock().unwrap_or_else(PoisonError::into_inner);
            if received.len() < count {
                received.push((sample.data, published));
            }
        };
        let topic = self.topic.as_str().keep_last(1000);
        let _subscription = listener.create_subscription(topic, on_message)?;
        let length = Duration::from_nanos(self.period_ns()) * u32::try_from(self.count)?;
        let thread = std::thread::spawn(move || {
            beside.spin_until(
                || {
                    let received = received.lock().unwrap_or_else(PoisonError::into_inner);
                    received.len() == count
                },
                length + 2 * TIMEOUT,
            );
            std::mem::take(&mut *received.lock().unwrap_or_else(PoisonError::into_inner))
        });
        let options = PlayerOptions {
            wait_for_matched: Some(TIMEOUT),
            ..PlayerOptions::default()
        };
        let player = Player::start(&player_node, BagReader::open(&self.folder)?, options)?;
        executor.spin_until(|| player.summary().is_some(), length + 2 * TIMEOUT);
        let Some(summary) = player.summary() else {
            bail!("{} was not played to its end", self.folder.display());
        };
        let received = match thread.join() {
            Ok(received) => received,
            Err(_) => bail!("the subscription's thread panicked"),
        };
        drop(context);
        let in_order = received.iter().enumerate();
        let is_whole = in_order
            .clone()
            .all(|(at, (number, _))| i64::try_from(at).is_ok_and(|at| at == *number));
        if received.len() != self.count || !is_whole {
            bail!(
                "{} of {} messages arrived in order; {} were published ({})",
                received.len(),
                self.count,
                summary.published,
                summary.problems.join("; ")
            );
        }
        let nanos = |published: Option<SystemTime>| {
            let since = published?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            u64::try_from(since.as_nanos()).ok()
        };
        let moments: Option<Vec<u64>> = received.iter().map(|(_, at)| nanos(*at)).collect();
        let Some(moments) = moments else {
            bail!("messages arrived without a source timestamp");
        };
        Ok(self.errors(&moments))
    }
}
