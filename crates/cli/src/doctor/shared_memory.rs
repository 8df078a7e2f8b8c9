//! Whether two contexts of this user meet and talk through shared memory.

use super::finding::{Finding, Findings};
use pteros::config::Config;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{NodeOptions, Path};
use std::time::Duration;

/// As good as unused; only this host hears of it.
const DOMAIN: u32 = 231;
const WAIT_MAX: Duration = Duration::from_millis(700);

/// Makes two contexts, and a message from one to the other.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new("shared memory");
    if let Ok(config) = Config::from_environment()
        && config.shared_memory == Some(false)
    {
        found.note_with("switched off by PTEROS_SHARED_MEMORY=off", "unset it");
        return found.into_list();
    }
    match talk() {
        Ok(None) => found.fine("memory, doors and links work: a message took that way"),
        Ok(Some(reason)) => found.warn(
            format!("a message did not go through shared memory: {reason}"),
            "look again when this host is less busy; containers need one user, one network namespace and one kernel for shared memory (docs/paths.md)",
        ),
        Err(error) => found.error(
            format!("two contexts on this host cannot be tried: {error}"),
            "see the other findings",
        ),
    }
    found.into_list()
}

/// Why a message did not go through shared memory; `None` if it did.
fn talk() -> anyhow::Result<Option<String>> {
    let open = || Context::with_options(ContextOptions::local(DOMAIN));
    let (one, other) = (open()?, open()?);
    let bare = |name: &str| {
        NodeOptions::new(format!("_pteros_doctor_{name}_{}", std::process::id()))
            .start_parameter_services(false)
            .start_parameter_event_publisher(false)
    };
    let from = one.node_with(bare("from"))?;
    let to = other.node_with(bare("to"))?;
    let topic = format!("/_pteros_doctor_{}", std::process::id());
    let publisher = from.create_publisher::<Text>(&topic, QosProfile::default())?;
    let subscription = to.create_polled_subscription::<Text>(&topic, QosProfile::default())?;
    let is_shared = || one.path_to(other.guid()).path == Path::SharedMemory;
    from.spin_until(|| publisher.matched_count() > 0 && is_shared(), WAIT_MAX);
    let reason = one.path_to(other.guid()).reason;
    publisher.publish(&Text {
        data: "how are you".into(),
    })?;
    let sample = subscription.take_timeout(WAIT_MAX);
    let sample = sample.ok_or_else(|| anyhow::anyhow!("a message did not arrive"))?;
    match sample.info().path {
        Path::SharedMemory => Ok(None),
        _ => Ok(Some(
            reason.unwrap_or_else(|| "the link came too late".into()),
        )),
    }
}
