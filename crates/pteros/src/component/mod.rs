//! Components: nodes that a component container loads at run time (ROS 2
//! composition).
//!
//! A component is a type with a constructor that takes a context and
//! [`NodeOptions`]. The same source can run alone ([`run`]), can be composed in a
//! `main` that calls the constructor, or can be registered by one line
//! ([`register_components!`](crate::register_components)) and loaded by a component
//! container from a shared library.
//!
//! ```
//! use pteros::component::{Component, ComponentError};
//! use pteros::interfaces::std_msgs::msg::String as Text;
//! use pteros::prelude::*;
//!
//! pub struct Listener {
//!     node: Node,
//!     _subscription: Subscription<Text>,
//! }
//!
//! impl Component for Listener {
//!     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
//!         let node = context.create_node(options.name("listener"))?;
//!         let subscription = node.create_subscription::<Text>("chatter".keep_last(10), |text| {
//!             println!("I subscription: {}", text.data);
//!         })?;
//!         Ok(Self { node, _subscription: subscription })
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
    AnyComponent, ComponentClass, Constructor, FINGERPRINT, MAGIC, Registration, SECTION,
    SYMBOL_PREFIX,
};
#[doc(hidden)]
pub use registration::{record, record_bytes};

/// Why a component could not be created: any error that `?` returns from its
/// constructor.
pub type ComponentError = Box<dyn std::error::Error + Send + Sync>;

/// A node with its endpoints, timers and threads, created from options. They end
/// when the component is dropped.
pub trait Component: Send + Sized + 'static {
    /// Creates the component and its node from `options`, which hold names, remaps
    /// and parameters. Set the default name with [`NodeOptions::name`]; remaps
    /// override it. Called on a thread that does not spin. Return soon: a container
    /// gives up after a few seconds.
    ///
    /// # Errors
    /// Any error; the caller or the container reports it.
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError>;

    /// The component's node, for an executor.
    fn node(&self) -> &Node;
}

/// Runs one component as a program until Ctrl-C, with the arguments and environment
/// of the process. Blocks.
///
/// ```no_run
/// # use pteros::component::{Component, ComponentError};
/// # use pteros::prelude::*;
/// # struct Listener(Node);
/// # impl Component for Listener {
/// #     fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
/// #         Ok(Self(context.create_node(options.name("listener"))?))
/// #     }
/// #     fn node(&self) -> &Node { &self.0 }
/// # }
/// fn main() -> Result<(), ComponentError> {
///     pteros::component::run::<Listener>()
/// }
/// ```
///
/// # Errors
/// Those of the context and of the component.
pub fn run<C: Component>() -> Result<(), ComponentError> {
    let context = Context::new()?;
    let component = C::new(&context, NodeOptions::default())?;
    component.node().spin();
    Ok(())
}
