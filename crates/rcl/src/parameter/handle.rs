//! Parameter handle: the current value of a declared parameter.

use std::fmt;
use std::sync::Arc;

use super::parameter_store::ParameterObserver;
use super::value::{ParameterCell, ParameterKind, ParameterValue};

/// Handle of a declared parameter, which follows every change. Cheap to clone,
/// thread-safe. It keeps nothing alive, and keeps the last value after the node or
/// the parameter is gone.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("wheels")?;
/// let speed = node.declare_parameter("speed", 1.5)?;
/// let _timer = node.create_timer(std::time::Duration::from_millis(10), move || {
///     println!("{} m/s", speed.value());
/// })?;
/// node.spin();
/// # Ok(())
/// # }
/// ```
pub struct ParameterHandle<T: ParameterKind> {
    name: Arc<str>,
    cell: Arc<T::Cell>,
}

impl<T: ParameterKind> ParameterHandle<T> {
    /// A handle with an initial value.
    #[doc(hidden)]
    pub fn new(name: &str, value: T) -> Self {
        Self {
            name: name.into(),
            cell: Arc::new(T::Cell::with(value)),
        }
    }

    /// Current value. A `bool`, `i64` or `f64` costs one atomic load. Strings and
    /// arrays are copied under a lock held only for the copy.
    pub fn value(&self) -> T {
        self.cell.load()
    }

    /// Name of the parameter.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The observer that takes over each change of the value.
    #[doc(hidden)]
    pub fn observer(&self) -> Arc<dyn ParameterObserver> {
        Arc::new(self.clone())
    }
}

impl<T: ParameterKind> ParameterObserver for ParameterHandle<T> {
    fn handle_value(&self, value: &ParameterValue) {
        // Another type occurs only on deletion.
        if let Some(value) = T::from_parameter(value) {
            self.cell.store(value);
        }
    }
}

impl<T: ParameterKind> Clone for ParameterHandle<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            cell: self.cell.clone(),
        }
    }
}

impl<T: ParameterKind + fmt::Debug> fmt::Debug for ParameterHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterHandle")
            .field("name", &self.name)
            .field("value", &self.value())
            .finish()
    }
}
