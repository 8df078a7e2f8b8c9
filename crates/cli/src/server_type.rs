//! Service type mismatch: a client of a service whose server has another type waits
//! for ever, because the endpoints do not match. `service call` and
//! `action send_goal` end with an error instead.

use anyhow::{Result, bail};
use pteros::Graph;

/// Checks that a service has no servers, or one of this type.
///
/// # Errors
/// All servers have other types. The message names one of them, and `command`, the
/// command line for that type.
pub fn check_server_type(
    graph: &Graph,
    service: &str,
    own: &str,
    command: impl FnOnce(&str) -> String,
) -> Result<()> {
    let requests = graph.subscriptions(&format!("rq{service}Request"));
    let types: Vec<&str> = requests
        .iter()
        .map(|server| server.topic_type.as_str())
        .map(|name| name.strip_suffix("_Request").unwrap_or(name))
        .collect();
    match types.first() {
        Some(other) if !types.contains(&own) => bail!(
            "service '{service}' has type '{other}', not '{own}'; use: {}",
            command(other)
        ),
        _ => Ok(()),
    }
}
