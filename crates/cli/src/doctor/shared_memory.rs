//! Shared-memory check: two contexts of this user exchange a message.

use super::finding::{Finding, Findings};
use pteros::config::Config;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{NodeOptions, subscription::DeliveryPath};
use std::time::Duration;

/// A domain that is rarely used, limited to this host.
const DOMAIN: u32 = 231;
const WAIT_MAX: Duration = Duration::from_millis(700);

/// Creates two contexts and sends a message between them.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new("shared memory");
    if let Ok(config) = Config::from_environment()
        && config.shared_memory == Some(false)
    {
        found.note_with("switched off by PTEROS_SHARED_MEMORY=off", "unset it");
        return found.into_list();
    }
    match exchange_message() {
        Ok(None) => found.ok("a message was delivered through shared memory"),
        Ok(Some(reason)) => found.warn(
            format!("a message was not delivered through shared memory: {reason}"),
            "repeat the check when this host is less busy; containers need one user, one network namespace and one kernel for shared memory (docs/how_to/transports.md)",
        ),
        Err(error) => found.error(
            format!("two contexts on this host cannot communicate: {error}"),
            "see the other findings",
        ),
    }
    found.into_list()
}

/// The reason why a message did not use shared memory; `None` if it did.
fn exchange_message() -> anyhow::Result<Option<String>> {
    let open = || Context::with_options(ContextOptions::local(DOMAIN));
    let (one, other) = (open()?, open()?);
    let bare = |name: &str| {
        NodeOptions::new(format!("_pteros_doctor_{name}_{}", std::process::id()))
            .start_parameter_services(false)
            .start_type_description_service(false)
            .start_parameter_event_publisher(false)
    };
    let from = one.create_node(bare("from"))?;
    let to = other.create_node(bare("to"))?;
    let topic = format!("/_pteros_doctor_{}", std::process::id());
    let publisher = from.create_publisher::<Text>(&topic)?;
    let subscription = to.create_polled_subscription::<Text>(&topic)?;
    let is_shared = || one.delivery_path_to(other.guid()).path == DeliveryPath::SharedMemory;
    from.spin_until(|| publisher.matched_count() > 0 && is_shared(), WAIT_MAX);
    let reason = one.delivery_path_to(other.guid()).reason;
    publisher.publish(&Text {
        data: "how are you".into(),
    })?;
    let sample = subscription.take_timeout(WAIT_MAX);
    let sample = sample.ok_or_else(|| anyhow::anyhow!("a message did not arrive"))?;
    match sample.info().delivery_path {
        DeliveryPath::SharedMemory => Ok(None),
        _ => Ok(Some(reason.unwrap_or_else(|| {
            "the shared-memory connection was established too late".into()
        }))),
    }
}
