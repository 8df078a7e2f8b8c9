//! Certificate watch: reports expired certificates of a session or router with TLS.
//!
//! Zenoh closes the links of a certificate when it expires (`close_link_on_expiration`).
//! It then tries to connect and is refused, without naming the file. A session reads its
//! files for each connection, so it connects with a renewed certificate. A listener reads
//! its files once, when it starts.
#![allow(
    clippy::disallowed_methods,
    reason = "the clock that certificates are for, and a thread that looks at it"
)]

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use zenoh::Config;

use crate::certificate_dates;
use crate::session::TLS_FILES;

/// Pause between two checks. Not longer, because the system clock may be set meanwhile.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Checks without a link after which the cause is diagnosed. Zenoh reconnects within a
/// second if it can.
const LOOKS_WITHOUT_LINK: u32 = 3;

const RENEW_ENCLAVE: &str = "pteros security create_enclave renews that of an enclave";
/// The authority signs the enclaves' certificates, so a new authority needs new ones.
const RENEW_AUTHORITY: &str = "no command renews an authority: for a new one of a keystore, remove \
    its public/identity_ca.cert.pem, private/identity_ca.key.pem and public/crl.pem, run pteros \
    security create_keystore, then pteros security create_enclave for every enclave, and copy \
    enclaves and public to every host";

/// A file that a TLS setting names.
pub struct TlsFile {
    setting: String,
    path: String,
    is_authority: bool,
    listens: bool,
}

impl TlsFile {
    /// The certificate files of all TLS endpoints.
    pub fn of(config: &Config) -> Vec<Self> {
        let mut files = Vec::new();
        for (endpoints, names) in TLS_FILES {
            let has_tls = config.get_json(endpoints);
            if !has_tls.is_ok_and(|all| all.contains("\"tls/")) {
                continue;
            }
            for name in names {
                let setting = format!("transport/link/tls/{name}");
                let path = config.get_json(&setting).unwrap_or_default();
                // Unset or not a string: Zenoh reports it.
                let Ok(path) = serde_json::from_str::<String>(&path) else {
                    continue;
                };
                let listens = endpoints.starts_with("listen");
                // Sessions and listeners share the setting of the authority.
                if let Some(known) = files
                    .iter_mut()
                    .find(|known: &&mut Self| known.setting == setting)
                {
                    known.listens |= listens;
                    continue;
                }
                files.push(Self {
                    setting,
                    path,
                    is_authority: name == "root_ca_certificate",
                    listens,
                });
            }
        }
        files
    }

    /// Reads the file, up to
    /// [`certificate_dates::FILE_BYTES_MAX`](crate::certificate_dates::FILE_BYTES_MAX).
    ///
    /// # Errors
    /// The operating system's.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(&self.path)?;
        file.take(certificate_dates::FILE_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The remedy for an expired certificate.
    pub fn renewal(&self) -> &'static str {
        if self.is_authority {
            RENEW_AUTHORITY
        } else {
            RENEW_ENCLAVE
        }
    }

    /// The problem with the dates of its certificates now.
    pub fn date_problem(&self, bytes: &[u8]) -> Option<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        });
        certificate_dates::problem(bytes, self.is_authority, now)
    }
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zenoh setting {}={:?}", self.setting, self.path)
    }
}

/// State of a watched file.
struct Watched {
    file: TlsFile,
    /// The certificate that a listener read when it started.
    loaded: Option<Vec<u8>>,
    is_reported: bool,
}

impl Watched {
    fn new(file: TlsFile) -> Self {
        Self {
            loaded: file.read().ok().filter(|_| file.listens),
            file,
            is_reported: false,
        }
    }

    /// Reports a certificate that has expired since the last check, once.
    fn look(&mut self) -> Option<String> {
        let own = match &self.loaded {
            Some(loaded) => self.file.date_problem(loaded),
            // An unreadable file may be in the course of its renewal.
            None => self
                .file
                .read()
                .ok()
                .and_then(|now| self.file.date_problem(&now)),
        };
        let was_reported = std::mem::replace(&mut self.is_reported, own.is_some());
        let wrong = own.filter(|_| !was_reported)?;
        let remedy = if self.file.listens {
            "and start this again, since a listener reads it at its start"
        } else {
            "and the session connects again by itself"
        };
        Some(format!(
            "{}: {wrong}; no link opens with it, and Zenoh closes those that it has opened where \
             transport/link/tls/close_link_on_expiration is set; renew it ({}), {remedy}",
            self.file,
            self.file.renewal()
        ))
    }
}

/// Counts checks without a link.
#[derive(Default)]
pub struct Looks {
    without_link: u32,
    had_link: bool,
}

impl Looks {
    /// Notes whether there is a link. Returns true once per outage, after
    /// [`LOOKS_WITHOUT_LINK`] checks without one.
    pub fn note_links(&mut self, has_link: bool) -> bool {
        if has_link {
            self.had_link = true;
            self.without_link = 0;
            return false;
        }
        self.without_link = self.without_link.saturating_add(1);
        self.had_link && self.without_link == LOOKS_WITHOUT_LINK
    }
}

/// Handle of the watching thread. Dropping it ends the watch without waiting for a check
/// in progress.
pub struct CertificateWatch(Arc<Stop>);

#[derive(Default)]
struct Stop {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl CertificateWatch {
    /// Starts the thread, which calls `more` at each check. `None` without files.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread.
    pub fn start(
        files: Vec<TlsFile>,
        mut more: impl FnMut(&mut Looks) + Send + 'static,
    ) -> Result<Option<Self>, String> {
        if files.is_empty() {
            return Ok(None);
        }
        let mut watched: Vec<Watched> = files.into_iter().map(Watched::new).collect();
        let stop = Arc::new(Stop::default());
        let own = stop.clone();
        let work = move || {
            let mut looks = Looks::default();
            // The first check is immediate: a link may be lost before the second.
            loop {
                for text in watched.iter_mut().filter_map(Watched::look) {
                    tracing::error!("{text}");
                }
                more(&mut looks);
                if !own.pause() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("zenoh-expiry".into())
            .spawn(work);
        thread.map_err(|error| format!("start a thread: {error}"))?;
        Ok(Some(Self(stop)))
    }
}

impl Stop {
    /// Sleeps until the next check. Returns false when the watch ends.
    fn pause(&self) -> bool {
        let mut is_over = self.is_over.lock();
        if !*is_over {
            self.changed.wait_for(&mut is_over, LOOK_PAUSE);
        }
        !*is_over
    }
}

impl Drop for CertificateWatch {
    fn drop(&mut self) {
        *self.0.is_over.lock() = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_security::date::UnixTime;
    use pteros_security::keystore::{Keystore, Options};

    #[test]
    fn an_expired_certificate_is_reported_once_and_again_after_its_renewal() {
        let name = format!("pteros-zenoh-watch-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = UnixTime(now.as_secs().try_into().unwrap());
        let before = UnixTime(now.0 - 40 * 86_400);
        let keystore = Keystore::create(&root, &Options::default(), before).unwrap();
        let certify = |days, at| {
            let options = Options {
                days,
                ..Options::default()
            };
            keystore.create_enclave("/arm", None, &options, at).unwrap();
        };
        certify(1, before);
        let file = |listens| TlsFile {
            setting: "transport/link/tls/x".into(),
            path: root.join("enclaves/arm/cert.pem").display().to_string(),
            is_authority: false,
            listens,
        };
        let [mut session, mut listener] = [false, true].map(|listens| Watched::new(file(listens)));
        for (watched, remedy) in [
            (&mut session, "the session connects again by itself"),
            (&mut listener, "start this again"),
        ] {
            let said = watched.look().unwrap();
            let begin = format!("{}: the certificate of \"/arm\" expired at ", watched.file);
            assert!(said.starts_with(&begin) && said.contains(remedy), "{said}");
            assert_eq!(watched.look(), None, "once");
        }
        certify(365, now);
        assert_eq!([session.look(), listener.look()], [None, None]);
        // The listener still uses the old one.
        assert_eq!([session.is_reported, listener.is_reported], [false, true]);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn an_authority_that_connects_and_listens_is_one_file() {
        let mut config = Config::default();
        for (key, value) in [
            ("connect/endpoints", "[\"tls/127.0.0.1:7447\"]"),
            ("listen/endpoints", "[\"tls/127.0.0.1:7450\"]"),
            ("transport/link/tls/root_ca_certificate", "\"/root.pem\""),
            ("transport/link/tls/listen_certificate", "\"/own.pem\""),
        ] {
            config.insert_json5(key, value).unwrap();
        }
        let files = TlsFile::of(&config);
        let all: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.is_authority, file.listens))
            .collect();
        assert_eq!(all, [("/root.pem", true, true), ("/own.pem", false, true)]);
    }

    /// Takes the steps of the remedy for an expired authority.
    #[test]
    fn an_authority_is_renewed_as_its_report_says() {
        let name = format!("pteros-zenoh-authority-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = UnixTime(now.as_secs().try_into().unwrap());
        let before = UnixTime(now.0 - 40 * 86_400);
        let brief = Options {
            days: 30,
            ..Options::default()
        };
        let keystore = Keystore::create(&root, &brief, before).unwrap();
        keystore
            .create_enclave("/arm", None, &brief, before)
            .unwrap();
        keystore.revoke("/arm", &brief, before).unwrap();
        let file = |name: &str, is_authority| {
            let path = root.join("enclaves/arm").join(name);
            Watched::new(TlsFile {
                setting: "transport/link/tls/x".into(),
                path: path.display().to_string(),
                is_authority,
                listens: false,
            })
        };
        let mut authority = file("identity_ca.cert.pem", true);
        let mut own = file("cert.pem", false);
        let [of_authority, of_own] = [&mut authority, &mut own].map(|file| file.look().unwrap());
        assert!(of_own.contains(RENEW_ENCLAVE) && of_authority.contains(RENEW_AUTHORITY));
        for file in RENEW_AUTHORITY
            .split([' ', ','])
            .filter(|word| word.ends_with(".pem"))
        {
            std::fs::remove_file(root.join(file)).unwrap();
        }
        let keystore = Keystore::create(&root, &Options::default(), now).unwrap();
        keystore
            .create_enclave("/arm", None, &Options::default(), now)
            .unwrap();
        assert_eq!([authority.look(), own.look()], [None, None]);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn lost_links_are_noted_once_after_each_link() {
        let mut looks = Looks::default();
        let mut note = |links: &[bool]| -> usize {
            let noted = links.iter().filter(|has_link| looks.note_links(**has_link));
            noted.count()
        };
        assert_eq!(note(&[false; 9]), 0, "there was none");
        assert_eq!(note(&[true, false, false]), 0);
        assert_eq!(note(&[false; 9]), 1);
        assert_eq!(note(&[true, false, true, false, false]), 0);
        assert_eq!(note(&[false]), 1);
    }
}
