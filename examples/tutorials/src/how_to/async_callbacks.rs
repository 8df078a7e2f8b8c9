//! An async callback that calls a service with a time limit.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;

/// Doubles each number by a call of `add_two_ints`. Blocks until Ctrl-C.
pub fn run() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("doubler")?;
    let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    let timer = node.clone();
    let _numbers =
        node.create_subscription("number".keep_last(10), move |number: Sample<Int64>| {
            let (client, timer) = (client.clone(), timer.clone());
            Box::pin(async move {
                let request = AddTwoIntsRequest {
                    a: number.data,
                    b: number.data,
                };
                let Ok(call) = client.call_async(&request) else {
                    return;
                };
                match timer.timeout(Duration::from_secs(1), call).await {
                    Some(Ok(response)) => println!("{}", response.sum),
                    Some(Err(error)) => println!("{error}"),
                    None => println!("no response within a second"),
                }
            })
        })?;
    node.spin();
    Ok(())
}
