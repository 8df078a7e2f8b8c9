//! Options of the runtime that the environment gives to each context, of a client library or of
//! the plug-in.

use pteros_runtime::config::Config;
use pteros_runtime::{CoreOptions, SharedMemoryOptions};

/// The options of the variables, and else the defaults. Domain, discovery, security, stores,
/// traces and transports are left to the caller.
pub fn core_options(config: &Config, is_rtps_idle: bool) -> CoreOptions {
    let default = CoreOptions::default();
    let (mut receive_bytes, send_bytes) = default.buffer_bytes;
    if is_rtps_idle {
        // Little arrives at its sockets.
        receive_bytes = send_bytes;
    }
    CoreOptions {
        interfaces: config
            .network
            .interfaces
            .iter()
            .map(ToString::to_string)
            .collect(),
        ip_versions: config.network.ip_versions,
        buffer_bytes: (
            config.receive_buffer_bytes.unwrap_or(receive_bytes),
            config.send_buffer_bytes.unwrap_or(send_bytes),
        ),
        fragment_bytes_same_host: config
            .local_fragment_bytes
            .unwrap_or(default.fragment_bytes_same_host),
        fragment_bytes_network: config
            .fragment_bytes
            .unwrap_or(default.fragment_bytes_network),
        busy_poll: config.busy_poll.map_or(default.busy_poll, Into::into),
        shared_memory: SharedMemoryOptions {
            enabled: config.shared_memory.unwrap_or(true),
            ..default.shared_memory
        },
        ..default
    }
}
