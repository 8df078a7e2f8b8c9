//! Parameters: a node with a speed that files, the command line and other nodes set.

use std::error::Error;
use std::time::Duration;

use pteros::parameter::{Parameter, ParameterDescriptor};
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("wheels")?;
    let descriptor = ParameterDescriptor::new()
        .description("speed in m/s")
        .float_range(0.0, 2.0, 0.0);
    let speed = node.declare_parameter_with("speed", 1.5, descriptor)?;
    let _callback = node.add_post_set_parameters_callback(|parameters: &[Parameter]| {
        for Parameter { name, value } in parameters {
            println!("{name} = {value}");
        }
    });
    println!("start: {} m/s", speed.value());
    let _timer = node.create_timer(Duration::from_secs(1), move || {
        println!("driving at {} m/s", speed.value());
    })?;
    node.spin();
    Ok(())
}
