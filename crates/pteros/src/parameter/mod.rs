//! Parameters: named, typed values of a node, set from outside.
//!
//! A node [declares](crate::Node::declare_parameter) its parameters with defaults
//! and reads them through a [`ParameterHandle`], which follows changes. At
//! start-up, parameter overrides replace the defaults (`-p`, `--params-file`,
//! [`NodeOptions::parameter_overrides`](crate::NodeOptions::parameter_overrides)).
//! Other nodes read and set parameters through the six parameter services, and
//! receive parameter events on `/parameter_events`. Types, reasons and events are
//! those of rclcpp; `docs/tutorials/parameters.md` lists the extensions.

pub(crate) mod callbacks;
pub(crate) mod descriptor;
pub(crate) mod error;
pub(crate) mod handle;
mod node_pattern;
mod options;
pub(crate) mod parameter_file;
pub(crate) mod parameter_store;
pub(crate) mod parameter_text;
mod thread_parameters;
pub(crate) mod value;
mod yaml;
mod yaml11;

pub use crate::node_parameters::{ParameterClient, SetParameterResult};
pub use crate::qos_overrides::{QosOverridingOptions, QosPolicyKind};
pub use callbacks::ParameterCallbackHandle;
pub use descriptor::ParameterDescriptor;
pub use error::{ParameterError, SetParameterError};
pub use handle::ParameterHandle;
pub use parameter_file::{PARAMETER_FILE_BYTES_MAX, ParameterFile};
pub use parameter_store::Parameter;
pub use parameter_text::ParameterText;
pub use value::{IntoParameter, ParameterKind, ParameterType, ParameterValue};
pub use yaml::TypingRule;

pub(crate) use options::NodeParameterOptions;
pub(crate) use parameter_store::ParameterStore;
pub(crate) use thread_parameters::merge_thread_settings;
