//! Errors of declaring, setting and reading parameters.

use thiserror::Error;

use super::value::{ParameterType, ParameterValue};

/// Why parameters were not set. The text is the reason that clients receive, equal
/// to rclcpp's.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SetParameterError {
    /// No parameter of such a name is declared.
    #[error("parameter '{}' cannot be set because it was not declared", names.join("', '"))]
    NotDeclared {
        /// Names of the parameters: the first one, or by the rules of rclpy all.
        names: Vec<String>,
    },
    /// The parameter is read-only.
    #[error("parameter '{name}' cannot be set because it is read-only")]
    ReadOnly {
        /// Name of the parameter.
        name: String,
    },
    /// The value has another type than the parameter.
    #[error(
        "Wrong parameter type, parameter {{{name}}} is of type {{{expected}}}, setting it to {{{found}}} is not allowed."
    )]
    WrongType {
        /// Name of the parameter.
        name: String,
        /// Type of the parameter.
        expected: ParameterType,
        /// Type of the value.
        found: ParameterType,
    },
    /// The value is outside the range of the descriptor.
    #[error("{reason}")]
    OutOfRange {
        /// Name of the parameter.
        name: String,
        /// The refused value.
        value: ParameterValue,
        /// Describes the range.
        reason: String,
    },
    /// A parameter of static type cannot be deleted.
    #[error("cannot undeclare a statically typed parameter")]
    StaticType {
        /// Name of the parameter.
        name: String,
    },
    /// An on-set callback rejected the values.
    #[error("{reason}")]
    Rejected {
        /// Reason given by the callback.
        reason: String,
    },
    /// The parameter name is empty.
    #[error("parameter name must not be empty")]
    EmptyName,
    /// The parameter list is empty, initially or after the pre-set callbacks.
    #[error(
        "parameter list cannot be empty, this might be due to pre_set_parameters_callback modifying the original parameters list."
    )]
    EmptyList,
    /// A callback failed in a way that its language keeps, such as an exception.
    #[error("a parameter callback failed")]
    Stopped,
    /// A parameter callback tried to change parameters of the same node.
    #[error(
        "parameters cannot be declared or set from a callback of the same node's parameters; a pre-set callback may add to the list it is given"
    )]
    InCallback,
}

pteros_msg::debug_as_display!(SetParameterError);

/// Why a parameter was not declared or not read.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The parameter is already declared.
    #[error(
        "node \"{node}\": parameter '{name}' is already declared; declare it once and keep the handle"
    )]
    AlreadyDeclared {
        /// Fully qualified name of the node.
        node: String,
        /// Name of the parameter.
        name: String,
    },
    /// The parameter is not declared.
    #[error("node \"{node}\" has no parameter '{name}'; declare it first")]
    NotDeclared {
        /// Fully qualified name of the node.
        node: String,
        /// Name of the parameter.
        name: String,
    },
    /// The parameter was declared without a default and got no value.
    #[error(
        "node \"{node}\": parameter '{name}' of type {type_of} has no value; give it one with -p {name}:=VALUE or in a --params-file"
    )]
    NoValue {
        /// Fully qualified name of the node.
        node: String,
        /// Name of the parameter.
        name: String,
        /// Type of the parameter.
        type_of: ParameterType,
    },
    /// The initial value was rejected.
    #[error("node \"{node}\": parameter '{name}' = {value}, from {origin}: {source}")]
    InvalidInitialValue {
        /// Fully qualified name of the node.
        node: String,
        /// Name of the parameter.
        name: String,
        /// The refused value.
        value: ParameterValue,
        /// Where the value came from: a line of a file, the command line or the
        /// program.
        origin: String,
        /// The error.
        source: Box<SetParameterError>,
    },
    /// The parameter cannot be set or undeclared.
    #[error("node \"{node}\": {source}")]
    Set {
        /// Fully qualified name of the node.
        node: String,
        /// The error.
        source: SetParameterError,
    },
}

pteros_msg::debug_as_display!(ParameterError);
