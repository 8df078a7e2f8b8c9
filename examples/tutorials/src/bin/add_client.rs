//! Service client: one blocking call with a time limit.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("add_client")?;
    let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    let request = AddTwoIntsRequest { a: 2, b: 3 };
    let response = client.call(&request, Duration::from_secs(10))?;
    println!("{} + {} = {}", request.a, request.b, response.sum);
    Ok(())
}
