//! A subscription of another node: how long messages take from `publish` to its
//! callback.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros::subscription::{MessageView, in_place};

use super::process::{STAMP_BYTES, TIMEOUT, monotonic_ns, open, quantiles_text};

/// Messages that do not come for so long are lost.
const QUIET: Duration = Duration::from_secs(2);

/// Measures until all messages are there, or none comes any more.
#[derive(Debug, Args)]
pub struct Listen {
    /// The topic
    #[arg(long)]
    topic: String,
    /// Messages to wait for
    #[arg(long)]
    count: usize,
    /// Depth of the subscription's queue
    #[arg(long)]
    depth: usize,
}

impl Listen {
    pub fn run(self) -> Result<()> {
        let (_context, node, executor) = open("bag_listener")?;
        let took = Arc::new(Mutex::new(Vec::with_capacity(self.count)));
        let (sink, count) = (took.clone(), self.count);
        let on_message = move |message: MessageView<'_, UInt8MultiArray>| {
            let stamp = message.data.first_chunk::<STAMP_BYTES>();
            let sent = stamp.map_or(0, |stamp| u64::from_le_bytes(*stamp));
            let mut took = sink.lock().unwrap_or_else(PoisonError::into_inner);
            if took.len() < count {
                took.push(monotonic_ns().saturating_sub(sent));
            }
        };
        let topic = self.topic.as_str().keep_last(self.depth);
        let _subscription = node.create_subscription(topic, in_place(on_message))?;
        println!("ready");
        let received = || took.lock().unwrap_or_else(PoisonError::into_inner).len();
        executor.spin_until(|| received() > 0, TIMEOUT);
        let mut before = 0;
        while received() < self.count && received() > before {
            before = received();
            executor.spin_until(|| received() >= self.count, QUIET);
        }
        let took = std::mem::take(&mut *took.lock().unwrap_or_else(PoisonError::into_inner));
        println!(
            "took count={} lost={} {}",
            took.len(),
            self.count - took.len(),
            quantiles_text(took)
        );
        Ok(())
    }
}
