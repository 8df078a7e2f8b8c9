//! Names that the program gives to an expression.

use std::rc::Rc;
use std::sync::Arc;

use super::math_module;
use super::os_module::OsModule;
use super::value::{Kind, Value};

/// Free names of an expression and their values, besides Python's own functions.
#[derive(Clone, Debug, Default)]
pub struct Names {
    values: Rc<Vec<(Arc<str>, Value)>>,
}

/// Modules that [`Names::with_module`] has.
const MODULES: [&str; 2] = ["math", "os"];

impl Names {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a name.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        let values = Rc::make_mut(&mut self.values);
        values.retain(|(known, _)| **known != *name);
        values.push((name.into(), value));
        self
    }

    /// Adds a module: `math`, whose functions also get names without a prefix, as
    /// in ROS 2, or the parts of `os` that read paths and the given environment.
    ///
    /// # Errors
    /// Other modules.
    pub fn with_module(
        self,
        module: &str,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        match module {
            "math" => {
                let names = math_module::NAMES.iter();
                let known = names.fold(self, |known, (short, long)| {
                    known.with(short, math_module::value(long))
                });
                Ok(known.with("math", Value(Kind::Module("math"))))
            }
            "os" | "os.path" => Ok(self.with("os", Value::object(OsModule::new(environment)))),
            _ => Err(format!(
                "the module {module:?} is not available in expressions; there are {}",
                MODULES.join(" and ")
            )),
        }
    }

    pub(super) fn values(&self) -> Rc<Vec<(Arc<str>, Value)>> {
        self.values.clone()
    }
}
