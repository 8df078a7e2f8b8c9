//! Async tasks: futures that executors run without an async runtime.
//!
//! A future is a task of its node, like any callback. Its waker puts it into the
//! ready queue of the executor that spins its callback group, and each poll is one
//! callback. The gate of a mutually exclusive group is held while the future is
//! polled, not while it waits. There are no threads or event sources of its own.

mod async_slots;
mod spawn;

pub(crate) use async_slots::AsyncSlots;
pub use spawn::TaskHandle;

pub use crate::node::{CallbackOutput, UserFuture};
pub use crate::sleep::Sleep;
pub use crate::subscription::NextMessage;
