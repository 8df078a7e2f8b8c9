//! Why a parameter is not declared, not set or not known.

use pteros_rmw::names::NameError;
use thiserror::Error;

use super::value::{ParameterType, ParameterValue};

/// Why parameters are not set. As text it is the reason that clients get, in
/// rclcpp's words.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SetParameterError {
    /// The node has none of that name.
    #[error("parameter '{name}' cannot be set because it was not declared")]
    NotDeclared {
        /// The parameter.
        name: String,
    },
    /// It keeps the value it was declared with.
    #[error("parameter '{name}' cannot be set because it is read-only")]
    ReadOnly {
        /// The parameter.
        name: String,
    },
    /// The value is of another type than the parameter.
    #[error(
        "Wrong parameter type, parameter {{{name}}} is of type {{{expected}}}, setting it to {{{found}}} is not allowed."
    )]
    WrongType {
        /// The parameter.
        name: String,
        /// Its type.
        expected: ParameterType,
        /// The value's.
        found: ParameterType,
    },
    /// The value lies outside the range of the descriptor.
    #[error("{reason}")]
    OutOfRange {
        /// The parameter.
        name: String,
        /// The value.
        value: ParameterValue,
        /// Which range.
        reason: String,
    },
    /// A parameter of static type is to be deleted.
    #[error("cannot undeclare a statically typed parameter")]
    Static {
        /// The parameter.
        name: String,
    },
    /// An on-set callback says no.
    #[error("{reason}")]
    Rejected {
        /// The callback's word.
        reason: String,
    },
    /// A parameter without a name.
    #[error("parameter name must not be empty")]
    NoName,
    /// Nothing to set, at first or after the pre-set callbacks.
    #[error(
        "parameter list cannot be empty, this might be due to pre_set_parameters_callback modifying the original parameters list."
    )]
    Nothing,
    /// A callback of this node's parameters changes its parameters.
    #[error(
        "parameters cannot be declared or set from a callback of the same node's parameters; a pre-set callback may add to the list it is given"
    )]
    InCallback,
}

/// Why a node's parameter is not declared or not read.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// It exists already.
    #[error(
        "node \"{node}\": parameter '{name}' is declared already; declare it once and keep the handle"
    )]
    AlreadyDeclared {
        /// The node.
        node: String,
        /// The parameter.
        name: String,
    },
    /// It must be declared first.
    #[error("node \"{node}\" has no parameter '{name}'; declare it first")]
    NotDeclared {
        /// The node.
        node: String,
        /// The parameter.
        name: String,
    },
    /// It was declared without a value and got none.
    #[error(
        "node \"{node}\": parameter '{name}' of type {type_of} has no value; give it one with -p {name}:=VALUE or in a --params-file"
    )]
    NoValue {
        /// The node.
        node: String,
        /// The parameter.
        name: String,
        /// Its type.
        type_of: ParameterType,
    },
    /// The value it was to begin with is refused.
    #[error("node \"{node}\": parameter '{name}' = {value}, from {from}: {source}")]
    Initial {
        /// The node.
        node: String,
        /// The parameter.
        name: String,
        /// The value.
        value: ParameterValue,
        /// Who gave it: a line of a file, the command line, the program.
        from: String,
        /// What is wrong.
        source: Box<SetParameterError>,
    },
    /// It cannot be set or undeclared.
    #[error("node \"{node}\": {source}")]
    Set {
        /// The node.
        node: String,
        /// What is wrong.
        source: SetParameterError,
    },
}

/// Why the command line's parameters cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParameterFileError {
    /// The file cannot be read.
    #[error("parameter file {file}: {reason}; check its path")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's word.
        reason: String,
    },
    /// The file is not as it should be.
    #[error("{file}:{line}:{column}: {what}; {way_out}")]
    Wrong {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// The node and parameter, and what is wrong there.
        what: String,
        /// What to write instead.
        way_out: &'static str,
    },
    /// The value of a `-p` is none.
    #[error("-p {name}:={value}: {what}; {way_out}")]
    Argument {
        /// The parameter.
        name: String,
        /// As it was given.
        value: String,
        /// What is wrong with it.
        what: String,
        /// What to write instead.
        way_out: &'static str,
    },
    /// A name in it is none.
    #[error("{place}: {source}")]
    Name {
        /// Where.
        place: String,
        /// The name and its fault.
        source: NameError,
    },
}
