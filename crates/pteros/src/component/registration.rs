//! What a shared library says of its components: a record of text that can be
//! read from the file before anything of it is loaded, and a table of
//! constructors beside it.
//!
//! The record stands in the section [`SECTION`]: [`MAGIC`], then lines: the
//! fingerprint of the build, the symbol of the [`Registration`], the package,
//! its classes; an empty line ends it. A library has a record for each of its
//! crates that registers components.

use super::{Component, ComponentError};
use crate::context::Context;
use crate::node::{Node, NodeOptions};

/// What a program and a library must agree on, word for word, before types of
/// Rust may cross between them: version of Pteros, compiler, target, and a hash
/// of the sources. Which dependencies and features both were built with stands in
/// the names of their symbols, so that the dynamic linker refuses what differs.
pub const FINGERPRINT: &str = env!("PTEROS_FINGERPRINT");

/// The section of a library's file that holds its records.
pub const SECTION: &str = ".pteros";

/// How a record begins; the number is that of its form.
pub const MAGIC: &str = "pteros components 1\n";

/// How the symbols of registrations begin; the name of the crate follows.
pub const SYMBOL: &str = "pteros_components_";

/// A component of any class.
pub trait AnyComponent: Send {
    /// Its node.
    fn node(&self) -> &Node;
}

impl<C: Component> AnyComponent for C {
    fn node(&self) -> &Node {
        Component::node(self)
    }
}

/// Makes a component of some class.
pub type Constructor = fn(&Context, NodeOptions) -> Result<Box<dyn AnyComponent>, ComponentError>;

/// One class that a library has.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// `package::Class`.
    pub class: &'static str,
    /// Its constructor.
    pub make: Constructor,
}

impl Registered {
    /// The class `C` under a name.
    pub const fn of<C: Component>(class: &'static str) -> Self {
        Self {
            class,
            make: |context, options| Ok(Box::new(C::new(context, options)?)),
        }
    }
}

/// What a crate registers, as its library exports it.
#[derive(Debug)]
pub struct Registration {
    /// The record; named here so that the linker keeps it.
    pub record: &'static [u8],
    /// The classes in the order they were registered.
    pub classes: &'static [Registered],
}

/// How many bytes a record takes.
#[doc(hidden)]
pub const fn record_bytes(parts: &[&str]) -> usize {
    let (mut bytes, mut part) = (0, 0);
    while part < parts.len() {
        bytes += parts[part].len();
        part += 1;
    }
    bytes
}

/// Puts a record together when the library is compiled.
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

/// Registers the components of a crate, once per crate: types in scope by their
/// plain names. Their classes are called `crate::Name`, and the crate is what ROS calls the
/// package.
///
/// A crate that is also built as `cdylib`, with `pteros-dylib` among its
/// dependencies, can then be loaded by containers (docs/components.md). The
/// line exports a symbol, which the lint `unsafe_code` counts as unsafe: a crate
/// may deny it, but not forbid it.
///
/// ```
/// # use pteros::component::{Component, ComponentError};
/// # use pteros::prelude::*;
/// # struct Talker(Node);
/// # impl Component for Talker {
/// #     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
/// #         Ok(Self(context.node_with(options.name("talker"))?))
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
            #[allow(unsafe_code, reason = "a section of its own, read from the file")]
            #[used]
            #[unsafe(link_section = ".pteros")]
            static RECORD: [u8; BYTES] = $crate::component::record::<BYTES>(PARTS);
            #[allow(unsafe_code, reason = "exported under a name that the crate has alone")]
            #[unsafe(export_name = concat!("pteros_components_", env!("CARGO_CRATE_NAME")))]
            pub static REGISTRATION: $crate::component::Registration =
                $crate::component::Registration {
                    record: &RECORD,
                    classes: &[$($crate::component::Registered::of::<$class>(
                        concat!(env!("CARGO_CRATE_NAME"), "::", stringify!($class)),
                    ),)+],
                };
        };
    };
}
