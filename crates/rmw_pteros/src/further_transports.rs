//! Transports of a context beside RTPS: Zenoh, if the plug-in is built with it and
//! `PTEROS_WIRE` selects it.

use pteros_runtime::config::{Config, ZenohSettings};
use pteros_runtime::transport::{OpenTransport, RtpsReach};

use crate::error::{Failure, Outcome};

/// The transports of one context.
pub struct TransportPlan {
    /// Which processes RTPS reaches, also by shared memory.
    pub rtps_reach: RtpsReach,
    /// The transports beside RTPS.
    pub transports: Vec<OpenTransport>,
    /// Whether the sockets of RTPS receive little.
    pub is_rtps_idle: bool,
}

/// The transports selected by the environment. `has_discovery`: the discovery range allows the
/// context to find others.
///
/// # Errors
/// This plug-in has no Zenoh, a variable of Zenoh is malformed, or DDS Security is on,
/// which Zenoh does not support.
pub fn plan(
    config: &Config,
    domain_id: u32,
    has_discovery: bool,
    is_secured: bool,
) -> Outcome<TransportPlan> {
    let choice = config.wire.unwrap_or_default();
    if choice.has_zenoh() && is_secured {
        return Err(Failure::error(
            "DDS Security protects RTPS, and PTEROS_WIRE asks for Zenoh: set PTEROS_WIRE=rtps, \
             or ROS_SECURITY_ENABLE=false and certificates for Zenoh",
        ));
    }
    let zenoh = choice.has_zenoh().then(|| config.zenoh()).transpose();
    let zenoh = zenoh.map_err(Failure::error)?;
    let has_shared_memory = config.shared_memory.unwrap_or(true);
    Ok(TransportPlan {
        rtps_reach: RtpsReach::of(choice, has_discovery, has_shared_memory, || {
            let beside = |settings| reach_beside_zenoh(settings, domain_id);
            zenoh.as_ref().map_or(RtpsReach::Off, beside)
        }),
        is_rtps_idle: !choice.has_rtps(),
        transports: zenoh
            .map(zenoh_transport)
            .transpose()?
            .into_iter()
            .collect(),
    })
}

#[cfg(feature = "zenoh")]
fn reach_beside_zenoh(settings: &ZenohSettings, domain_id: u32) -> RtpsReach {
    pteros_zenoh::rtps_reach(settings, domain_id)
}

#[cfg(not(feature = "zenoh"))]
fn reach_beside_zenoh(_: &ZenohSettings, _: u32) -> RtpsReach {
    RtpsReach::Off
}

#[cfg(feature = "zenoh")]
fn zenoh_transport(settings: ZenohSettings) -> Outcome<OpenTransport> {
    Ok(pteros_zenoh::transport(settings))
}

#[cfg(not(feature = "zenoh"))]
fn zenoh_transport(_: ZenohSettings) -> Outcome<OpenTransport> {
    Err(Failure::error(
        "PTEROS_WIRE asks for Zenoh, which is not in this rmw_pteros_cpp: build it with the \
         feature \"zenoh\" of pteros-rmw, or set PTEROS_WIRE=rtps",
    ))
}
