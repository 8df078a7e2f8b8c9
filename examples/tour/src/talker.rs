//! Talker: publishes "Hello World: N" on `chatter` every second, as ROS 2's demo
//! talker does. `ros2 run demo_nodes_cpp listener` receives it. Ctrl-C ends it.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("talker")?;
    let publisher = node.create_publisher::<Text>("chatter".keep_last(10))?;
    let mut count = 0;
    let _timer = node.create_timer(Duration::from_secs(1), move || {
        count += 1;
        let message = Text {
            data: format!("Hello World: {count}"),
        };
        println!("Publishing: '{}'", message.data);
        if let Err(error) = publisher.publish(&message) {
            eprintln!("{error}");
        }
    })?;
    node.spin();
    Ok(())
}
