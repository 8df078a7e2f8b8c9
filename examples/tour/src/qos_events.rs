//! QoS events: a publisher offers less than a subscription requests. They do not
//! match, and both report the incompatible policy.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{
    PublisherOptions, SubscriptionOptions, event_handler::EndpointEvent, graph::MatchOutcome,
};

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("mismatch")?;
    let reports = Arc::new(AtomicUsize::new(0));
    let report = |side: &'static str| {
        let reports = reports.clone();
        move |event: &EndpointEvent| {
            if let EndpointEvent::IncompatibleQos { policies, .. } = event {
                println!("{side}: incompatible {}", policies[0].name());
                reports.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let offered = QosProfile::sensor_data(); // best effort
    let options = PublisherOptions::new("scan".qos(offered)).on_event(report("publisher"));
    let _publisher = node.create_publisher::<Text>(options)?;
    let requested = QosProfile::default(); // reliable
    let options =
        SubscriptionOptions::<Text>::new("scan".qos(requested)).on_event(report("subscription"));
    let _subscription = node.create_polled_subscription(options)?;
    node.spin_until(
        || reports.load(Ordering::Relaxed) == 2,
        Duration::from_secs(5),
    );
    for pair in context.graph().match_reports("/scan") {
        for outcome in pair.outcomes {
            if let MatchOutcome::Incompatible {
                offered,
                requested,
                hint: advice,
                ..
            } = outcome
            {
                println!("offered {offered}, requested {requested}: {advice}");
            }
        }
    }
    Ok(())
}
