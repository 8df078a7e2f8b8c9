//! IDL files (`.idl`): the subset of OMG IDL 4.2 that ROS 2's `rosidl_parser` accepts,
//! as an [`InterfaceFile`].
//!
//! ```text
//! module my_msgs { module msg {
//!   module Arm_Constants { const long JOINTS = 6; };
//!   typedef double double__6[6];
//!   @verbatim (language="comment", text="An arm.")
//!   struct Arm {
//!     @default (value="left") string name;
//!     sequence<std_msgs::msg::Header, 4> headers;
//!     double__6 positions;
//!   };
//! }; };
//! ```
//! A service has the structures `Name_Request` and `Name_Response`, an action
//! `Name_Goal`, `Name_Result` and `Name_Feedback`. Refused with a reason: unions,
//! enumerations, maps, inheritance, `char`, `wchar`, `long double` and arrays of more
//! than one dimension. Included files are not read: the library resolves names.

mod lexer;
mod parser;

use alloc::string::ToString;

use super::{InterfaceFile, InterfaceKind, SchemaError};
use lexer::TokenKind;

/// Whether a text is IDL. It begins with a module, which no `.msg` file does.
pub fn is_idl(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let skipped = if rest.starts_with("//") || rest.starts_with("#include") {
            rest.split_once('\n').map(|(_, after)| after)
        } else if rest.starts_with("/*") {
            rest.split_once("*/").map(|(_, after)| after)
        } else {
            break;
        };
        rest = skipped.unwrap_or("").trim_start();
    }
    let mut words = rest.split_whitespace();
    words.next() == Some("module") && rest.contains('{')
}

/// Parses an IDL file. Arguments and result are those of [`parse`](super::parse).
///
/// # Errors
/// The first error, with its line and what to write instead.
pub(super) fn parse(
    package: &str,
    name: &str,
    kind: InterfaceKind,
    text: &str,
    origin: &str,
) -> Result<InterfaceFile, SchemaError> {
    let error = |(line, message): (u32, _)| SchemaError {
        file: origin.to_string(),
        line,
        message,
    };
    let tokens = lexer::tokens(text).map_err(error)?;
    let suffixes: &[&str] = match kind {
        InterfaceKind::Message => &[""],
        InterfaceKind::Service => &["_Request", "_Response"],
        InterfaceKind::Action => &["_Goal", "_Result", "_Feedback"],
    };
    let last_line = tokens.last().map_or(1, |token| token.line);
    let mut parser = parser::Parser::new(&tokens, package);
    parser.read().map_err(error)?;
    let mut parts = alloc::vec::Vec::with_capacity(suffixes.len());
    for suffix in suffixes {
        let wanted = alloc::format!("{package}::{kind}::{name}{suffix}");
        let part = parser.take_structure(&wanted).ok_or_else(|| {
            error((
                last_line,
                alloc::format!("the file defines no structure {wanted}; add it"),
            ))
        })?;
        parts.push(part);
    }
    Ok(InterfaceFile {
        package: package.to_string(),
        name: name.to_string(),
        kind,
        parts,
    })
}

#[cfg(test)]
mod tests;
