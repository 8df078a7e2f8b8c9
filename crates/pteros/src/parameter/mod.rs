//! Parameters of nodes: values that people and files decide, under names that
//! the node declares.
//!
//! A node [declares](crate::Node::declare_parameter) what it wants to know, with a
//! default, and reads it through a [`ParameterHandle`], which follows changes. Who
//! starts the process gives other values (`-p`, `--params-file`,
//! [`NodeOptions::parameter_overrides`](crate::NodeOptions::parameter_overrides));
//! whoever is on the network reads and sets them by the services that every ROS 2
//! node has, and hears of changes on `/parameter_events`. Types, reasons and events
//! are rclcpp's; `docs/parameters.md` says where more is allowed.

mod callbacks;
mod client;
mod descriptor;
mod error;
mod file;
mod handle;
mod of_every_node;
mod of_node;
mod options;
mod pattern;
mod qos_overrides;
mod services;
mod store;
mod thread;
mod value;
mod yaml;

pub use callbacks::ParameterCallback;
pub use client::{ParameterClient, ParameterClientError, SetOutcome};
pub use descriptor::ParameterDescriptor;
pub use error::{ParameterError, ParameterFileError, SetParameterError};
pub use file::ParameterFile;
pub use handle::ParameterHandle;
pub use qos_overrides::{QosOverrides, QosPolicyKind};
pub use store::Parameter;
pub use value::{IntoParameter, ParameterKind, ParameterType, ParameterValue};

pub(crate) use options::NodeParameterOptions;
pub(crate) use services::ParameterServices;
pub(crate) use store::ParameterStore;
pub(crate) use thread::joined as joined_thread_settings;
