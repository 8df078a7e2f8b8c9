//! Validity dates of the certificates that TLS settings name (X.509, RFC 5280 §4.1.2.5).
//!
//! A session with an expired certificate opens no connection. The error of the other end
//! names neither file nor date. So the dates are checked before connecting.

use x509_parser::pem::Pem;
use x509_parser::x509::X509Name;

/// Largest file that is read: some hundred certificates.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Checks the dates of the certificates in a PEM file at `now`, seconds since 1970.
/// Returns the problem, `None` without one. With `all`, one valid certificate is enough,
/// as in a list of authorities. Otherwise only the first certificate counts, the
/// session's own.
///
/// An unreadable file is no problem here: Zenoh reports it.
pub fn problem(file: &[u8], all: bool, now: i64) -> Option<String> {
    let mut first = None;
    for pem in Pem::iter_from_buffer(file).map_while(Result::ok) {
        if pem.label != "CERTIFICATE" {
            continue;
        }
        let certificate = pem.parse_x509().ok()?;
        let name = name_of(certificate.subject());
        let validity = certificate.validity();
        let wrong = if validity.not_after.timestamp() < now {
            format!(
                "the certificate of {name} expired at {}",
                validity.not_after
            )
        } else if validity.not_before.timestamp() > now {
            format!(
                "the certificate of {name} is not valid before {}",
                validity.not_before
            )
        } else {
            return None;
        };
        if !all {
            return Some(wrong);
        }
        first.get_or_insert(wrong);
    }
    first
}

/// The common name in quotes; the whole name if it has none.
fn name_of(subject: &X509Name) -> String {
    let common = subject.iter_common_name().next();
    let common = common.and_then(|name| name.as_str().ok());
    format!(
        "{:?}",
        common.map_or_else(|| subject.to_string(), str::to_owned)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_security::date::UnixTime;
    use pteros_security::keystore::{Keystore, Options};

    #[test]
    fn a_certificate_is_valid_between_its_dates() {
        let name = format!("pteros-zenoh-dates-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let (made, options) = (UnixTime(1_800_000_000), Options::default());
        let keystore = Keystore::create(&root, &options, made).unwrap();
        let for_a_day = Options { days: 1, ..options };
        keystore
            .create_enclave("/arm", None, &for_a_day, made)
            .unwrap();
        let read = |file: &str| std::fs::read(root.join("enclaves/arm").join(file)).unwrap();
        let own = read("cert.pem");
        let now: i64 = made.0;
        let after = now + 2 * 86_400;

        assert_eq!(problem(&own, false, now + 60), None);
        let expired = problem(&own, false, after).unwrap();
        let begin = "the certificate of \"/arm\" expired at Jan 16 ";
        assert!(expired.starts_with(begin), "{expired}");
        let early = problem(&own, false, now - 30 * 86_400).unwrap();
        assert!(early.contains("\"/arm\" is not valid before"), "{early}");

        // An expired authority before a valid one.
        let both = [own.clone(), read("identity_ca.cert.pem")].concat();
        assert_eq!(problem(&both, true, after), None);
        assert!(problem(&both, false, after).is_some());
        assert_eq!(
            problem(&[own, b"garbage".to_vec()].concat(), true, after),
            Some(expired)
        );
        for garbage in [
            "",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert_eq!(problem(garbage.as_bytes(), true, now), None);
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
