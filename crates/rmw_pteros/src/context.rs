//! Contexts: `rmw_init` and shutdown. Each context is one DDS participant.

use std::ffi::{CStr, c_char, c_void};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pteros_rcl::wait_set::WaitContext;
use pteros_runtime::config::{Config, DiscoveryRange};
use pteros_runtime::content_filter::MessageType as FilterableType;
use pteros_runtime::static_peers::{DiscoveryServer, NamedPeers, StaticPeer};
use pteros_runtime::{Core, CoreOptions, SecurityOptions};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::reload;

use crate::abi::{Context, InitOptions, Ret};
use crate::distribution::{self, Discovery};
use crate::error::{
    Failure, IDENTIFIER, Outcome, check_identifier, non_null, non_null_mut, run, run_end,
};
use crate::fork::{self, Origin};
use crate::listener::Listener;
use crate::typesupport::MessageType;
use crate::{further_transports, init_options, platform};

/// An open context.
pub(crate) struct ContextState {
    pub(crate) core: Arc<Core>,
    pub(crate) waits: Arc<WaitContext>,
    /// Runs callbacks for new data.
    pub(crate) listener: Listener,
    is_shut_down: AtomicBool,
    /// The process that opened it.
    pub(crate) origin: Origin,
    /// Whether loaned messages and content filters are offered.
    pub(crate) has_optional_features: bool,
}

impl ContextState {
    /// The type of an endpoint, for content filters.
    pub(crate) fn filterable_type(&self, ty: &MessageType) -> FilterableType {
        if self.has_optional_features {
            FilterableType::OnDemand(ty.fields.clone())
        } else {
            FilterableType::Unknown
        }
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::Acquire)
    }
}

/// State of an initialized context.
///
/// # Safety
/// `context` is null or a context.
pub(crate) unsafe fn state<'c>(context: *const Context) -> Outcome<&'c Arc<ContextState>> {
    // SAFETY: as for this function.
    let state = unsafe { state_of_any_process(context) }?;
    state.origin.check()?;
    Ok(state)
}

/// As [`state`], in a forked child, too.
unsafe fn state_of_any_process<'c>(context: *const Context) -> Outcome<&'c Arc<ContextState>> {
    // SAFETY: as for this function.
    let context = unsafe { non_null(context, "context") }?;
    if context.implementation_identifier.is_null() {
        return Err(Failure::argument("the context is not initialized"));
    }
    // SAFETY: as for this function; `rmw_init` has set the implementation.
    unsafe {
        check_identifier(context.implementation_identifier, "context")?;
        non_null(context.implementation.cast(), "context->impl")
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_init(options: *const InitOptions, context: *mut Context) -> Ret {
    run("rmw_init", || {
        // SAFETY: the contract of rmw (lib.rs).
        let (options, context) = unsafe {
            (
                non_null(options, "options")?,
                non_null_mut(context, "context")?,
            )
        };
        if options.implementation_identifier.is_null() {
            return Err(Failure::argument("the options are not initialized"));
        }
        // SAFETY: the contract of rmw (lib.rs).
        unsafe { check_identifier(options.implementation_identifier, "options") }?;
        if options.enclave.is_null() {
            return Err(Failure::argument("the options have no enclave"));
        }
        if !context.implementation_identifier.is_null() {
            return Err(Failure::argument("the context is initialized already"));
        }
        // SAFETY: initialized options.
        unsafe { open(options, context) }
    })
}

unsafe fn open(options: &InitOptions, context: &mut Context) -> Outcome {
    start_logging();
    fork::watch()?;
    // SAFETY: as for `rmw_init`.
    let config = Config::from_environment().map_err(Failure::error)?;
    // SAFETY: as for `rmw_init`.
    let core_options = unsafe { core_options(options, &config) }?;
    let domain_id = core_options.domain_id as usize;
    let core = Core::open(platform::current(), core_options).map_err(Failure::error)?;
    let state = Arc::new(ContextState {
        waits: WaitContext::new(&core),
        listener: Listener::new(&core),
        is_shut_down: AtomicBool::new(false),
        origin: Origin::here(),
        has_optional_features: config.rmw_optional_features.unwrap_or(true),
        core,
    });
    // SAFETY: initialized options.
    let copy = unsafe { init_options::copy(options) };
    let copy = copy.inspect_err(|_| state.core.close())?;
    *context = Context {
        instance_id: options.instance_id,
        implementation_identifier: IDENTIFIER.as_ptr(),
        options: copy,
        actual_domain_id: domain_id,
        implementation: Box::into_raw(Box::new(state)).cast(),
    };
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_shutdown(context: *mut Context) -> Ret {
    run_end("rmw_shutdown", || {
        // SAFETY: the contract of rmw (lib.rs).
        let state = unsafe { state(context) }?;
        state.is_shut_down.store(true, Ordering::Release);
        state.listener.stop();
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_context_fini(context: *mut Context) -> Ret {
    run("rmw_context_fini", || {
        // SAFETY: the contract of rmw (lib.rs).
        let open = unsafe { state_of_any_process(context) }?;
        let is_here = open.origin.is_here();
        if is_here && !open.is_shut_down() {
            return Err(Failure::argument("the context is not shut down"));
        }
        // SAFETY: as above.
        let context = unsafe { non_null_mut(context, "context") }?;
        // In a forked child the state belongs to the parent.
        if is_here {
            // SAFETY: the implementation is from `rmw_init`.
            let state: Box<Arc<ContextState>> =
                unsafe { Box::from_raw(context.implementation.cast()) };
            state.listener.join();
            state.core.close();
        }
        // SAFETY: a copy of `rmw_init`.
        unsafe { init_options::finalize(&mut context.options) };
        *context = Context {
            instance_id: 0,
            implementation_identifier: std::ptr::null(),
            options: InitOptions::ZERO,
            actual_domain_id: 0,
            implementation: std::ptr::null_mut::<c_void>(),
        };
        Ok(())
    })
}

/// Options of the runtime, from rcl's options and the variables of Pteros.
unsafe fn core_options(options: &InitOptions, config: &Config) -> Outcome<CoreOptions> {
    for warning in &config.warnings {
        if warning.variable != distribution::CURRENT_VARIABLE {
            tracing::warn!("{warning}");
        }
    }
    let domain_id = if options.domain_id == usize::MAX {
        config.domain_id as usize
    } else {
        options.domain_id
    };
    let domain_id = u32::try_from(domain_id)
        .ok()
        .filter(|id| *id <= pteros_runtime::config::DOMAIN_ID_MAX)
        .ok_or_else(|| {
            Failure::error(format!(
                "domain id {domain_id} is above 232, the last with ports"
            ))
        })?;
    // SAFETY: an initialized structure.
    let Discovery {
        range,
        static_peers: peers,
    } = unsafe { options.discovery.settings(config) };
    let peers = resolve(&peers);
    let discovery_servers = match range {
        DiscoveryRange::Off => Vec::new(),
        _ => resolve_servers(&config.named_peers.discovery_servers)?,
    };
    // SAFETY: `rmw_init` has checked that it is not null.
    let enclave = unsafe { CStr::from_ptr(options.enclave) };
    let root = options.security_options.security_root_path;
    // SAFETY: null or a C string.
    let root = (!root.is_null()).then(|| unsafe { path(root) });
    let security = root.map(|enclave| SecurityOptions { enclave });
    let plan = further_transports::plan(
        config,
        domain_id,
        range != DiscoveryRange::Off,
        security.is_some(),
    )?;
    Ok(CoreOptions {
        domain_id,
        local_only: range == DiscoveryRange::Localhost
            && peers.is_empty()
            && discovery_servers.is_empty(),
        rtps_reach: plan.rtps_reach,
        transports: plan.transports,
        multicast: !matches!(range, DiscoveryRange::Localhost | DiscoveryRange::Off),
        named_peers: NamedPeers {
            static_peers: peers,
            discovery_servers,
            is_super_client: config.named_peers.is_super_client,
        },
        enclave: enclave.to_string_lossy().into_owned(),
        security,
        ..pteros_rcl::core_options(config, plan.is_rtps_idle)
    })
}

/// # Safety
/// `text` is a C string.
unsafe fn path(text: *const c_char) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: as for this function.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The discovery servers: without them nothing is discovered, so a wrong one is an error.
fn resolve_servers(servers: &[String]) -> Outcome<Vec<DiscoveryServer>> {
    let resolved = servers.iter().map(|server| {
        DiscoveryServer::resolve(server).map_err(|reason| {
            Failure::error(format!(
                "discovery server {server:?} of ROS_DISCOVERY_SERVER: {reason}"
            ))
        })
    });
    resolved.collect()
}

/// The static peers. Blocks while the system resolves names.
fn resolve(peers: &[String]) -> Vec<StaticPeer> {
    // As in other middlewares, a name that does not resolve now is ignored.
    let resolved = peers.iter().filter_map(|peer| {
        StaticPeer::resolve(peer)
            .map_err(|error| tracing::warn!("static peer {peer:?} is left out: {error}"))
            .ok()
    });
    resolved.collect()
}

/// Handle to change the level of [`start_logging`].
static LOG_LEVEL: OnceLock<reload::Handle<Targets, tracing_subscriber::Registry>> = OnceLock::new();

/// Logs warnings of the runtime to standard error, as other middlewares do, unless the
/// program has a subscriber.
fn start_logging() {
    if LOG_LEVEL.get().is_some() {
        return;
    }
    let (filter, handle) = reload::Layer::new(log_filter(LevelFilter::WARN));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time();
    let installed = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
    if installed.is_ok() {
        let _ = LOG_LEVEL.set(handle);
    }
}

/// Log filter of a level. Of Zenoh only errors pass: its warnings report normal
/// conditions, for example that no other session was found yet.
fn log_filter(level: LevelFilter) -> Targets {
    let of_zenoh = level.min(LevelFilter::ERROR);
    Targets::new()
        .with_default(level)
        .with_target("zenoh", of_zenoh)
}

/// `rmw_log_severity_t`: DEBUG 10, INFO 20, WARN 30, ERROR 40, FATAL 50.
pub(crate) fn set_log_severity(severity: u32) {
    start_logging();
    let level = match severity {
        0..=10 => LevelFilter::DEBUG,
        11..=20 => LevelFilter::INFO,
        21..=30 => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    };
    if let Some(handle) = LOG_LEVEL.get() {
        let _ = handle.reload(log_filter(level));
    }
}
