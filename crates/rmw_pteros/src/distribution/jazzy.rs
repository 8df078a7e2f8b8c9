//! The C ABI of rmw 7.3, ROS 2 Jazzy, where it differs from other distributions.

use pteros_runtime::config::Config;

use super::Discovery;
use crate::abi::Allocator;
use crate::error::Outcome;

pub use super::since_iron::*;
pub use super::until_kilted::*;

/// The number of the first event.
pub(crate) const FIRST_EVENT_TYPE: u32 = 0;

/// The fields of `rmw_init_options_t` about discovery.
#[repr(C)]
pub struct DiscoveryFields {
    /// `rmw_localhost_only_t`, deprecated: rcl sets the range beside it.
    pub localhost_only: u32,
    pub discovery_options: DiscoveryOptions,
}

impl DiscoveryFields {
    pub(crate) const ZERO: Self = Self {
        localhost_only: 0,
        discovery_options: DiscoveryOptions::ZERO,
    };

    pub(crate) unsafe fn copy(&self, allocator: &Allocator) -> Outcome<Self> {
        Ok(Self {
            localhost_only: self.localhost_only,
            // SAFETY: as for this function.
            discovery_options: unsafe { self.discovery_options.copy(allocator) }?,
        })
    }

    pub(crate) unsafe fn free(&self, allocator: &Allocator) {
        // SAFETY: as for this function.
        unsafe { self.discovery_options.free(allocator) };
    }

    pub(crate) unsafe fn settings(&self, config: &Config) -> Discovery {
        // SAFETY: as for this function.
        unsafe { self.discovery_options.settings(config) }
    }
}

#[cfg(test)]
pub(crate) mod headers {
    pub(crate) use super::super::since_iron::headers::*;
    pub(crate) use super::super::until_kilted::headers::*;

    use super::DiscoveryFields;
    use crate::header_check::{Field, layout};

    pub(crate) fn discovery_fields() -> Vec<Field> {
        layout!("" => DiscoveryFields { localhost_only, discovery_options }).fields
    }
}
