//! Components: nodes that are placed into processes at will.
//!
//! A component is a type with a constructor that takes a context and
//! [`NodeOptions`]. The same source runs alone ([`run`]), is composed by hand in
//! a `main` that calls the constructor, or is registered by one line
//! ([`register_components!`](crate::register_components)) and loaded by a
//! container from a shared library.
//!
//! ```
//! use pteros::component::{Component, ComponentError};
//! use pteros::interfaces::std_msgs::msg::String as Text;
//! use pteros::prelude::*;
//!
//! pub struct Listener {
//!     node: Node,
//!     _heard: Subscription<Text>,
//! }
//!
//! impl Component for Listener {
//!     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
//!         let node = context.node_with(options.name("listener"))?;
//!         let heard = node.create_subscription::<Text>("chatter", 10, |text| {
//!             println!("I heard: {}", text.data);
//!         })?;
//!         Ok(Self { node, _heard: heard })
//!     }
//!
//!     fn node(&self) -> &Node {
//!         &self.node
//!     }
//! }
//!
//! pteros::register_components!(Listener);
//! # fn main() {}
//! ```

mod registration;

use crate::context::Context;
use crate::node::{Node, NodeOptions};

pub use registration::{
    AnyComponent, Constructor, FINGERPRINT, MAGIC, Registered, Registration, SECTION, SYMBOL,
};
#[doc(hidden)]
pub use registration::{record, record_bytes};

/// Why a component could not be made, in its own words: whatever error `?` meets
/// in its constructor.
pub type ComponentError = Box<dyn std::error::Error + Send + Sync>;

/// A node with what belongs to it, made from options. What it owns (the node,
/// its endpoints, timers and threads) ends when it is dropped.
pub trait Component: Send + Sized + 'static {
    /// Makes it. `options` bring what whoever composes wants: names, remaps,
    /// parameters; give them the component's own name by [`NodeOptions::name`],
    /// which remaps override, and make the node of them. Called on a thread that
    /// spins nothing. It should come back soon: a container gives up after some
    /// seconds.
    ///
    /// # Errors
    /// What the component finds wrong, told to whoever wanted it.
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError>;

    /// Its node, for an executor.
    fn node(&self) -> &Node;
}

/// Runs one component as a program of its own, as the environment and the
/// command line say, until Ctrl-C. Blocks.
///
/// ```no_run
/// # use pteros::component::{Component, ComponentError};
/// # use pteros::prelude::*;
/// # struct Listener(Node);
/// # impl Component for Listener {
/// #     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
/// #         Ok(Self(context.node_with(options.name("listener"))?))
/// #     }
/// #     fn node(&self) -> &Node { &self.0 }
/// # }
/// fn main() -> Result<(), ComponentError> {
///     pteros::component::run::<Listener>()
/// }
/// ```
///
/// # Errors
/// The context's or the component's.
pub fn run<C: Component>() -> Result<(), ComponentError> {
    let context = Context::new()?;
    let component = C::new(&context, NodeOptions::default())?;
    component.node().spin();
    Ok(())
}
