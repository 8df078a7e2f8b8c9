//! Code generator: interface definitions to Rust source text. Text to text: no
//! files here.
//!
//! A package becomes one module with the inner modules `msg`, `srv` and `action`,
//! as far as it has such definitions. Types keep their ROS names, derived ones too
//! (`AddTwoInts_Request`). Modules refer to each other by relative paths, so the
//! text works wherever it is included. The generated code is readable: plain
//! structs, direct calls to the CDR encoder and decoder.

mod action;
mod codec;
mod key;
mod module;
mod names;
mod structure;
mod view;

use crate::library::{InterfaceLibrary, LibraryError};
use crate::schema::{BaseType, Shape, StructSpec};
use alloc::collections::BTreeMap;
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
    library: &'a InterfaceLibrary,
    options: &'a GenerateOptions,
}

impl<'a> Generator<'a> {
    /// A generator for `library`, which must hold every type that the
    /// generated packages refer to.
    pub fn new(library: &'a InterfaceLibrary, options: &'a GenerateOptions) -> Self {
        Self { library, options }
    }

    /// The text of one package's module, without the `mod name { }` around it.
    ///
    /// # Errors
    /// A definition has a mistake or refers to an unknown type.
    pub fn package(&self, package: &str) -> Result<String, LibraryError> {
        module::package_text(self, package)
    }

    /// The text that belongs beside the packages' modules: the definitions'
    /// texts and `library()`.
    pub fn catalogue(&self, packages: &[&str], source: TextSource<'_>) -> String {
        module::catalogue_text(self, packages, source)
    }

    /// Text that also belongs there: name and hash of every generated type.
    ///
    /// # Errors
    /// As [`package`](Self::package).
    pub fn type_table(&self, packages: &[&str]) -> Result<String, LibraryError> {
        module::type_table_text(self, packages)
    }

    /// Packages and catalogue in one text, for `include!`.
    ///
    /// # Errors
    /// As [`package`](Self::package).
    pub fn single_file(&self, packages: &[&str]) -> Result<String, LibraryError> {
        let mut text = String::new();
        for package in packages {
            text.push_str(&alloc::format!(
                "/// Interfaces of the package `{package}`.\n#[rustfmt::skip]\n#[allow(missing_docs)]\npub mod {} {{\n",
                names::escaped(package)
            ));
            text.push_str(&self.package(package)?);
            text.push_str("}\n\n");
        }
        text.push_str(&self.type_table(packages)?);
        text.push('\n');
        text.push_str(&self.catalogue(packages, TextSource::Literal));
        Ok(text)
    }

    /// Rust path of a nested message, as seen from inside a kind's module.
    fn nested_path(&self, base: &BaseType, context: &ModuleContext<'_>) -> String {
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
    fn holds_only(&self, spec: &StructSpec, wanted: fn(&BaseType) -> bool) -> bool {
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

    /// Whether values of a type can break a bound, at any depth.
    fn has_bounds(&self, spec: &StructSpec) -> bool {
        spec.fields
            .iter()
            .any(|field| codec::field_has_bounds(self, &field.ty))
    }

    fn nested_has_bounds(&self, base: &BaseType) -> bool {
        self.nested_structure(base)
            .is_some_and(|spec| self.has_bounds(&spec))
    }

    /// Unknown names have been refused when the outer type was described.
    fn nested_structure(&self, base: &BaseType) -> Option<StructSpec> {
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
}

/// The module that is being written.
struct ModuleContext<'a> {
    package: &'a str,
    kind: &'a str,
}
