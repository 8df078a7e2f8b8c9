//! `pub` and `sub`: numbered texts in one direction at a rate.

use std::error::Error;
use std::time::{Duration, Instant};

use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::String as Text;

use crate::{PingOptions, context};

const TOPIC: &str = "chatter";

/// Publishes `count` texts and then lingers, so that the last one can be
/// retransmitted. Returns false if nothing matched in time.
pub fn publish(settings: &PingOptions) -> Result<bool, Box<dyn Error>> {
    let context = context(settings)?;
    let node = context.create_node("pub")?;
    let publisher = node.create_publisher::<Text>(TOPIC.qos(settings.depth))?;
    println!("ready");
    if !publisher.wait_for_matched(settings.wait_matched, settings.timeout) {
        return Ok(false);
    }
    node.spin_until(|| false, settings.settle);
    let start = Instant::now();
    for number in 1..=settings.count {
        let due = start + Duration::from_secs_f64(number as f64 / settings.rate);
        node.spin_until(|| false, due.saturating_duration_since(Instant::now()));
        let data = format!("Hello World: {number}");
        println!("sent seq={number} size={} text={data}", data.len());
        publisher.publish_owned(Text { data })?;
    }
    node.spin_until(|| false, settings.linger);
    println!("ended sent={}", settings.count);
    Ok(true)
}

/// Prints `count` received texts, or those until the time is over.
pub fn subscribe(settings: &PingOptions) -> Result<bool, Box<dyn Error>> {
    let context = context(settings)?;
    let node = context.create_node("sub")?;
    let subscription = node.create_polled_subscription::<Text>(TOPIC.qos(settings.depth))?;
    println!("ready");
    let end = Instant::now() + settings.timeout;
    let mut received = 0;
    while settings.count == 0 || received < settings.count {
        let left = end.saturating_duration_since(Instant::now());
        let Some(text) = subscription.take_timeout(left) else {
            break;
        };
        received += 1;
        println!(
            "received seq={received} size={} text={}",
            text.data.len(),
            text.data
        );
    }
    println!("ended received={received}");
    Ok(settings.count == 0 || received == settings.count)
}
