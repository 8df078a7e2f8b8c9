//! Parameters: named, typed values of a node, set from outside.
//!
//! A node [declares](crate::Node::declare_parameter) its parameters with defaults
//! and reads them through a [`ParameterHandle`], which follows changes. At
//! start-up, parameter overrides replace the defaults (`-p`, `--params-file`,
//! [`NodeOptions::parameter_overrides`](crate::NodeOptions::parameter_overrides)).
//! Other nodes read and set parameters through the six parameter services, and
//! receive parameter events on `/parameter_events`. Types, reasons and events are
//! those of rclcpp; `docs/tutorials/parameters.md` lists the extensions.

mod callbacks;
mod client;
mod descriptor;
mod error;
mod handle;
mod node_parameters;
mod node_pattern;
mod options;
mod parameter_file;
mod parameter_store;
mod qos_overrides;
mod services;
mod standard_parameters;
mod thread_parameters;
mod value;
mod yaml;

pub use callbacks::ParameterCallbackHandle;
pub use client::{ParameterClient, ParameterClientError, SetParameterResult};
pub use descriptor::ParameterDescriptor;
pub use error::{ParameterError, ParameterFileError, SetParameterError};
pub use handle::ParameterHandle;
pub use parameter_file::ParameterFile;
pub use parameter_store::Parameter;
pub use qos_overrides::{QosOverridingOptions, QosPolicyKind};
pub use value::{IntoParameter, ParameterKind, ParameterType, ParameterValue};

pub(crate) use options::NodeParameterOptions;
pub(crate) use parameter_store::ParameterStore;
pub(crate) use services::ParameterServices;
pub(crate) use thread_parameters::merge_thread_settings;
