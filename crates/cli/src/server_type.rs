//! Service type mismatch: a client of a service whose server has another type waits
//! for ever, because the endpoints do not match. `service call` and
//! `action send_goal` end with an error instead.

use anyhow::{Result, bail};
use pteros::Graph;

/// Checks that a service has no servers, or one of this type.
///
/// # Errors
/// All servers have other types. The message names one of them, and the
/// command line for that type.
pub fn check_server_type(graph: &Graph, service: &str, own: &str) -> Result<()> {
    let call = format!("pteros service call {service}");
    refuse_other_type(
        graph,
        service,
        "",
        own,
        &format!("service '{service}'"),
        &call,
    )
}

/// As [`check_server_type`], for the servers of an action.
pub fn check_action_server_type(graph: &Graph, action: &str, own: &str) -> Result<()> {
    let (service, part) = (format!("{action}/_action/send_goal"), "_SendGoal");
    let send = format!("pteros action send_goal {action}");
    refuse_other_type(
        graph,
        &service,
        part,
        own,
        &format!("action '{action}'"),
        &send,
    )
}

/// The type of a server is `own` and `part`, and `own` may lack the kind of interface.
fn refuse_other_type(
    graph: &Graph,
    service: &str,
    part: &str,
    own: &str,
    shown: &str,
    command: &str,
) -> Result<()> {
    let requests = graph.subscriptions(&format!("rq{service}Request"));
    let types: Vec<&str> = requests
        .iter()
        .map(|server| server.topic_type.as_str())
        .map(|name| name.strip_suffix("_Request").unwrap_or(name))
        .map(|name| name.strip_suffix(part).unwrap_or(name))
        .collect();
    let is_own = |name: &&str| *name == own || without_kind(name) == own;
    match types.first() {
        Some(other) if !types.iter().any(is_own) => {
            bail!("{shown} has type '{other}', not '{own}'; use: {command} {other}")
        }
        _ => Ok(()),
    }
}

/// The name of a service or action type as ROS 2 also accepts it: `package/Name`.
pub fn without_kind(name: &str) -> String {
    name.replacen("/srv/", "/", 1).replacen("/action/", "/", 1)
}
