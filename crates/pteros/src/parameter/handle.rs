//! A parameter in the hands of the program: its value now.

use std::fmt;
use std::sync::Arc;

use super::store::Follow;
use super::value::{ParameterCell, ParameterKind, ParameterValue};

/// A declared parameter, which follows every change. Cheap to clone,
/// thread-safe; it keeps nothing alive, and the last value once the node is gone
/// or the parameter deleted.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("wheels")?;
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
    pub(super) fn new(name: &str, value: T) -> Self {
        Self {
            name: name.into(),
            cell: Arc::new(T::Cell::with(value)),
        }
    }

    /// The value now. A `bool`, `i64` or `f64` costs one atomic load; text and lists
    /// are copied under a lock that is held for no longer.
    pub fn value(&self) -> T {
        self.cell.load()
    }

    /// The parameter's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn follower(&self) -> Arc<dyn Follow> {
        Arc::new(self.clone())
    }
}

impl<T: ParameterKind> Follow for ParameterHandle<T> {
    fn follow(&self, value: &ParameterValue) {
        // Of another type only when it is deleted.
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
