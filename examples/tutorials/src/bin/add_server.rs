//! Service server: adds two integers.

use std::error::Error;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("add_server")?;
    let _service =
        node.create_service::<AddTwoInts>("add_two_ints", |request: Sample<AddTwoIntsRequest>| {
            println!("request: {} + {}", request.a, request.b);
            AddTwoIntsResponse {
                sum: request.a.wrapping_add(request.b),
            }
        })?;
    println!("ready");
    node.spin();
    Ok(())
}
