//! Zenoh checks: the routers that a session is connected to. Other hosts are reached by
//! them alone.

use super::finding::Finding;
use crate::session::Session;
use pteros::transport::RtpsReach;

/// Whether the session's nodes use the network by Zenoh alone. Nothing of RTPS matters
/// then beyond this host.
pub fn is_alone(session: &Session) -> bool {
    has_zenoh(session) && session.context.runtime().options().rtps_reach != RtpsReach::Network
}

fn has_zenoh(session: &Session) -> bool {
    let counters = session.context.transport_counters();
    counters.iter().any(|(transport, ..)| transport == "zenoh")
}

/// Checks the routers, if the session uses Zenoh.
#[cfg(feature = "zenoh")]
pub fn check(session: &Session) -> Vec<Finding> {
    use super::finding::Findings;
    use pteros::config::Config;

    let mut found = Findings::new("zenoh");
    if !has_zenoh(session) {
        return Vec::new();
    }
    // Wrong variables are findings of the environment.
    let settings = Config::from_environment().and_then(|config| config.zenoh());
    let Ok(settings) = settings else {
        return Vec::new();
    };
    match pteros_zenoh::connected_routers(&settings) {
        Ok(routers) if routers.is_empty() => found.note_with(
            "no Zenoh router is connected: nodes of Pteros on this host find each other, others do not",
            "start one by: pteros router; if one runs elsewhere, name it in ZENOH_CONFIG_OVERRIDE, \
             as connect/endpoints=[\"tcp/10.0.0.1:7447\"]",
        ),
        Ok(routers) => found.ok(format!("connected to the Zenoh router {}", routers.join(", "))),
        Err(error) => {
            let (what, fix) = error
                .split_once("; ")
                .unwrap_or((&error, "see docs/how_to/many_robots.md"));
            found.error(what, fix);
        }
    }
    found.into_list()
}

/// Nothing to check: this program has no Zenoh.
#[cfg(not(feature = "zenoh"))]
pub fn check(_session: &Session) -> Vec<Finding> {
    Vec::new()
}
