//! Contexts: participants of the ROS graph.

use std::ffi::{c_char, c_int};

use pteros::args::Arguments;
use pteros::{Context, ContextOptions};

use crate::argument::{required, words};
use crate::error::{self, Error, Status};

/// `pteros_context_t`.
pub struct PterosContext(pub(crate) Context);

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_context_new(
    argc: c_int,
    argv: *const *const c_char,
) -> Option<Box<PterosContext>> {
    error::create("pteros_context_new", || {
        let (arguments, _) = Arguments::parse_os(words(argc, argv)?).map_err(Error::argument)?;
        let context = Context::with_options(ContextOptions {
            arguments,
            use_environment: true,
            ..ContextOptions::default()
        })?;
        Ok(PterosContext(context))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_context_free(context: Option<Box<PterosContext>>) {
    error::free("pteros_context_free", context);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_context_shutdown(context: Option<&PterosContext>) -> Status {
    error::run("pteros_context_shutdown", || {
        required(context, "context")?.0.shutdown();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_context_is_shut_down(context: Option<&PterosContext>) -> bool {
    error::value("pteros_context_is_shut_down", true, || {
        Ok(required(context, "context")?.0.is_shut_down())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_context_domain_id(context: Option<&PterosContext>) -> u32 {
    error::value("pteros_context_domain_id", 0, || {
        Ok(required(context, "context")?.0.domain_id())
    })
}
