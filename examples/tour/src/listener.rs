//! Prints what is said on `chatter` and how long it took to get here. Ctrl-C
//! ends it.

use std::error::Error;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.node("listener")?;
    let _subscription = node.create_subscription::<Text>("chatter", 10, |heard| {
        // The sample is the message; what is known about it is in info().
        let latency = heard.info().latency().unwrap_or_default();
        println!("I heard: '{}' after {latency:?}", heard.data);
    })?;
    node.spin();
    Ok(())
}
