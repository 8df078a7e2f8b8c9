//! Selection of an unused domain for the demo.

use anyhow::{Result, bail};
use std::net::{Ipv4Addr, UdpSocket};

/// Selects a domain whose first ports are free. Two demos that start at the same
/// time begin the search at different domains. Sends nothing.
pub fn choose_free() -> Result<u32> {
    let start = std::process::id() % DOMAIN_COUNT;
    let found = (0..DOMAIN_COUNT)
        .map(|step| DOMAIN_MIN + (start + step) % DOMAIN_COUNT)
        .find(|domain| is_free(*domain));
    match found {
        Some(domain) => Ok(domain),
        None => bail!(
            "no free domain from {DOMAIN_MIN} to {}: each one's ports are in use on this host; stop some nodes and try again",
            DOMAIN_MIN + DOMAIN_COUNT - 1
        ),
    }
}

/// Domains above 101 overlap Linux's ephemeral ports, and low ones are in common
/// use.
const DOMAIN_MIN: u32 = 21;
const DOMAIN_COUNT: u32 = 80;

/// Whether the domain's multicast port and the first participant's unicast port are
/// free (RTPS 2.5 §9.6.2.3: 7400 + 250 × domain, + 10).
fn is_free(domain: u32) -> bool {
    let Ok(base) = u16::try_from(7400 + 250 * domain) else {
        return false;
    };
    [
        (Ipv4Addr::UNSPECIFIED, base),
        (Ipv4Addr::UNSPECIFIED, base + 10),
    ]
    .into_iter()
    .all(|address| UdpSocket::bind(address).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_in_use_is_skipped() {
        let domain = choose_free().unwrap();
        let port = u16::try_from(7400 + 250 * domain).unwrap();
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!is_free(domain));
        drop(taken);
    }
}
