//! Parameter callbacks: pre-set, on-set and post-set, as in rclcpp.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::parameter_store::Parameter;

type PreSet = dyn Fn(&mut Vec<Parameter>) + Send + Sync;
type OnSet = dyn Fn(&[Parameter]) -> Result<(), String> + Send + Sync;
type PostSet = dyn Fn(&[Parameter]) + Send + Sync;

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

    /// Calls the pre-set callbacks, latest first.
    pub fn call_pre_set(&self, parameters: &mut Vec<Parameter>) {
        for callback in live_callbacks(&self.pre_set) {
            callback(parameters);
        }
    }

    /// The first rejection is the result.
    pub fn call_on_set(&self, parameters: &[Parameter]) -> Result<(), String> {
        let mut callbacks = live_callbacks(&self.on_set).into_iter();
        callbacks.try_for_each(|callback| callback(parameters))
    }

    /// Calls the post-set callbacks, latest first.
    pub fn call_post_set(&self, parameters: &[Parameter]) {
        for callback in live_callbacks(&self.post_set) {
            callback(parameters);
        }
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
fn live_callbacks<F: ?Sized>(list: &Mutex<Vec<Weak<Box<F>>>>) -> Vec<Arc<Box<F>>> {
    list.lock().iter().rev().filter_map(Weak::upgrade).collect()
}
