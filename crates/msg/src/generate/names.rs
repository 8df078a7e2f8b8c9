//! ROS names as Rust identifiers.

use alloc::format;
use alloc::string::{String, ToString};

/// Strict and reserved words of Rust, editions up to 2024.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// A field or package name, escaped where Rust has a keyword: `r#type`.
/// `self`, `super` and `crate` cannot be escaped and get a `_` behind.
pub(super) fn escaped(name: &str) -> String {
    match name {
        "self" | "super" | "crate" => format!("{name}_"),
        _ if KEYWORDS.contains(&name) => format!("r#{name}"),
        _ => name.to_string(),
    }
}

/// A type's name in Rust's style: `AddTwoIntsRequest` becomes `AddTwoIntsRequest`.
/// Names in definitions have no underscores (ROS 2's naming rules). `Self` is a keyword
/// that cannot be escaped.
pub(super) fn type_name(name: &str) -> String {
    match name {
        "Self" => "Self_".to_string(),
        _ => name.replace('_', ""),
    }
}
