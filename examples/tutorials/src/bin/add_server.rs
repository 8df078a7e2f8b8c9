//! Service server: adds two integers.

use std::error::Error;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("add_server")?;
    let _service = node.create_service::<AddTwoInts>(
        "add_two_ints",
        |request: Sample<AddTwoInts_Request>| {
            println!("request: {} + {}", request.a, request.b);
            AddTwoInts_Response {
                sum: request.a.wrapping_add(request.b),
            }
        },
    )?;
    println!("ready");
    node.spin();
    Ok(())
}
