//! Init options: parameters of a context.

use std::ffi::{CStr, c_char};

use crate::abi::{Allocator, DiscoveryFields, InitOptions, Ret, SecurityOptions};
use crate::error::{Failure, IDENTIFIER, Outcome, check_identifier, non_null, non_null_mut, run};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init_options_init(
    options: *mut InitOptions,
    allocator: Allocator,
) -> Ret {
    run("rmw_init_options_init", || {
        // SAFETY: the contract of rmw (lib.rs).
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
        // SAFETY: the contract of rmw (lib.rs).
        let (from, to) = unsafe { (non_null(from, "src")?, non_null_mut(to, "dst")?) };
        if from.implementation_identifier.is_null() {
            return Err(Failure::argument("src is not initialized"));
        }
        // SAFETY: the contract of rmw (lib.rs).
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
        // SAFETY: the contract of rmw (lib.rs).
        let options = unsafe { non_null_mut(options, "init_options") }?;
        if options.implementation_identifier.is_null() {
            return Err(Failure::argument("init_options are not initialized"));
        }
        // SAFETY: the contract of rmw (lib.rs).
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
        discovery: DiscoveryFields::ZERO,
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
        allocator,
        ..InitOptions::ZERO
    };
    to.security_options.enforce_security = from.security_options.enforce_security;
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
    // SAFETY: as for this function.
    to.discovery = unsafe { from.discovery.copy(&allocator) }?;
    Ok(())
}

/// Frees the memory of the options, and sets them to zero.
///
/// # Safety
/// They are initialized.
pub(crate) unsafe fn finalize(options: &mut InitOptions) {
    let allocator = options.allocator;
    // SAFETY: as for this function; strings of the allocator.
    unsafe {
        allocator.free(options.enclave);
        allocator.free(options.security_options.security_root_path);
        options.discovery.free(&allocator);
    }
    *options = InitOptions::ZERO;
}
