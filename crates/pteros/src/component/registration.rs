//! Component registration: record and constructor table of a shared library.
//!
//! The record is text that can be read from the file before the library is loaded.
//! It is in the section [`SECTION`]: [`MAGIC`], then one line each for the build
//! fingerprint, the symbol of the [`Registration`], the package and its classes. An
//! empty line ends it. A library has one record for each of its crates that
//! registers components.

use super::{Component, ComponentError};
use crate::context::Context;
use crate::node::{Node, NodeOptions};

/// Build fingerprint: must be equal in a program and a library before Rust types
/// may cross between them. It consists of the Pteros version, the compiler, the
/// target and a hash of the sources. Dependencies and features are part of the
/// symbol names, so the dynamic linker rejects a mismatch there.
pub const FINGERPRINT: &str = env!("PTEROS_FINGERPRINT");

/// Section of the library file that holds the records.
pub const SECTION: &str = ".pteros";

/// First line of a record; the number is the format version.
pub const MAGIC: &str = "pteros components 1\n";

/// Prefix of registration symbols, followed by the crate name.
pub const SYMBOL_PREFIX: &str = "pteros_components_";

/// A component of any class (type-erased).
pub trait AnyComponent: Send {
    /// The component's node.
    fn node(&self) -> &Node;
}

impl<C: Component> AnyComponent for C {
    fn node(&self) -> &Node {
        Component::node(self)
    }
}

/// Constructor of a component class.
pub type Constructor = fn(&Context, NodeOptions) -> Result<Box<dyn AnyComponent>, ComponentError>;

/// A component class of a library.
#[derive(Clone, Copy, Debug)]
pub struct ComponentClass {
    /// `package::Class`.
    pub class: &'static str,
    /// Constructor of the class.
    pub constructor: Constructor,
}

impl ComponentClass {
    /// Describes the class `C` under a name.
    pub const fn of<C: Component>(class: &'static str) -> Self {
        Self {
            class,
            constructor: |context, options| Ok(Box::new(C::new(context, options)?)),
        }
    }
}

/// Components that a crate registers, as exported by its library.
#[derive(Debug)]
pub struct Registration {
    /// The record, referenced so that the linker keeps it.
    pub record: &'static [u8],
    /// The classes in the order of registration.
    pub classes: &'static [ComponentClass],
}

/// Size of a record in bytes.
#[doc(hidden)]
pub const fn record_bytes(parts: &[&str]) -> usize {
    let (mut bytes, mut part) = (0, 0);
    while part < parts.len() {
        bytes += parts[part].len();
        part += 1;
    }
    bytes
}

/// Builds the record at compile time.
#[doc(hidden)]
pub const fn record<const BYTES: usize>(parts: &[&str]) -> [u8; BYTES] {
    let mut record = [0; BYTES];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let bytes = parts[part].as_bytes();
        let mut byte = 0;
        while byte < bytes.len() {
            record[at] = bytes[byte];
            at += 1;
            byte += 1;
        }
        part += 1;
    }
    record
}

/// Registers the components of a crate, by the plain names of types in scope. Use
/// it once per crate. The classes are called `crate::Name`; the crate is the ROS
/// package.
///
/// A crate that is also built as `cdylib`, with `pteros-dylib` among its
/// dependencies, can be loaded by component containers (docs/tutorials/components.md). The
/// macro exports a symbol, which the lint `unsafe_code` counts as unsafe. A crate
/// may deny the lint, but not forbid it.
///
/// ```
/// # use pteros::component::{Component, ComponentError};
/// # use pteros::prelude::*;
/// # struct Talker(Node);
/// # impl Component for Talker {
/// #     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
/// #         Ok(Self(context.create_node(options.name("talker"))?))
/// #     }
/// #     fn node(&self) -> &Node { &self.0 }
/// # }
/// pteros::register_components!(Talker);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! register_components {
    ($($class:ident),+ $(,)?) => {
        const _: () = {
            const PARTS: &[&str] = &[
                $crate::component::MAGIC,
                $crate::component::FINGERPRINT,
                concat!(
                    "\npteros_components_", env!("CARGO_CRATE_NAME"),
                    "\n", env!("CARGO_CRATE_NAME"), "\n",
                ),
                $(concat!(env!("CARGO_CRATE_NAME"), "::", stringify!($class), "\n"),)+
                "\n",
            ];
            const BYTES: usize = $crate::component::record_bytes(PARTS);
            #[allow(unsafe_code, reason = "own section, read from the file")]
            #[used]
            #[unsafe(link_section = ".pteros")]
            static RECORD: [u8; BYTES] = $crate::component::record::<BYTES>(PARTS);
            #[allow(unsafe_code, reason = "the symbol name is unique to the crate")]
            #[unsafe(export_name = concat!("pteros_components_", env!("CARGO_CRATE_NAME")))]
            pub static REGISTRATION: $crate::component::Registration =
                $crate::component::Registration {
                    record: &RECORD,
                    classes: &[$($crate::component::ComponentClass::of::<$class>(
                        concat!(env!("CARGO_CRATE_NAME"), "::", stringify!($class)),
                    ),)+],
                };
        };
    };
}
