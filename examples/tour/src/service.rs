//! Service: a server and its client in one process. One call waits for a future, one
//! has a callback.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use pteros::executors::spin_until_future_complete;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(10);

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("adder")?;
    let _server =
        node.create_service::<AddTwoInts>("add_two_ints", |request: Sample<AddTwoIntsRequest>| {
            println!("server: {} + {}", request.a, request.b);
            AddTwoIntsResponse {
                sum: request.a.wrapping_add(request.b),
            }
        })?;
    let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    if !client.wait_for_service(TIMEOUT) {
        return Err("no server within 10 s".into());
    }

    // The node that is spun runs the server's callback, too. `Client::call` would block it.
    let call = client.call_async(&AddTwoIntsRequest { a: 2, b: 3 })?;
    let response = spin_until_future_complete(&node, call, TIMEOUT).ok_or("no response")??;
    println!("client: the sum is {}", response.sum);

    let (sender, receiver) = mpsc::channel();
    client.call_then(&AddTwoIntsRequest { a: 40, b: 2 }, move |response| {
        let _ = sender.send(response.map(|response| response.sum));
    })?;
    let mut sum = None;
    let has_ended = || {
        sum = receiver.try_recv().ok();
        sum.is_some()
    };
    node.spin_until(has_ended, TIMEOUT);
    println!("client: then {}", sum.ok_or("no response")??);
    Ok(())
}
