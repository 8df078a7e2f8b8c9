//! When messages were where, and what came of them.
//!
//! A context that is [traced](crate::ContextOptions::trace), as `--trace FOLDER`
//! or PTEROS_TRACE say it without a change to the program, stamps each message
//! where it passes from one layer to the next, and notes the callback in which
//! it was published. Its [`Recording`] is a file of fixed size whose oldest
//! records make room; it survives however the process ends.
//!
//! ```
//! use pteros::prelude::*;
//! use pteros::trace::TraceOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = ContextOptions {
//!     trace: Some(TraceOptions::default()), // in memory
//!     ..ContextOptions::local(87)
//! };
//! let context = Context::with_options(options)?;
//! // ... publish and spin ...
//! let recording = context.recording().expect("it is traced");
//! assert_eq!(recording.lost, 0);
//! # Ok(())
//! # }
//! ```

pub use pteros_rmw::trace::{
    BYTES_DEFAULT, BYTES_MAX, BYTES_MIN, EXTENSION, FILES_MAX, Head, NoTrace, Record, Recording,
    Step, TraceOptions,
};
