//! Publishers at a rate, and the time that each call of `publish` takes.

use anyhow::{Result, bail};
use clap::Args;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

use super::process::{
    STAMP_BYTES, TIMEOUT, cpu_ns, monotonic_ns, open, quantiles_text, sleep_until, topic_names,
};

/// Pause after matching. Discovery is over by then.
const SETTLE_NS: u64 = 300_000_000;

/// Publishes and stays until it is killed.
#[derive(Debug, Args)]
pub struct Publish {
    /// Start of the topics' names
    #[arg(long)]
    prefix: String,
    /// Topics with a publisher each
    #[arg(long)]
    topics: usize,
    /// Bytes of a payload
    #[arg(long)]
    size: usize,
    /// Messages per second, of all topics together
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Messages of all topics together
    #[arg(long)]
    count: u64,
    /// Depth of the publishers' histories
    #[arg(long)]
    depth: usize,
    /// Subscriptions of each topic to wait for
    #[arg(long)]
    subscriptions: usize,
}

impl Publish {
    pub fn run(self) -> Result<()> {
        let (_context, node, _executor) = open("bag_publisher")?;
        let create = |topic: &String| {
            let qos = topic.as_str().keep_last(self.depth);
            node.create_publisher::<UInt8MultiArray>(qos)
        };
        let names = topic_names(&self.prefix, self.topics);
        let publishers = names.iter().map(create).collect::<Result<Vec<_>, _>>()?;
        println!("ready");
        for publisher in &publishers {
            if !publisher.wait_for_matched(self.subscriptions, TIMEOUT) {
                bail!("topic {} was not matched in {TIMEOUT:?}", publisher.topic());
            }
        }
        sleep_until(monotonic_ns() + SETTLE_NS);
        let mut message = UInt8MultiArray {
            data: pixels(self.size),
            ..UInt8MultiArray::default()
        };
        let mut took = Vec::with_capacity(usize::try_from(self.count)?);
        let (begin, cpu) = (monotonic_ns(), cpu_ns());
        for (number, publisher) in (0..self.count).zip(publishers.iter().cycle()) {
            sleep_until(begin + number * 1_000_000_000 / self.rate);
            let before = monotonic_ns();
            if let Some(stamp) = message.data.first_chunk_mut::<STAMP_BYTES>() {
                *stamp = before.to_le_bytes();
            }
            publisher.publish(&message)?;
            took.push(monotonic_ns() - before);
        }
        let (end, cpu) = (monotonic_ns(), cpu_ns() - cpu);
        for publisher in &publishers {
            publisher.wait_for_all_acked(TIMEOUT);
        }
        println!(
            "sent count={} begin_ns={begin} end_ns={end} cpu_ms={:.3} {}",
            self.count,
            cpu as f64 / 1e6,
            quantiles_text(took)
        );
        loop {
            std::thread::park();
        }
    }
}

/// A picture as a camera's: a gradient with four bits of noise. So compression has as
/// much to do as with real data: zeros would measure nothing.
fn pixels(size: usize) -> Vec<u8> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let pixel = |at: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (at / 64).to_le_bytes()[0].wrapping_add(random.to_le_bytes()[3] & 0x0f)
    };
    (0..size).map(pixel).collect()
}
