//! The cause of what is published, taken along to other threads.

use pteros_rmw::trace::{On, span};

/// The callback that a thread runs, for threads that go on with its work: what is
/// published within [`Cause::run`] comes of it in a trace. Costs nothing where
/// nothing is traced.
///
/// ```
/// use std::thread;
///
/// use pteros::interfaces::std_msgs::msg::String as Text;
/// use pteros::prelude::*;
/// use pteros::trace::Cause;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::with_options(ContextOptions::local(88))?.node("worker")?;
/// let results = node.create_publisher::<Text>("results", 10)?;
/// let _jobs = node.create_subscription("jobs", 10, move |job: Sample<Text>| {
///     let (results, cause) = (results.clone(), Cause::here());
///     thread::spawn(move || cause.run(|| results.publish(&job)));
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// 0 is none.
    span: u64,
}

impl Cause {
    /// Of what this thread publishes now: a callback, or nothing.
    pub fn here() -> Self {
        Self { span: span() }
    }

    /// Runs `work` on this thread as a part of that callback. Of nothing: as it is.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _on = (self.span != 0).then(|| On::span(self.span));
        work()
    }
}
