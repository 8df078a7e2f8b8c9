//! Parameters: named, typed values of a node, set from outside.
//!
//! A node declares its parameters with defaults
//! and reads them through a [`ParameterHandle`], which follows changes. At
//! start-up, parameter overrides replace the defaults (`-p`, `--params-file`,
//! `NodeOptions::parameter_overrides`).
//! Other nodes read and set parameters through the six parameter services, and
//! receive parameter events on `/parameter_events`. Types, reasons and events are
//! those of rclcpp; `docs/tutorials/parameters.md` lists the extensions.

mod callbacks;
mod descriptor;
mod error;
mod handle;
mod node_pattern;
mod options;
mod overrides;
mod parameter_file;
mod parameter_store;
mod parameter_text;
mod thread_parameters;
mod value;
mod yaml;
mod yaml11;

pub use crate::qos_overrides::{QosOverridingOptions, QosPolicyKind};
pub use callbacks::{ParameterCallbackHandle, ParameterCallbacks};
pub use descriptor::ParameterDescriptor;
pub use error::{ParameterError, SetParameterError};
pub use handle::ParameterHandle;
pub use options::NodeParameterOptions;
pub use overrides::{parameter_override_as, parameter_overrides};
pub use parameter_file::{PARAMETER_FILE_BYTES_MAX, ParameterFile};
pub use parameter_store::{
    Parameter, ParameterDeclaration, ParameterEventSink, ParameterObserver, ParameterOverride,
    ParameterOverrides, ParameterStore, StoreRules,
};
pub use parameter_text::ParameterText;
pub use thread_parameters::merge_thread_settings;
pub use value::{IntoParameter, ParameterCell, ParameterKind, ParameterType, ParameterValue};
pub use yaml::TypingRule;
