//! Error of an environment variable: its name, its value and the remedy.

/// A variable whose value cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {variable}={value:?}: {reason}; {hint}")]
pub struct ConfigError {
    /// Name of the environment variable.
    pub variable: &'static str,
    /// The value as it is set.
    pub value: String,
    /// Why the value cannot be used.
    pub reason: String,
    /// How to correct it.
    pub hint: String,
}

pteros_msg::debug_as_display!(ConfigError);
