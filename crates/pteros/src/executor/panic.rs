//! What becomes of a callback that panics.

use std::any::Any;

/// What ends when user code panics. Either way the panic is reported with the
/// callback and its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum PanicPolicy {
    /// The callback alone: it is not called again. What it would have got waits
    /// in its queue as its QoS says.
    Callback,
    /// The node: it leaves the executor, and none of its callbacks runs there.
    Node,
    /// The spin: the panic goes on out of it, which ends the process unless
    /// somebody catches it.
    #[default]
    Process,
}

pub(crate) type Payload = Box<dyn Any + Send>;

/// What a panic says.
pub(crate) fn text(payload: &Payload) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}
