//! Code generator: interface definitions to Rust source text. Text to text: no
//! files here.
//!
//! A package becomes one module with the inner modules `msg`, `srv` and `action`,
//! as far as it has such definitions. Types keep their ROS names. Derived ones lose
//! their underscores: `AddTwoIntsRequest` is `AddTwoIntsRequest`. Modules refer to each other by relative paths, so the
//! text works wherever it is included. The generated code is readable: plain
//! structs, direct calls to the CDR encoder and decoder.

mod action;
mod codec;
mod generator;
mod key;
mod layout;
mod module;
mod names;
mod structure;
mod view;

pub use generator::{GenerateOptions, Generator, TextSource};

use crate::library::{InterfaceLibrary, LibraryError};
use alloc::string::String;

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
}
