//! Shared state of the generators: the interface library, the options, and look-ups
//! of nested types.

use super::names;
use crate::hash::TypeHash;
use crate::library::InterfaceLibrary;
use crate::schema::{BaseType, Shape, StructSpec};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Paths that generated code refers to.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Rust path of this crate: `::pteros_msg`, or `::pteros::msg`.
    pub msg_path: String,
    /// Packages that other crates hold, with the Rust path of their modules:
    /// `std_msgs` at `::pteros::interfaces::std_msgs`.
    pub external: BTreeMap<String, String>,
    /// Rust expressions of type `&'static InterfaceLibrary` that the generated
    /// `library()` starts from: `::pteros::interfaces::library()`.
    pub base_libraries: Vec<String>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            msg_path: "::pteros_msg".to_string(),
            external: BTreeMap::new(),
            base_libraries: Vec::new(),
        }
    }
}

/// How the texts of definitions get into the generated module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource<'a> {
    /// As string literals.
    Literal,
    /// As `include_str!` of this folder, relative to the generated file, with
    /// the layout `package/kind/Name.kind`.
    Include(&'a str),
}

/// Generates Rust for definitions of one library.
#[derive(Debug)]
pub struct Generator<'a> {
    pub(super) library: &'a InterfaceLibrary,
    pub(super) options: &'a GenerateOptions,
}

/// The module that is being written.
pub(super) struct ModuleContext<'a> {
    pub(super) package: &'a str,
    pub(super) kind: &'a str,
}

impl Generator<'_> {
    /// Rust path of a nested message, as seen from inside a kind's module.
    pub(super) fn nested_path(&self, base: &BaseType, context: &ModuleContext<'_>) -> String {
        let BaseType::Nested { package, name } = base else {
            return String::new();
        };
        let (package, kind) = match package.split_once('/') {
            Some((package, kind)) => (package, kind),
            None => (package.as_str(), "msg"),
        };
        let name = names::type_name(name);
        if package == context.package && kind == context.kind {
            return name;
        }
        let package_path = if package == context.package {
            "super".to_string()
        } else {
            match self.options.external.get(package) {
                Some(path) => path.clone(),
                None => alloc::format!("super::super::{}", names::escaped(package)),
            }
        };
        alloc::format!("{package_path}::{kind}::{name}")
    }

    /// Whether a structure holds `wanted` primitives only, at any depth: no
    /// strings, no sequences.
    pub(super) fn holds_only(&self, spec: &StructSpec, wanted: fn(&BaseType) -> bool) -> bool {
        spec.fields.iter().all(|field| {
            let fixed = matches!(field.ty.shape, Shape::Single | Shape::Array(_));
            fixed
                && match &field.ty.base {
                    nested @ BaseType::Nested { .. } => self
                        .nested_structure(nested)
                        .is_some_and(|spec| self.holds_only(&spec, wanted)),
                    base => base.is_primitive() && wanted(base),
                }
        })
    }

    /// Unknown names have been refused when the outer type was described.
    pub(super) fn nested_structure(&self, base: &BaseType) -> Option<StructSpec> {
        let BaseType::Nested { package, name } = base else {
            return None;
        };
        let full = if package.contains('/') {
            alloc::format!("{package}/{name}")
        } else {
            alloc::format!("{package}/msg/{name}")
        };
        self.library.structure(&full).ok()
    }

    /// Readable in the generated text, and checked when it is compiled.
    pub(super) fn hash_expression(&self, hash: TypeHash) -> String {
        let msg = &self.options.msg_path;
        format!(
            "{msg}::hash::TypeHash::from_hex(\n            \"{}\",\n        )",
            hash.hex()
        )
    }
}
