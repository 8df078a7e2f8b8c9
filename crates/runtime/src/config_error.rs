//! Error of an environment variable: its name, its value and the remedy.

/// A variable whose value cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {variable}={value:?}: {reason}; {hint}")]
pub struct ConfigError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The problem.
    pub reason: String,
    /// The remedy.
    pub hint: String,
}

pteros_msg::debug_as_display!(ConfigError);
