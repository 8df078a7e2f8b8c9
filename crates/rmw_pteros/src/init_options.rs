//! Init options: parameters of a context.

use std::ffi::{CStr, c_char};

use crate::abi::{Allocator, DiscoveryOptions, InitOptions, PEER_BYTES, Ret, SecurityOptions};
use crate::error::{Failure, IDENTIFIER, Outcome, check_identifier, non_null, non_null_mut, run};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_init(
    options: *mut InitOptions,
    allocator: Allocator,
) -> Ret {
    run("rmw_init_options_init", || {
        // SAFETY: by contract of rmw.
        let options = unsafe { non_null_mut(options, "init_options") }?;
        allocator.check()?;
        if !options.implementation_identifier.is_null() {
            return Err(Failure::argument("init_options are initialized already"));
        }
        *options = InitOptions {
            implementation_identifier: IDENTIFIER.as_ptr(),
            allocator,
            ..InitOptions::ZERO
        };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_copy(
    from: *const InitOptions,
    to: *mut InitOptions,
) -> Ret {
    run("rmw_init_options_copy", || {
        // SAFETY: by contract of rmw.
        let (from, to) = unsafe { (non_null(from, "src")?, non_null_mut(to, "dst")?) };
        if from.implementation_identifier.is_null() {
            return Err(Failure::argument("src is not initialized"));
        }
        // SAFETY: by contract of rmw.
        unsafe { check_identifier(from.implementation_identifier, "src") }?;
        if !to.implementation_identifier.is_null() {
            return Err(Failure::argument("dst is initialized already"));
        }
        // SAFETY: `from` is initialized.
        *to = unsafe { copy(from) }?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_fini(options: *mut InitOptions) -> Ret {
    run("rmw_init_options_fini", || {
        // SAFETY: by contract of rmw.
        let options = unsafe { non_null_mut(options, "init_options") }?;
        if options.implementation_identifier.is_null() {
            return Err(Failure::argument("init_options are not initialized"));
        }
        // SAFETY: by contract of rmw.
        unsafe { check_identifier(options.implementation_identifier, "init_options") }?;
        options.allocator.check()?;
        // SAFETY: initialized, and not used any more.
        unsafe { finalize(options) };
        Ok(())
    })
}

impl InitOptions {
    /// As `rmw_get_zero_initialized_init_options`.
    pub(crate) const ZERO: Self = Self {
        instance_id: 0,
        implementation_identifier: std::ptr::null(),
        domain_id: usize::MAX,
        security_options: SecurityOptions {
            enforce_security: 0,
            security_root_path: std::ptr::null_mut(),
        },
        localhost_only: 0,
        discovery_options: DiscoveryOptions {
            automatic_discovery_range: 0,
            static_peers: std::ptr::null_mut(),
            static_peers_count: 0,
            allocator: Allocator::ZERO,
        },
        enclave: std::ptr::null_mut(),
        allocator: Allocator::ZERO,
        implementation: std::ptr::null_mut(),
    };
}

/// A copy with its own memory, from the allocator of the original.
///
/// # Safety
/// `from` is initialized.
pub(crate) unsafe fn copy(from: &InitOptions) -> Outcome<InitOptions> {
    let allocator = from.allocator;
    allocator.check()?;
    let mut to = InitOptions {
        implementation_identifier: from.implementation_identifier,
        instance_id: from.instance_id,
        domain_id: from.domain_id,
        localhost_only: from.localhost_only,
        allocator,
        ..InitOptions::ZERO
    };
    to.security_options.enforce_security = from.security_options.enforce_security;
    to.discovery_options.automatic_discovery_range =
        from.discovery_options.automatic_discovery_range;
    // SAFETY: strings and peers of the original.
    let filled = unsafe { copy_memory(from, &mut to) };
    if let Err(failure) = filled {
        // SAFETY: what was copied is of this allocator.
        unsafe { finalize(&mut to) };
        return Err(failure);
    }
    Ok(to)
}

unsafe fn copy_memory(from: &InitOptions, to: &mut InitOptions) -> Outcome {
    let allocator = from.allocator;
    // SAFETY: null or a C string.
    let copied = |text: *const c_char| unsafe {
        if text.is_null() {
            return Ok(std::ptr::null_mut());
        }
        allocator.string(&CStr::from_ptr(text).to_string_lossy())
    };
    to.enclave = copied(from.enclave)?;
    to.security_options.security_root_path = copied(from.security_options.security_root_path)?;
    let peers = &from.discovery_options;
    if peers.static_peers_count > 0 && !peers.static_peers.is_null() {
        let memory: *mut [c_char; PEER_BYTES] = allocator.array(peers.static_peers_count)?;
        // SAFETY: both have so many peers.
        unsafe { memory.copy_from_nonoverlapping(peers.static_peers, peers.static_peers_count) };
        to.discovery_options.static_peers = memory;
        to.discovery_options.static_peers_count = peers.static_peers_count;
        to.discovery_options.allocator = allocator;
    }
    Ok(())
}

/// Frees the memory of the options, and sets them to zero.
///
/// # Safety
/// They are initialized.
pub(crate) unsafe fn finalize(options: &mut InitOptions) {
    let allocator = options.allocator;
    let peers = options.discovery_options;
    let owner = if peers.allocator.is_valid() {
        peers.allocator
    } else {
        allocator
    };
    // SAFETY: strings of the allocator; peers of theirs.
    unsafe {
        allocator.free(options.enclave);
        allocator.free(options.security_options.security_root_path);
        owner.free(peers.static_peers);
    }
    *options = InitOptions::ZERO;
}
