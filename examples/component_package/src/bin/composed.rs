//! Both components in one program, statically composed.

use component_package::{Counter, Doubler};
use pteros::component::{Component, ComponentError};
use pteros::prelude::*;

fn main() -> Result<(), ComponentError> {
    let context = Context::new()?;
    let counter = Counter::new(&context, NodeOptions::default())?;
    let doubler = Doubler::new(&context, NodeOptions::default())?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(counter.node())?;
    executor.add_node(doubler.node())?;
    executor.spin();
    Ok(())
}
