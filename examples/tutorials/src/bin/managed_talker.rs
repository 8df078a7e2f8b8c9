//! Lifecycle node: opens its publisher when configured, publishes while active.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::lifecycle::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
use pteros::prelude::*;

#[derive(Default)]
struct Talker {
    timer: Option<Timer>,
}

impl LifecycleCallbacks for Talker {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let Ok(publisher) = node.create_publisher::<Text>("chatter".keep_last(10)) else {
            return CallbackReturn::Failure;
        };
        let timer = node.create_timer(Duration::from_millis(500), move || {
            let _ = publisher.publish_owned(Text {
                data: "Hello".into(),
            });
        });
        self.timer = timer.ok();
        println!("configured");
        CallbackReturn::Success
    }

    fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        println!("active");
        CallbackReturn::Success
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        println!("inactive");
        CallbackReturn::Success
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        self.timer = None;
        println!("unconfigured");
        CallbackReturn::Success
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let options = NodeOptions::new("talker");
    let node = LifecycleNode::new(&context, options, Talker::default())?;
    println!("unconfigured");
    node.spin();
    Ok(())
}
