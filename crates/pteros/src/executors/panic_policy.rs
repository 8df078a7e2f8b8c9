//! Panic policy: what an executor does after a callback panicked.

use std::any::Any;

/// The scope that a panic in user code ends. Every panic is logged with its
/// callback and node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum PanicPolicy {
    /// The callback is not called again. Its messages stay in its queue as its QoS
    /// allows.
    Callback,
    /// The node leaves the executor; none of its callbacks runs there.
    Node,
    /// The spin ends and resumes the panic, which ends the process unless the
    /// caller catches it.
    #[default]
    Process,
}

pub(crate) type PanicPayload = Box<dyn Any + Send>;

pub(crate) fn panic_message(payload: &PanicPayload) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}
