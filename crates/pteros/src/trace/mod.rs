//! When messages were where, and what came of them.
//!
//! A context that is [traced](crate::ContextOptions::trace), as `--trace FOLDER`
//! or PTEROS_TRACE say it without a change to the program, stamps each message
//! where it passes from one layer to the next, and notes the callback in which
//! it was published. Its [`Recording`] is a file of fixed size whose oldest
//! records make room; it survives however the process ends. A [`Trace`] puts the
//! recordings of several processes of one host together: each [`Hop`] of a
//! message with the time that it spent in every layer, and each [`Run`] of a
//! chain of topics, where one message came of another.
//!
//! ```
//! use std::time::Duration;
//!
//! use pteros::interfaces::std_msgs::msg::String as Text;
//! use pteros::prelude::*;
//! use pteros::trace::{Spread, Trace, TraceOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ContextOptions {
//!     trace: Some(TraceOptions::default()), // in memory
//!     ..ContextOptions::local(87)
//! };
//! let context = Context::with_options(options)?;
//! let node = context.node("both")?;
//! let publisher = node.create_publisher::<Text>("chatter", 10)?;
//! let _sub = node.create_subscription("chatter", 10, |_: Sample<Text>| {})?;
//! publisher.publish(&Text { data: "hello".into() })?;
//! node.spin_once(Duration::from_secs(1));
//!
//! let trace = Trace::new(context.recording());
//! let hops: Vec<_> = trace.hops().filter(|hop| hop.topic == "/chatter").collect();
//! assert_eq!(hops.len(), 1);
//! let latency = Spread::of(hops.iter().map(|hop| hop.latency()));
//! println!("{} ns from publish call to callback", latency.median);
//! # Ok(())
//! # }
//! ```

mod cause;
mod chains;
mod hops;
mod load;
mod spread;

pub use cause::Cause;
pub use chains::{Run, TOPICS_MAX};
pub use hops::{Callback, Hop, Layer, Owner};
pub use load::{Trace, TraceError};
pub use pteros_rmw::trace::{
    BYTES_DEFAULT, BYTES_MAX, BYTES_MIN, EXTENSION, FILES_MAX, Head, NoTrace, Record, Recording,
    Step, TraceOptions,
};
pub use spread::Spread;

#[cfg(test)]
mod tests;
