//! Network flow endpoints: the source addresses of a publisher's datagrams, and the
//! addresses at which a subscription receives.
//!
//! All endpoints of a context share its sockets. So they have the same addresses, and a
//! unique flow cannot be required.

use pteros_runtime::Core;
use pteros_runtime::rtps::locator::IpAddress;

use crate::abi::{
    Allocator, NetworkFlowEndpoint, NetworkFlowEndpoints, Publisher, Ret, Subscription,
};
use crate::error::{Failure, Outcome, non_null, run};
use crate::{publisher, subscription};

/// `RMW_TRANSPORT_PROTOCOL_UDP`.
pub(crate) const UDP: u32 = 1;
/// `RMW_INTERNET_PROTOCOL_IPV4`.
pub(crate) const IP_V4: u32 = 1;
/// `RMW_INTERNET_PROTOCOL_IPV6`.
pub(crate) const IP_V6: u32 = 2;
/// `RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED`.
const STRICTLY_REQUIRED: u32 = 1;

/// Refuses an endpoint that requires a unique flow.
pub(crate) fn check_requirement(unique_flow: u32) -> Outcome {
    if unique_flow == STRICTLY_REQUIRED {
        return Err(Failure::unsupported(
            "a network flow of its own (RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED), \
             because all endpoints share the sockets of their context,",
        ));
    }
    Ok(())
}

unsafe fn fill(
    core: &Core,
    dscp: u8,
    allocator: *const Allocator,
    endpoints: *mut NetworkFlowEndpoints,
) -> Outcome {
    // SAFETY: the contract of rmw (lib.rs).
    let (allocator_ref, endpoints) = unsafe {
        let endpoints = endpoints.as_mut();
        let endpoints = endpoints
            .ok_or_else(|| Failure::argument("argument network_flow_endpoint_array is null"))?;
        (non_null(allocator, "allocator")?, endpoints)
    };
    allocator_ref.check()?;
    if endpoints.size != 0 || !endpoints.endpoints.is_null() {
        return Err(Failure::argument("the array of endpoints is not zero"));
    }
    let addresses: Vec<_> = core
        .rtps()
        .unicast_locators()
        .into_iter()
        .filter_map(|locator| locator.to_udp())
        .collect();
    if addresses.is_empty() {
        return Ok(());
    }
    let list: *mut NetworkFlowEndpoint = allocator_ref.array(addresses.len())?;
    for (at, (ip, port)) in addresses.iter().enumerate() {
        // SAFETY: a place for each address.
        unsafe {
            list.add(at)
                .write(NetworkFlowEndpoint::udp(*ip, *port, dscp))
        };
    }
    *endpoints = NetworkFlowEndpoints {
        size: addresses.len(),
        endpoints: list,
        allocator: allocator.cast_mut(),
    };
    Ok(())
}

impl NetworkFlowEndpoint {
    fn udp(ip: IpAddress, port: u16, dscp: u8) -> Self {
        let mut internet_address = [0; 48];
        let text = ip.ip().to_string();
        for (to, from) in internet_address.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self {
            transport_protocol: UDP,
            internet_protocol: if ip.is_v6() { IP_V6 } else { IP_V4 },
            transport_port: port,
            flow_label: 0,
            dscp,
            internet_address,
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_publisher_get_network_flow_endpoints(
    publisher: *const Publisher,
    allocator: *const Allocator,
    endpoints: *mut NetworkFlowEndpoints,
) -> Ret {
    run("rmw_publisher_get_network_flow_endpoints", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = publisher::state(publisher)?;
            fill(
                state.core(),
                state.writer.code_point(),
                allocator,
                endpoints,
            )
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_subscription_get_network_flow_endpoints(
    subscription: *const Subscription,
    allocator: *const Allocator,
    endpoints: *mut NetworkFlowEndpoints,
) -> Ret {
    run("rmw_subscription_get_network_flow_endpoints", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let state = subscription::state(subscription)?;
            fill(state.core(), 0, allocator, endpoints)
        }
    })
}
