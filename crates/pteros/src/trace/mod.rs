//! Tracing: latency of each message per layer, and causal chains of topics.
//!
//! A context is [traced](crate::ContextOptions::trace) by `--trace FOLDER` or
//! PTEROS_TRACE, without a change to the program. It time-stamps each message at
//! layer boundaries and records the callback that published it. Its [`Recording`]
//! is a file of fixed size whose oldest records are overwritten; it survives any
//! end of the process. A [`Trace`] joins the recordings of several processes of one
//! host. It yields each [`Hop`] of a message with the time per layer, and each
//! [`ChainRun`] through a chain of topics.
//!
//! ```
//! use std::time::Duration;
//!
//! use pteros::interfaces::std_msgs::msg::String as Text;
//! use pteros::prelude::*;
//! use pteros::trace::{LatencyStats, Trace, TraceOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ContextOptions {
//!     trace: Some(TraceOptions::default()), // in memory
//!     ..ContextOptions::local(87)
//! };
//! let context = Context::with_options(options)?;
//! let node = context.create_node("both")?;
//! let publisher = node.create_publisher::<Text>("chatter".keep_last(10))?;
//! let _sub = node.create_subscription("chatter".keep_last(10), |_: Sample<Text>| {})?;
//! publisher.publish(&Text { data: "hello".into() })?;
//! node.spin_once(Duration::from_secs(1));
//!
//! let trace = Trace::new(context.trace_recording());
//! let hops: Vec<_> = trace.hops().filter(|hop| hop.topic == "/chatter").collect();
//! assert_eq!(hops.len(), 1);
//! let latency = LatencyStats::of(hops.iter().map(|hop| hop.latency()));
//! println!("{} ns from publish call to callback", latency.median);
//! # Ok(())
//! # }
//! ```

mod chains;
mod current_callback;
mod hops;
mod latency_stats;
mod trace_file;

pub use chains::{ChainRun, TOPICS_MAX};
pub use current_callback::CurrentCallback;
pub use hops::{CallbackRun, Hop, Layer, TracedEndpoint};
pub use latency_stats::LatencyStats;
pub use pteros_runtime::trace::{
    BYTES_DEFAULT, BYTES_MAX, BYTES_MIN, EXTENSION, FILES_MAX, Recording, TraceEvent, TraceHeader,
    TraceOptions, TraceReadError, TraceRecord,
};
pub use trace_file::{Trace, TraceError};

#[cfg(test)]
mod tests;
