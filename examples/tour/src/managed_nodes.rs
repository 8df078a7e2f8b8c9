//! Lifecycle: a supervisor brings two managed nodes up, the camera before the
//! detector that depends on it, and down again.
#![allow(
    clippy::disallowed_methods,
    reason = "the nodes spin on their own thread beside the supervisor's"
)]

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::lifecycle::{
    CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState, LifecycleSupervisor,
    SupervisedNode,
};
use pteros::prelude::*;

/// Publishes while active.
#[derive(Default)]
struct Camera {
    timer: Option<Timer>,
}

impl LifecycleCallbacks for Camera {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let Ok(images) = node.create_publisher::<UInt64>("images".keep_last(10)) else {
            return CallbackReturn::Failure;
        };
        let mut number = 0;
        let timer = node.create_timer(Duration::from_millis(50), move || {
            number += 1;
            let _ = images.publish_owned(UInt64 { data: number });
        });
        self.timer = timer.ok();
        println!("camera: configured");
        CallbackReturn::Success
    }

    fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        println!("camera: active");
        CallbackReturn::Success
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        println!("camera: inactive");
        CallbackReturn::Success
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        self.timer = None;
        CallbackReturn::Success
    }
}

/// Subscribes when configured.
struct Detector {
    images: Option<Subscription<UInt64>>,
    seen: mpsc::Sender<u64>,
}

impl LifecycleCallbacks for Detector {
    fn on_configure(&mut self, node: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        let seen = self.seen.clone();
        let images =
            node.create_subscription("images".keep_last(10), move |image: Sample<UInt64>| {
                let _ = seen.send(image.data);
            });
        self.images = images.ok();
        println!("detector: configured");
        CallbackReturn::Success
    }
}

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let (seen, images) = mpsc::channel();
    let camera = LifecycleNode::new(&context, NodeOptions::new("camera"), Camera::default())?;
    let detector = Detector { images: None, seen };
    let detector = LifecycleNode::new(&context, NodeOptions::new("detector"), detector)?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&camera)?;
    executor.add_node(&detector)?;
    let stop = executor.handle();
    let spinning = thread::spawn(move || executor.spin());

    let nodes = [
        SupervisedNode::new("/detector").depends_on("/camera"),
        SupervisedNode::new("/camera"),
    ];
    let mut supervisor = LifecycleSupervisor::new(&context, nodes)?;
    println!("up: {}", supervisor.bring_up());
    if let Ok(number) = images.recv_timeout(Duration::from_secs(10)) {
        println!("detector: image {number}");
    }
    println!("down: {}", supervisor.bring_down());
    stop.cancel();
    let _ = spinning.join();
    Ok(())
}
