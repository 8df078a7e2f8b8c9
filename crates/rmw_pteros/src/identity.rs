//! Identity of the plug-in: identifier, serialization format, features, log severity.

use std::ffi::c_char;

use crate::abi::{GID_BYTES, Gid, Ret};
use crate::error::{Failure, IDENTIFIER, check_identifier, non_null, non_null_mut, run};

#[unsafe(no_mangle)]
pub extern "C" fn rmw_get_implementation_identifier() -> *const c_char {
    IDENTIFIER.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn rmw_get_serialization_format() -> *const c_char {
    c"cdr".as_ptr()
}

/// RMW_FEATURE_MESSAGE_INFO_PUBLICATION_SEQUENCE_NUMBER.
const PUBLICATION_SEQUENCE_NUMBER: u32 = 0;

#[unsafe(no_mangle)]
pub extern "C" fn rmw_feature_supported(feature: u32) -> bool {
    feature == PUBLICATION_SEQUENCE_NUMBER
}

#[unsafe(no_mangle)]
pub extern "C" fn rmw_set_log_severity(severity: u32) -> Ret {
    run("rmw_set_log_severity", || {
        crate::context::set_log_severity(severity);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_compare_gids_equal(
    one: *const Gid,
    other: *const Gid,
    result: *mut bool,
) -> Ret {
    run("rmw_compare_gids_equal", || {
        // SAFETY: gids, by the contract of rmw (lib.rs).
        unsafe {
            let (one, other) = (non_null(one, "gid1")?, non_null(other, "gid2")?);
            check_identifier(one.implementation_identifier, "gid1")?;
            check_identifier(other.implementation_identifier, "gid2")?;
            *non_null_mut(result, "result")? = one.data == other.data;
        }
        Ok(())
    })
}

impl Gid {
    pub(crate) fn new(guid: [u8; 16]) -> Self {
        Self {
            implementation_identifier: IDENTIFIER.as_ptr(),
            data: gid_bytes(guid),
        }
    }
}

/// The bytes of a gid: the GUID, and zeros where the distribution has more of them.
pub(crate) fn gid_bytes(guid: [u8; 16]) -> [u8; GID_BYTES] {
    let mut bytes = [0; GID_BYTES];
    for (to, from) in bytes.iter_mut().zip(guid) {
        *to = from;
    }
    bytes
}

impl From<pteros_runtime::error::EndpointError> for Failure {
    fn from(error: pteros_runtime::error::EndpointError) -> Self {
        Self::error(error)
    }
}

impl From<pteros_runtime::error::PublishError> for Failure {
    fn from(error: pteros_runtime::error::PublishError) -> Self {
        Self::error(error)
    }
}
