//! Typesupport: a flat program that reads and writes the user's structs in C and C++.
//!
//! A type is described by the list of the members of its struct. The list comes from
//! rosidl's introspection ([`introspection`]), as rclcpp and rclpy pass it, or from a
//! table that `pteros interface generate --c` has written ([`CMessageType`]).
//! [`Program`] is that list, flattened once per type: nested structs are inlined and
//! adjacent numbers merged. [`encode`](Program::encode) and [`decode`](Program::decode)
//! convert directly between the struct and CDR. [`copy`](Program::copy) and
//! [`move_into`](Program::move_into) convert from one struct to another.
//!
//! # The contract of callers
//! The structs are memory of another language, so most functions are `unsafe`: their
//! `# Safety` sections say what the caller guarantees.

mod bounds;
mod c_source;
mod c_table;
mod copy;
mod cpp_memory;
mod cursor;
mod decode;
mod description;
mod encode;
mod failure;
mod finalize;
pub mod introspection;
mod lifecycle;
mod loan;
mod members;
mod plain;
mod program;
mod sequence;
mod size;
mod strings;

pub use c_source::{CSourceFile, c_sources};
pub use c_table::{CMember, CMessageTable, CMessageType};
pub use description::IntrospectedType;
pub use encode::HEADER;
pub use failure::{Failure, FailureKind, Outcome};
pub use lifecycle::Struct;
pub use loan::{Loans, PayloadMemory};
pub use members::{Language, dds_name, type_id};
pub use plain::{BODY_ALIGN, PlainLayout};
pub use program::Program;
pub use strings::write as write_string;

#[cfg(test)]
mod tests;
