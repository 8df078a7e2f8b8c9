//! QoS: a best-effort publisher that reports subscriptions it does not match.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::LaserScan;
use pteros::prelude::*;
use pteros::{PublisherOptions, event_handler::EndpointEvent};

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("scanner")?;
    // Best effort, keep last 5: a lost scan is not worth a retransmission.
    let qos = QosProfile::sensor_data();
    let options = PublisherOptions::new("scan".qos(qos)).on_event(|event: &EndpointEvent| {
        if let EndpointEvent::IncompatibleQos { policies, .. } = event {
            for policy in policies {
                println!("incompatible QoS: {}", policy.name());
            }
        }
    });
    let publisher = node.create_publisher::<LaserScan>(options)?;
    let clock = node.clock();
    let _timer = node.create_timer(Duration::from_millis(100), move || {
        let mut scan = LaserScan::default();
        scan.header.stamp = clock.now().into();
        scan.header.frame_id = "laser".into();
        scan.ranges = vec![1.0; 3];
        if let Err(error) = publisher.publish(&scan) {
            eprintln!("{error}");
        }
    })?;
    println!("scanning");
    node.spin();
    Ok(())
}
