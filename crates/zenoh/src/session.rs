//! Sessions and routers: configuration and opening.
//!
//! The defaults are those of rmw_zenoh_cpp, with one addition. One session of a host
//! listens at [`RENDEZVOUS_PORT`], and every other one connects to it. So the nodes of a
//! host find each other without a router, and a router keeps its own port.
#![allow(
    clippy::disallowed_methods,
    reason = "waits for a router while the context opens"
)]

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use pteros_msg::regular_file;
use pteros_net::Descriptors;
use pteros_runtime::config::ZenohSettings;
use pteros_runtime::transport::RtpsReach;
use zenoh::{Config, Session, Wait};

use crate::certificate_watch::{CertificateWatch, Looks, TlsFile};
use crate::error_text::{FILE_HINT, OVERRIDE_HINT, connection_hint, listen_hint, reason};
use crate::own_access::OwnAccess;
use crate::session_id::SessionId;

/// Port at which a router listens.
pub const ROUTER_PORT: u16 = 7447;
/// Port by which the sessions of a host connect without a router.
pub const RENDEZVOUS_PORT: u16 = 7448;
/// Abstract socket whose owner listens at that port.
const RENDEZVOUS_NAME: &str = "pteros-zenoh-rendezvous";
/// Pause between two checks for a router, as in rmw_zenoh_cpp.
const ROUTER_CHECK_PAUSE: Duration = Duration::from_secs(1);

/// Settings common to sessions and routers (rmw_zenoh_cpp's two configuration files).
const COMMON: &[(&str, &str)] = &[
    ("scouting/multicast/enabled", "false"),
    ("scouting/gossip/enabled", "true"),
    // If two peers discover each other at once, one connects; otherwise both would.
    (
        "scouting/gossip/autoconnect_strategy",
        r#"{"peer":{"to_router":"always","to_peer":"greater-zid"}}"#,
    ),
    ("timestamping/enabled", "true"),
    ("queries_default_timeout", "600000"),
    ("transport/unicast/open_timeout", "60000"),
    ("transport/unicast/accept_timeout", "60000"),
    ("transport/unicast/accept_pending", "10000"),
    ("transport/unicast/max_sessions", "10000"),
    ("transport/link/tx/lease", "60000"),
    ("transport/link/tx/keep_alive", "2"),
    ("transport/shared_memory/enabled", "false"),
];

/// How long a message that may not be dropped waits for space before the connection is
/// closed, microseconds.
const BLOCK_TIME: &str = "transport/link/tx/queue/congestion_control/block/wait_before_close";
const BLOCK_TIME_OF_SESSION: &str = "60000000";
/// Shorter for routers, so that a slow link delays the data for others less.
const BLOCK_TIME_OF_ROUTER: &str = "5000000";

/// Zenoh transports that are not built in.
const NOT_BUILT_IN: &[&str] = &[
    "quic",
    "serial",
    "udp",
    "unixpipe",
    "unixsock-stream",
    "vsock",
    "ws",
];

/// Certificate and key files of endpoints with TLS.
pub const TLS_FILES: [(&str, [&str; 3]); 2] = [
    (
        "connect/endpoints",
        [
            "root_ca_certificate",
            "connect_certificate",
            "connect_private_key",
        ],
    ),
    (
        "listen/endpoints",
        [
            "root_ca_certificate",
            "listen_certificate",
            "listen_private_key",
        ],
    ),
];

/// Process that opened the first session. A forked process has no Zenoh threads, so a
/// session there would block for ever.
static FIRST_PROCESS: OnceLock<u32> = OnceLock::new();

/// Descriptors that Zenoh's runtime and a session need. Zenoh panics without them.
const DESCRIPTORS_MIN: usize = 32;

/// Refuses a process with too few descriptors, or forked from one with a session.
fn check_process() -> Result<(), String> {
    if let Some(held) = pteros_net::descriptors() {
        check_descriptors(held)?;
    }
    let own = std::process::id();
    if *FIRST_PROCESS.get_or_init(|| own) == own {
        return Ok(());
    }
    Err(
        "this process was forked from one that had opened a session of Zenoh, whose threads \
         are not here: fork before the first context is opened, or start the program anew \
         (in Python: multiprocessing.set_start_method('spawn'))"
            .into(),
    )
}

fn check_descriptors(held: Descriptors) -> Result<(), String> {
    let Descriptors { open, limit } = held;
    if limit.saturating_sub(open) >= DESCRIPTORS_MIN {
        return Ok(());
    }
    Err(format!(
        "open a Zenoh session: {open} of {limit} descriptors are in use, and Zenoh needs {DESCRIPTORS_MIN} more; raise the limit: ulimit -n 1024, or LimitNOFILE=1024 in its unit"
    ))
}

/// Opens the session of a context.
///
/// Blocks until the session is open, and while `router_check_attempts` requires a wait
/// for a router.
///
/// # Errors
/// A text that names the setting or the step that failed.
pub fn open_session(settings: &ZenohSettings, id: SessionId) -> Result<OpenedSession, String> {
    check_process()?;
    let mut config = match &settings.session_config {
        Some(file) => from_file(file, "ZENOH_SESSION_CONFIG_URI")?,
        None => common_defaults("peer")?,
    };
    let own_endpoints = |(key, _): &(String, String)| key.starts_with("listen") || key == "mode";
    let mut rendezvous = None;
    if settings.session_config.is_none() {
        if !settings.overrides.iter().any(own_endpoints) {
            rendezvous = claim_rendezvous();
        }
        add_session_endpoints(&mut config, rendezvous.is_some())?;
    }
    if config.get_json("id").is_ok_and(|id| id == "null") {
        set(&mut config, "id", &format!("\"{id}\""))?;
    }
    override_by(&mut config, settings)?;
    check_transports(&config)?;
    let tls_files = check_tls_files(&config)?;
    let session = zenoh::open(config.clone()).wait().map_err(|error| {
        let why = connection_problem(&config).unwrap_or_else(|| reason(&error));
        format!("open a Zenoh session: {why}")
    })?;
    check_router(&session, settings.router_check_attempts).map_err(|error| {
        let why = connection_problem(&config);
        let why = why.unwrap_or_else(|| "start one by: pteros router".into());
        format!("{error}; {why}")
    })?;
    let access = OwnAccess::of(&config);
    let linked = session.clone();
    let watch = CertificateWatch::start(tls_files, move |watch| {
        report_lost_links(watch, &linked, &config);
    })?;
    Ok(OpenedSession {
        session,
        access,
        rendezvous,
        watch,
    })
}

/// Ids of the routers to which a session with these settings is connected when it opens.
///
/// Opens a session and closes it. Blocks as opening does, and checks once.
///
/// # Errors
/// A text that names the setting or the step that failed.
pub fn connected_routers(settings: &ZenohSettings) -> Result<Vec<String>, String> {
    let once = ZenohSettings {
        router_check_attempts: Some(-1),
        ..settings.clone()
    };
    let id = zenoh::session::ZenohId::default();
    let opened = open_session(&once, SessionId::from_le_bytes(id.to_le_bytes()))?;
    let routers = opened.session.info().routers_zid().wait();
    let routers = routers.map(|id| id.to_string()).collect();
    if let Err(error) = opened.session.close().wait() {
        tracing::debug!("close the Zenoh session: {error}");
    }
    Ok(routers)
}

/// Which contexts RTPS reaches when only the Zenoh transport is set. Contexts of this host
/// with the same settings use shared memory, except with certificates or access control:
/// shared memory enforces neither.
pub fn rtps_reach(settings: &ZenohSettings, domain_id: u32) -> RtpsReach {
    if is_guarded(settings) {
        return RtpsReach::Off;
    }
    let group = settings.host_group(domain_id);
    RtpsReach::Host { group }
}

/// Whether these settings restrict data to TLS or by access control. Shared memory would
/// bypass both. An unreadable configuration counts as restricted; opening the session
/// fails later.
fn is_guarded(settings: &ZenohSettings) -> bool {
    let config = match &settings.session_config {
        Some(file) => from_file(file, "ZENOH_SESSION_CONFIG_URI"),
        None => Ok(Config::default()),
    };
    let guards = |mut config: Config| {
        override_by(&mut config, settings)?;
        let is_controlled = config.get_json("access_control/enabled");
        let has_tls = ["listen/endpoints", "connect/endpoints"]
            .iter()
            .filter_map(|setting| config.get_json(setting).ok())
            .any(|endpoints| endpoints.contains("\"tls/"));
        Ok::<bool, String>(has_tls || is_controlled.is_ok_and(|value| value == "true"))
    };
    config.and_then(guards).unwrap_or(true)
}

/// Why the first endpoint cannot be connected to. A client only logs Zenoh's error. So
/// this function connects once more, as a peer with a single attempt. `None` if that
/// succeeds or no endpoint is set.
fn connection_problem(config: &Config) -> Option<String> {
    let endpoints = config.get_json("connect/endpoints").unwrap_or_default();
    if endpoints == "[]" {
        return None;
    }
    let mut probe = config.clone();
    // The session may connect at the same time, so the id differs.
    let id = format!("\"{}\"", zenoh::session::ZenohId::default());
    for (key, value) in [
        ("id", &*id),
        ("mode", "\"peer\""),
        ("listen/endpoints", "[]"),
        ("connect/timeout_ms", "0"),
        ("connect/exit_on_failure", "true"),
        ("scouting/multicast/enabled", "false"),
    ] {
        set(&mut probe, key, value).ok()?;
    }
    match zenoh::open(probe).wait() {
        Ok(session) => {
            let _ = session.close().wait();
            None
        }
        Err(error) => {
            let why = reason(&error);
            let hint = connection_hint(&why);
            Some(format!("connect to {endpoints}: {why}{hint}"))
        }
    }
}

/// An open session with what belongs to it.
pub struct OpenedSession {
    /// Zenoh's session.
    pub session: Session,
    /// Access rules in its settings, if any.
    pub access: Option<OwnAccess>,
    /// Claim to listen at [`RENDEZVOUS_PORT`], held as long as the session.
    pub rendezvous: Option<UnixListener>,
    /// Certificate watch, if the session has TLS.
    pub watch: Option<CertificateWatch>,
}

/// Reports once per outage why no link can be opened. Zenoh retries and reports nothing
/// above its own log.
fn report_lost_links(watch: &mut Looks, session: &Session, config: &Config) {
    let info = session.info();
    let is_linked =
        info.routers_zid().wait().next().is_some() || info.peers_zid().wait().next().is_some();
    if watch.note_links(is_linked)
        && let Some(why) = connection_problem(config)
    {
        tracing::error!("no Zenoh link, and none can be opened, so this is tried again: {why}");
    }
}

/// Claims the role of the host's listening session. An abstract socket address belongs to
/// one process of a network namespace, and is freed with it.
pub fn claim_rendezvous() -> Option<UnixListener> {
    let address = SocketAddr::from_abstract_name(RENDEZVOUS_NAME).ok()?;
    UnixListener::bind_addr(&address).ok()
}

/// A running router. Dropping it stops it.
pub struct Router {
    session: Session,
    endpoints: String,
    /// Dropped before the session.
    watch: Option<CertificateWatch>,
}

impl Router {
    /// Starts a router, by default at every address, port [`ROUTER_PORT`].
    ///
    /// Blocks until the router listens.
    ///
    /// # Errors
    /// A text that names the setting or the step that failed.
    pub fn start(settings: &ZenohSettings) -> Result<Self, String> {
        check_process()?;
        let mut config = match &settings.router_config {
            Some(file) => from_file(file, "ZENOH_ROUTER_CONFIG_URI")?,
            None => router_defaults()?,
        };
        override_by(&mut config, settings)?;
        check_transports(&config)?;
        let tls_files = check_tls_files(&config)?;
        check_router_mode(&mut config, settings)?;
        let endpoints = config.get_json("listen/endpoints").unwrap_or_default();
        let session = zenoh::open(config).wait().map_err(|error| {
            let transport = if endpoints.contains("\"tls/") {
                "tls"
            } else {
                "tcp"
            };
            let why = reason(&error);
            let hint = listen_hint(&why, transport);
            format!("start a Zenoh router that listens at {endpoints}: {why}{hint}")
        })?;
        Ok(Self {
            session,
            endpoints,
            watch: CertificateWatch::start(tls_files, |_| ())?,
        })
    }

    /// Id of the router, as Zenoh prints it.
    pub fn id(&self) -> String {
        self.session.zid().to_string()
    }

    /// Endpoints at which it listens, as JSON.
    pub fn endpoints(&self) -> &str {
        &self.endpoints
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        drop(self.watch.take());
        if let Err(error) = self.session.close().wait() {
            tracing::debug!("close the Zenoh router: {error}");
        }
    }
}

fn add_session_endpoints(config: &mut Config, listens: bool) -> Result<(), String> {
    let rendezvous = format!("tcp/127.0.0.1:{RENDEZVOUS_PORT}");
    let (listen, connect) = if listens {
        (
            format!("\"{rendezvous}#exit_on_failure=false\", "),
            String::new(),
        )
    } else {
        (String::new(), format!(", \"{rendezvous}\""))
    };
    let listen = format!("[{listen}\"tcp/localhost:0\"]");
    let connect = format!("[\"tcp/localhost:{ROUTER_PORT}\"{connect}]");
    set(config, "listen/endpoints", &listen)?;
    set(config, "connect/endpoints", &connect)?;
    set(config, "scouting/delay", "200")
}

fn router_defaults() -> Result<Config, String> {
    let mut config = common_defaults("router")?;
    // A host without IPv6 cannot listen at [::].
    let has_ipv6 = TcpListener::bind(("::", 0)).is_ok();
    let address = if has_ipv6 { "[::]" } else { "0.0.0.0" };
    let listen = format!("[\"tcp/{address}:{ROUTER_PORT}\"]");
    set(&mut config, "listen/endpoints", &listen)?;
    Ok(config)
}

fn common_defaults(mode: &str) -> Result<Config, String> {
    let mut config = Config::default();
    set(&mut config, "mode", &format!("\"{mode}\""))?;
    for (key, value) in COMMON {
        set(&mut config, key, value)?;
    }
    let block_time = if mode == "router" {
        BLOCK_TIME_OF_ROUTER
    } else {
        BLOCK_TIME_OF_SESSION
    };
    set(&mut config, BLOCK_TIME, block_time)?;
    Ok(config)
}

fn set(config: &mut Config, key: &str, value: &str) -> Result<(), String> {
    let inserted = config.insert_json5(key, value);
    inserted.map_err(|error| format!("Zenoh setting {key}={value}: {}", reason(&error)))
}

fn from_file(file: &Path, variable: &str) -> Result<Config, String> {
    let failed = |why: String| format!("{variable}: read {}: {why}; {FILE_HINT}", file.display());
    // A FIFO or device in its place might never end.
    regular_file::open(file).map_err(|error| failed(error.to_string()))?;
    Config::from_file(file).map_err(|error| failed(reason(&error)))
}

fn override_by(config: &mut Config, settings: &ZenohSettings) -> Result<(), String> {
    for (key, value) in &settings.overrides {
        let set = set(config, key, value);
        set.map_err(|error| format!("ZENOH_CONFIG_OVERRIDE: {error}; {OVERRIDE_HINT}"))?;
    }
    Ok(())
}

/// Refuses the mode of a session, because such a router would route nothing. A file
/// without a mode is a router's.
fn check_router_mode(config: &mut Config, settings: &ZenohSettings) -> Result<(), String> {
    let mode = config.get_json("mode").unwrap_or_default();
    if mode == "null" {
        return set(config, "mode", "\"router\"");
    }
    if mode == "\"router\"" {
        return Ok(());
    }
    let of_override = settings.overrides.iter().any(|(key, _)| key == "mode");
    let place = match &settings.router_config {
        Some(file) if !of_override => format!("ZENOH_ROUTER_CONFIG_URI: {}", file.display()),
        _ => "ZENOH_CONFIG_OVERRIDE".into(),
    };
    Err(format!(
        "{place}: Zenoh setting mode={mode}: this is a session's, and a router routes nothing with it; \
         leave it out where the router starts"
    ))
}

/// Refuses endpoints of a transport that is not built in. Zenoh only logs the failure to
/// connect.
fn check_transports(config: &Config) -> Result<(), String> {
    for setting in ["listen/endpoints", "connect/endpoints"] {
        let endpoints = config.get_json(setting).unwrap_or_default();
        for transport in NOT_BUILT_IN {
            if endpoints.contains(&format!("\"{transport}/")) {
                return Err(format!(
                    "Zenoh setting {setting}={endpoints}: the transport \"{transport}\" is not \
                     built in; use \"tcp/\", or \"tls/\" where it must be encrypted"
                ));
            }
        }
    }
    Ok(())
}

/// Refuses TLS settings that name an unreadable file or a certificate that is not valid
/// now. Zenoh's error does not name the file.
fn check_tls_files(config: &Config) -> Result<Vec<TlsFile>, String> {
    let files = TlsFile::of(config);
    for file in &files {
        let name = file.to_string();
        match file.read() {
            Err(error) => {
                return Err(format!(
                    "{name}: {error}; name a file that this user may read"
                ));
            }
            Ok(bytes) => {
                if let Some(wrong) = file.date_problem(&bytes) {
                    return Err(format!(
                        "{name}: {wrong}; name one that is valid now ({}), or correct the clock \
                         of this host",
                        file.renewal()
                    ));
                }
            }
        }
    }
    Ok(files)
}

/// Checks for a router `attempts` times: `Some(0)` without end, negative never, `None`
/// once and without an error.
fn check_router(session: &Session, attempts: Option<i64>) -> Result<(), String> {
    let has_router = || session.info().routers_zid().wait().next().is_some();
    let attempts = match attempts {
        Some(negative) if negative < 0 => return Ok(()),
        None => {
            if !has_router() {
                tracing::info!(
                    "no Zenoh router: nodes of this host find each other; to reach other hosts \
                     or nodes of rmw_zenoh_cpp, start one by: pteros router"
                );
            }
            return Ok(());
        }
        Some(0) => i64::MAX,
        Some(attempts) => attempts,
    };
    for attempt in 1..=attempts {
        if has_router() {
            return Ok(());
        }
        if attempt == 1 {
            tracing::info!("waiting for a Zenoh router (ZENOH_ROUTER_CHECK_ATTEMPTS)");
        }
        std::thread::sleep(ROUTER_CHECK_PAUSE);
    }
    Err(format!(
        "no Zenoh router after {attempts} looks, one a second (ZENOH_ROUTER_CHECK_ATTEMPTS)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: Zenoh's runtime panicked at `ulimit -n 10`.
    #[test]
    fn too_few_descriptors_are_an_error_with_the_way_out() {
        for (open, limit) in [(4, 10), (1_000, 1_024), (70, 64)] {
            let error = check_descriptors(Descriptors { open, limit }).unwrap_err();
            assert!(error.contains(&format!("{open} of {limit}")), "{error}");
            assert!(error.contains("ulimit -n"), "{error}");
        }
        let plenty = Descriptors {
            open: 9,
            limit: 1_024,
        };
        assert_eq!(check_descriptors(plenty), Ok(()));
    }

    #[test]
    fn every_default_is_a_setting_that_zenoh_knows() {
        let mut session = common_defaults("peer").unwrap();
        for listens in [true, false] {
            add_session_endpoints(&mut session, listens).unwrap();
            let endpoints = session.get_json("listen/endpoints").unwrap();
            assert_eq!(endpoints.contains("7448"), listens, "{endpoints}");
        }
        assert_eq!(session.get_json("mode").unwrap(), "\"peer\"");
        assert_eq!(session.get_json(BLOCK_TIME).unwrap(), "60000000");
        let router = router_defaults().unwrap();
        assert_eq!(router.get_json("mode").unwrap(), "\"router\"");
        assert_eq!(router.get_json(BLOCK_TIME).unwrap(), "5000000");
        assert!(
            router
                .get_json("listen/endpoints")
                .unwrap()
                .contains(":7447")
        );
    }

    #[test]
    fn a_transport_that_is_not_built_in_is_refused() {
        let settings = |endpoint: &str| ZenohSettings {
            overrides: vec![
                ("connect/endpoints".into(), format!("[\"{endpoint}\"]")),
                // Otherwise it claims to listen, which another test observes.
                ("mode".into(), "\"peer\"".into()),
            ],
            router_check_attempts: Some(-1),
            ..ZenohSettings::default()
        };
        let open = |endpoint: &str| open_session(&settings(endpoint), "1".parse().unwrap());
        for transport in NOT_BUILT_IN {
            let error = open(&format!("{transport}/10.0.0.1:7447")).err().unwrap();
            let named = format!("the transport \"{transport}\" is not built in");
            assert!(error.contains(&named), "{error}");
        }
        let router = Router::start(&settings("udp/10.0.0.1:7447")).err().unwrap();
        assert!(router.starts_with("Zenoh setting connect/endpoints=[\"udp/10.0.0.1:7447\"]"));
        for built_in in ["tcp/10.0.0.1:7447", "tls/10.0.0.1:7447"] {
            let mut config = Config::default();
            override_by(&mut config, &settings(built_in)).unwrap();
            assert_eq!(check_transports(&config), Ok(()));
        }
    }

    #[test]
    fn a_certificate_or_key_that_cannot_be_opened_is_named() {
        for (endpoints, files) in TLS_FILES {
            for file in files {
                let setting = format!("transport/link/tls/{file}");
                let with = |endpoint: &str| ZenohSettings {
                    overrides: vec![
                        (endpoints.into(), format!("[\"{endpoint}\"]")),
                        ("mode".into(), "\"peer\"".into()),
                        (setting.clone(), "\"/nowhere/a.pem\"".into()),
                    ],
                    ..ZenohSettings::default()
                };
                let tls = with("tls/127.0.0.1:7");
                let session = open_session(&tls, "1".parse().unwrap()).err().unwrap();
                let router = Router::start(&tls).err().unwrap();
                let begin = format!("Zenoh setting {setting}=\"/nowhere/a.pem\": No such file");
                for error in [session, router] {
                    assert!(error.starts_with(&begin), "{error}");
                }
                let mut tcp = Config::default();
                override_by(&mut tcp, &with("tcp/127.0.0.1:7")).unwrap();
                assert_eq!(check_tls_files(&tcp).map(|files| files.len()), Ok(0));
            }
        }
    }

    #[test]
    fn tls_and_access_control_leave_no_path_beside_them() {
        let guarded = |settings: &[(&str, &str)]| {
            let pair = |(key, value): &(&str, &str)| ((*key).into(), (*value).into());
            is_guarded(&ZenohSettings {
                overrides: settings.iter().map(pair).collect(),
                ..ZenohSettings::default()
            })
        };
        assert!(!guarded(&[]));
        assert!(!guarded(&[(
            "connect/endpoints",
            "[\"tcp/10.0.0.1:7447\"]"
        )]));
        assert!(guarded(&[("connect/endpoints", "[\"tls/10.0.0.1:7447\"]")]));
        assert!(guarded(&[("listen/endpoints", "[\"tls/10.0.0.1:7447\"]")]));
        assert!(guarded(&[("access_control/enabled", "true")]));
        assert!(is_guarded(&ZenohSettings {
            session_config: Some("/nowhere/session.json5".into()),
            ..ZenohSettings::default()
        }));
    }

    /// The files for a keystore, written by `pteros_security`, have the same settings.
    #[test]
    fn the_files_for_a_keystore_have_the_common_settings() {
        use pteros_security::date::UnixTime;
        use pteros_security::keystore::{Keystore, Options};
        use pteros_security::zenoh::{ZenohOptions, zenoh_files};

        let name = format!("pteros-zenoh-common-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let (now, options) = (UnixTime(1_800_000_000), Options::default());
        let keystore = Keystore::create(&root, &options, now).unwrap();
        for enclave in ["/router", "/arm"] {
            keystore
                .create_enclave(enclave, None, &options, now)
                .unwrap();
        }
        let options = ZenohOptions {
            domain: 0,
            routers: vec!["/router".into()],
            sessions: Vec::new(),
            listen: vec!["tls/[::]:7447".into()],
            connect: vec!["tls/localhost:7447".into()],
            keystore_path: root.clone(),
        };
        let made = zenoh_files(&keystore, &options, now).unwrap();
        made.write().unwrap();
        for (path, text) in &made.files {
            let config = Config::from_file(path).unwrap_or_else(|error| panic!("{error}: {text}"));
            for (key, value) in COMMON {
                assert_eq!(config.get_json(key).unwrap(), *value, "{key} in {path:?}");
            }
            let is_router = config.get_json("mode").unwrap() == "\"router\"";
            let block_time = if is_router {
                BLOCK_TIME_OF_ROUTER
            } else {
                BLOCK_TIME_OF_SESSION
            };
            assert_eq!(config.get_json(BLOCK_TIME).unwrap(), block_time);
            let is_on = |key| config.get_json(key).unwrap() == "true";
            assert!(is_on("access_control/enabled"));
            assert!(is_on("transport/link/tls/enable_mtls"));
            assert!(is_on("transport/link/tls/close_link_on_expiration"));
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn an_override_that_zenoh_does_not_know_is_named() {
        let settings = ZenohSettings {
            overrides: vec![("connect/nowhere".into(), "1".into())],
            ..ZenohSettings::default()
        };
        let error = override_by(&mut Config::default(), &settings).unwrap_err();
        let begin = "ZENOH_CONFIG_OVERRIDE: Zenoh setting connect/nowhere=1: unknown key; write ";
        assert!(error.starts_with(begin), "{error}");
        let missing = ZenohSettings {
            session_config: Some("/nowhere/session.json5".into()),
            ..ZenohSettings::default()
        };
        let id = "1".parse().unwrap();
        let error = open_session(&missing, id).err().unwrap();
        assert!(
            error.starts_with("ZENOH_SESSION_CONFIG_URI: read /nowhere/session.json5: "),
            "{error}"
        );
        assert!(error.contains("(.json5, .json or .yaml)"), "{error}");
    }

    #[test]
    fn a_router_refuses_the_mode_of_a_session() {
        let mode = |mode: &str| ZenohSettings {
            overrides: vec![("mode".into(), format!("\"{mode}\""))],
            ..ZenohSettings::default()
        };
        for wrong in ["client", "peer"] {
            let error = Router::start(&mode(wrong)).err().unwrap();
            let begin = format!("ZENOH_CONFIG_OVERRIDE: Zenoh setting mode=\"{wrong}\": ");
            assert!(error.starts_with(&begin), "{error}");
            assert!(error.contains("leave it out"), "{error}");
        }
        let file = ZenohSettings {
            router_config: Some("/etc/r.json5".into()),
            ..ZenohSettings::default()
        };
        let checked = |given: Option<&str>, settings: &ZenohSettings| {
            let mut config = Config::default();
            if let Some(given) = given {
                set(&mut config, "mode", &format!("\"{given}\"")).unwrap();
            }
            let checked = check_router_mode(&mut config, settings);
            checked.map(|()| config.get_json("mode").unwrap())
        };
        let error = checked(Some("peer"), &file).unwrap_err();
        assert!(
            error.starts_with("ZENOH_ROUTER_CONFIG_URI: /etc/r.json5: "),
            "{error}"
        );
        for given in [None, Some("router")] {
            assert_eq!(checked(given, &file), Ok("\"router\"".into()));
        }
    }
}
