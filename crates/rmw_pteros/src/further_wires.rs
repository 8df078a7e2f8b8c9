//! The wires of a context beside RTPS: Zenoh, where the plug-in is built with it and
//! `PTEROS_WIRE` asks for it.

use pteros_runtime::config::{Config, WireChoice};
use pteros_runtime::wire::{OpenWire, RtpsReach};

use crate::error::{Failure, Outcome};

/// The wires of one context.
pub struct WirePlan {
    /// Whom RTPS reaches, and shared memory with it.
    pub rtps_reach: RtpsReach,
    /// The other wires.
    pub wires: Vec<OpenWire>,
    /// Little arrives at the sockets of RTPS.
    pub is_rtps_idle: bool,
}

/// The wires that the environment asks for. `rtps_reach` is that without Zenoh.
///
/// # Errors
/// Zenoh is not in this plug-in, one of its variables is malformed, or DDS Security is
/// on, which Zenoh does not have.
pub fn plan(
    config: &Config,
    domain_id: u32,
    rtps_reach: RtpsReach,
    is_secured: bool,
) -> Outcome<WirePlan> {
    let choice = config.wire.unwrap_or_default();
    let mut plan = WirePlan {
        rtps_reach,
        wires: Vec::new(),
        is_rtps_idle: !choice.has_rtps(),
    };
    if choice.has_zenoh() {
        if is_secured {
            return Err(Failure::error(
                "DDS Security protects RTPS, and PTEROS_WIRE asks for Zenoh: set PTEROS_WIRE=rtps, \
                 or ROS_SECURITY_ENABLE=false and certificates for Zenoh",
            ));
        }
        add_zenoh(&mut plan, config, domain_id, choice)?;
    }
    Ok(plan)
}

#[cfg(feature = "zenoh")]
fn add_zenoh(
    plan: &mut WirePlan,
    config: &Config,
    domain_id: u32,
    choice: WireChoice,
) -> Outcome<()> {
    let settings = config.zenoh().map_err(Failure::error)?;
    if !choice.has_rtps() && plan.rtps_reach != RtpsReach::Off {
        plan.rtps_reach = if config.shared_memory.unwrap_or(true) {
            pteros_zenoh::rtps_reach(&settings, domain_id)
        } else {
            RtpsReach::Off
        };
    }
    plan.wires.push(pteros_zenoh::wire(settings));
    Ok(())
}

#[cfg(not(feature = "zenoh"))]
fn add_zenoh(_: &mut WirePlan, _: &Config, _: u32, _: WireChoice) -> Outcome<()> {
    Err(Failure::error(
        "PTEROS_WIRE asks for Zenoh, which is not in this rmw_pteros_cpp: build it with the \
         feature \"zenoh\" of pteros-rmw, or set PTEROS_WIRE=rtps",
    ))
}
