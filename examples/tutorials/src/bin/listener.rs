//! Subscription: prints each message of the topic `chatter`.

use std::error::Error;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("listener")?;
    let _subscription =
        node.create_subscription("chatter".keep_last(10), |message: Sample<Text>| {
            println!("I heard: '{}'", message.data);
        })?;
    node.spin();
    Ok(())
}
