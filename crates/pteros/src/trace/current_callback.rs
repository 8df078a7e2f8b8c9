//! Current callback: carries the cause of published messages to other threads.

use pteros_runtime::trace::{SpanGuard, span};

/// The callback that a thread runs, as the cause of what it publishes.
///
/// Pass it to threads that continue the callback's work: in a trace, messages
/// published within [`CurrentCallback::run`] are caused by it. Costs nothing
/// without tracing.
///
/// ```
/// use std::thread;
///
/// use pteros::interfaces::std_msgs::msg::String as Text;
/// use pteros::prelude::*;
/// use pteros::trace::CurrentCallback;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::with_options(ContextOptions::local(88))?.create_node("worker")?;
/// let results = node.create_publisher::<Text>("results".keep_last(10))?;
/// let _jobs = node.create_subscription("jobs".keep_last(10), move |job: Sample<Text>| {
///     let (results, cause) = (results.clone(), CurrentCallback::current());
///     thread::spawn(move || cause.run(|| results.publish(&job)));
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentCallback {
    /// 0 is none.
    span: u64,
}

impl CurrentCallback {
    /// The current callback of this thread, or none.
    pub fn current() -> Self {
        Self { span: span() }
    }

    /// Runs `work` on this thread as part of that callback, or unchanged outside of
    /// one.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _on = (self.span != 0).then(|| SpanGuard::span(self.span));
        work()
    }
}
