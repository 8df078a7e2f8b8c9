//! Two components: a counter and a doubler.

use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;

// Links the shared library of Pteros, as the container does.
use pteros_dylib as _;

/// Publishes a counter on `count`, ten times per second. Parameter `step`:
/// increment, 1 by default.
pub struct Counter {
    node: Node,
    _timer: Timer,
}

impl Component for Counter {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("counter"))?;
        let publisher = node.create_publisher::<Int64>("count".keep_last(10))?;
        let step = node.declare_parameter("step", 1_i64)?;
        let mut data = 0_i64;
        let timer = node.create_timer(Duration::from_millis(100), move || {
            data = data.wrapping_add(step.value());
            if let Err(error) = publisher.publish_owned(Int64 { data }) {
                eprintln!("counter: {error}");
            }
        })?;
        Ok(Self {
            node,
            _timer: timer,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

/// Publishes twice the values of `count` on `doubled`.
pub struct Doubler {
    node: Node,
    _counts: Subscription<Int64>,
}

impl Component for Doubler {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("doubler"))?;
        let publisher = node.create_publisher::<Int64>("doubled".keep_last(10))?;
        let counts = node.create_subscription::<Int64>("count".keep_last(10), move |count| {
            let data = count.data.wrapping_mul(2);
            if let Err(error) = publisher.publish_owned(Int64 { data }) {
                eprintln!("doubler: {error}");
            }
        })?;
        Ok(Self {
            node,
            _counts: counts,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

pteros::register_components!(Counter, Doubler);
