//! Parameters: named, typed values of a node, set from outside.
//!
//! A node declares its parameters with defaults
//! and reads them through a [`ParameterHandle`], which follows changes. At
//! start-up, parameter overrides replace the defaults (`-p`, `--params-file`,
//! `NodeOptions::parameter_overrides`).
//! Other nodes read and set parameters through the six parameter services, and
//! receive parameter events on `/parameter_events`. Types, reasons and events are
//! those of rclcpp; `docs/tutorials/parameters.md` lists the extensions.

#[cfg(test)]
mod behaviour;
mod callbacks;
mod change;
mod descriptor;
mod entry;
mod error;
mod handle;
mod node_pattern;
mod options;
mod parameter_file;
mod parameter_store;
mod parameter_text;
mod rules;
pub mod services;
mod thread_parameters;
mod value;
mod yaml;
mod yaml11;

pub use crate::qos_overrides::{QosOverridingOptions, QosPolicyKind};
pub use callbacks::{
    CheckCall, ParameterCallbackHandle, ParameterCallbacks, ParameterEventSink, ParameterHooks,
    PreSetCall,
};
pub use descriptor::ParameterDescriptor;
pub use error::{ParameterError, SetParameterError};
pub use handle::ParameterHandle;
pub use options::NodeParameterOptions;
pub use parameter_file::{PARAMETER_FILE_BYTES_MAX, ParameterFile};
pub use parameter_store::{
    Parameter, ParameterDeclaration, ParameterObserver, ParameterOverride, ParameterOverrides,
    ParameterStore, StoreRules,
};
pub use parameter_text::ParameterText;
pub use rules::RuleSet;
pub use thread_parameters::merge_thread_settings;
pub use value::{IntoParameter, ParameterCell, ParameterKind, ParameterType, ParameterValue};
pub use yaml::{TypingRule, tagged_scalar};
