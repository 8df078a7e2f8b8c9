//! A context without remote peers, and messages of its publishers.

use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;

/// Discovery is off.
pub fn context() -> Context {
    let options = ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

pub fn publish(publisher: &Publisher<UInt64>, data: u64) {
    publisher.publish_owned(UInt64 { data }).unwrap();
}
