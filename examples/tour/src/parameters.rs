//! Parameters: a node with a parameter, and another node that changes it. Try also:
//! `--ros-args -p speed:=1.0`, and meanwhile `pteros param set /wheels speed 0.2`.
#![allow(clippy::disallowed_methods, reason = "one thread spins, another calls")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use pteros::parameter::{Parameter, ParameterClient, ParameterDescriptor};
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let wheels = context.create_node("wheels")?;
    let range = ParameterDescriptor::new()
        .description("how fast, m/s")
        .float_range(0.0, 2.0, 0.1);
    let speed = wheels.declare_parameter_with("speed", 1.5, range)?;
    let _told = wheels.add_post_set_parameters_callback(|parameters| {
        for Parameter { name, value } in parameters {
            println!("{name} is {value} now");
        }
    });
    println!("speed is {} at first", speed.value());
    let spinner = thread::spawn(move || wheels.spin());

    let tuner = context.create_node("tuner")?;
    let client = ParameterClient::new(&tuner, "/wheels");
    let patience = Duration::from_secs(5);
    for wanted in [0.5, 9.0] {
        let parameters = vec![Parameter::new("speed", wanted)];
        for outcome in client.set(parameters, patience)? {
            match outcome {
                Ok(()) => println!("the parameter handle has {}", speed.value()),
                Err(reason) => println!("{wanted} is refused: {reason}"),
            }
        }
    }
    context.shutdown();
    spinner.join().map_err(|_| "the spinning thread panicked")?;
    Ok(())
}
