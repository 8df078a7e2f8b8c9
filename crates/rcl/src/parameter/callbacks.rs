//! Parameter callbacks: pre-set, on-set and post-set, as in rclcpp.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use pteros_interfaces::rcl_interfaces::msg;

use super::error::SetParameterError;
use super::parameter_store::Parameter;

type PreSet = dyn Fn(&mut Vec<Parameter>) + Send + Sync;
type OnSet = dyn Fn(&[Parameter]) -> Result<(), String> + Send + Sync;
type PostSet = dyn Fn(&[Parameter]) + Send + Sync;

/// A pre-set callback of a change.
pub type PreSetCall<'h> = Box<dyn Fn(&mut Vec<Parameter>) -> Result<(), SetParameterError> + 'h>;
/// An on-set or post-set callback of a change.
pub type CheckCall<'h> = Box<dyn Fn(&[Parameter]) -> Result<(), SetParameterError> + 'h>;

/// What a change of parameters calls in the language of the node. The store decides when,
/// and combines the results.
///
/// An error ends the change. One that only the language knows, such as an exception, is
/// [`SetParameterError::Stopped`]; the language keeps it until the store returns.
pub trait ParameterHooks {
    /// The pre-set callbacks, in the order in which they are called.
    fn pre_set(&self) -> Vec<PreSetCall<'_>>;

    /// The on-set callbacks, in the order in which they are called.
    fn on_set(&self) -> Vec<CheckCall<'_>>;

    /// The post-set callbacks, in the order in which they are called.
    fn post_set(&self) -> Vec<CheckCall<'_>>;

    /// Publishes a parameter event, which has no time stamp yet.
    ///
    /// # Errors
    /// [`SetParameterError::Stopped`]. The values are set nevertheless.
    fn publish_event(&self, event: msg::ParameterEvent) -> Result<(), SetParameterError>;
}

/// Publishes parameter events.
pub trait ParameterEventSink: Send + Sync {
    /// Called at the end of each change, when the values can be read. By the rules of rclcpp
    /// the next change waits for it: do not wait for one there.
    fn publish_event(&self, event: msg::ParameterEvent);
}

/// Handle of a parameter callback. Dropping it removes the callback.
#[must_use = "dropping the handle removes the callback"]
pub struct ParameterCallbackHandle {
    _kept: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for ParameterCallbackHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParameterCallbackHandle")
    }
}

/// The callbacks of one node, in the order of registration. The latest is called
/// first, as in rclcpp.
#[derive(Default)]
pub struct ParameterCallbacks {
    pre_set: Mutex<Vec<Weak<Box<PreSet>>>>,
    on_set: Mutex<Vec<Weak<Box<OnSet>>>>,
    post_set: Mutex<Vec<Weak<Box<PostSet>>>>,
    event_sink: OnceLock<Weak<dyn ParameterEventSink>>,
}

impl ParameterCallbacks {
    /// Adds a callback that may change the list before it is checked.
    pub fn add_pre_set(&self, callback: Box<PreSet>) -> ParameterCallbackHandle {
        add(&self.pre_set, callback)
    }

    /// Adds a callback that accepts or rejects a change.
    pub fn add_on_set(&self, callback: Box<OnSet>) -> ParameterCallbackHandle {
        add(&self.on_set, callback)
    }

    /// Adds a callback that is told of a change after it took effect.
    pub fn add_post_set(&self, callback: Box<PostSet>) -> ParameterCallbackHandle {
        add(&self.post_set, callback)
    }

    /// Sets once where parameter events go; without it there are none.
    pub fn set_event_sink(&self, event_sink: Weak<dyn ParameterEventSink>) {
        // Set once, when the node is created.
        let _ = self.event_sink.set(event_sink);
    }
}

impl ParameterHooks for ParameterCallbacks {
    fn pre_set(&self) -> Vec<PreSetCall<'_>> {
        live(&self.pre_set, |callback| -> PreSetCall<'_> {
            Box::new(move |parameters| {
                callback(parameters);
                Ok(())
            })
        })
    }

    fn on_set(&self) -> Vec<CheckCall<'_>> {
        live(&self.on_set, |callback| -> CheckCall<'_> {
            Box::new(move |parameters| {
                callback(parameters).map_err(|reason| SetParameterError::Rejected { reason })
            })
        })
    }

    fn post_set(&self) -> Vec<CheckCall<'_>> {
        live(&self.post_set, |callback| -> CheckCall<'_> {
            Box::new(move |parameters| {
                callback(parameters);
                Ok(())
            })
        })
    }

    fn publish_event(&self, event: msg::ParameterEvent) -> Result<(), SetParameterError> {
        if let Some(event_sink) = self.event_sink.get().and_then(Weak::upgrade) {
            event_sink.publish_event(event);
        }
        Ok(())
    }
}

fn add<F: ?Sized>(list: &Mutex<Vec<Weak<Box<F>>>>, callback: Box<F>) -> ParameterCallbackHandle
where
    Box<F>: Send + Sync + 'static,
{
    let callback = Arc::new(callback);
    let mut list = list.lock();
    list.retain(|callback| callback.strong_count() > 0);
    list.push(Arc::downgrade(&callback));
    ParameterCallbackHandle { _kept: callback }
}

/// The registered callbacks, latest first; they are called without a lock.
fn live<F: ?Sized, C>(list: &Mutex<Vec<Weak<Box<F>>>>, call: impl Fn(Arc<Box<F>>) -> C) -> Vec<C> {
    let list = list.lock();
    list.iter()
        .rev()
        .filter_map(Weak::upgrade)
        .map(call)
        .collect()
}
