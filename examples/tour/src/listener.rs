//! Listener: prints the messages of `chatter` and their latency. Ctrl-C ends it.

use std::error::Error;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("listener")?;
    let _subscription = node.create_subscription::<Text>("chatter".keep_last(10), |received| {
        // The sample is the message; its metadata is in info().
        let latency = received.info().latency().unwrap_or_default();
        println!("I heard: '{}' after {latency:?}", received.data);
    })?;
    node.spin();
    Ok(())
}
