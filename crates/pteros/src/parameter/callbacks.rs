//! Who has a word when parameters are set, and who is told afterwards.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::store::Parameter;

type PreSet = dyn Fn(&mut Vec<Parameter>) + Send + Sync;
type OnSet = dyn Fn(&[Parameter]) -> Result<(), String> + Send + Sync;
type PostSet = dyn Fn(&[Parameter]) + Send + Sync;

/// Keeps a callback of a node's parameters; dropped, it is not called any more.
#[must_use = "the callback ends when this is dropped"]
pub struct ParameterCallback {
    _kept: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for ParameterCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParameterCallback")
    }
}

/// The callbacks of one node, each list in the order they came; the latest is
/// called first, as in rclcpp.
#[derive(Default)]
pub(super) struct Callbacks {
    pre_set: Mutex<Vec<Weak<Box<PreSet>>>>,
    on_set: Mutex<Vec<Weak<Box<OnSet>>>>,
    post_set: Mutex<Vec<Weak<Box<PostSet>>>>,
}

impl Callbacks {
    pub(super) fn add_pre_set(&self, callback: Box<PreSet>) -> ParameterCallback {
        add(&self.pre_set, callback)
    }

    pub(super) fn add_on_set(&self, callback: Box<OnSet>) -> ParameterCallback {
        add(&self.on_set, callback)
    }

    pub(super) fn add_post_set(&self, callback: Box<PostSet>) -> ParameterCallback {
        add(&self.post_set, callback)
    }

    pub(super) fn call_pre_set(&self, parameters: &mut Vec<Parameter>) {
        for callback in living(&self.pre_set) {
            callback(parameters);
        }
    }

    /// The first no is the answer.
    pub(super) fn call_on_set(&self, parameters: &[Parameter]) -> Result<(), String> {
        let mut callbacks = living(&self.on_set).into_iter();
        callbacks.try_for_each(|callback| callback(parameters))
    }

    pub(super) fn call_post_set(&self, parameters: &[Parameter]) {
        for callback in living(&self.post_set) {
            callback(parameters);
        }
    }
}

fn add<F: ?Sized>(list: &Mutex<Vec<Weak<Box<F>>>>, callback: Box<F>) -> ParameterCallback
where
    Box<F>: Send + Sync + 'static,
{
    let callback = Arc::new(callback);
    let mut list = list.lock();
    list.retain(|callback| callback.strong_count() > 0);
    list.push(Arc::downgrade(&callback));
    ParameterCallback { _kept: callback }
}

/// Those that are still there, latest first; they are called under no lock.
fn living<F: ?Sized>(list: &Mutex<Vec<Weak<Box<F>>>>) -> Vec<Arc<Box<F>>> {
    list.lock().iter().rev().filter_map(Weak::upgrade).collect()
}
