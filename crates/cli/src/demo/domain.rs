//! A domain for the demonstration that nobody on this host uses.

use anyhow::{Result, bail};
use std::net::{Ipv4Addr, UdpSocket};

/// Picks a domain whose first ports are free. Two demonstrations that start at
/// the same moment begin to look at different places. Sends nothing.
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

/// Domains above 101 reach into Linux's ephemeral ports; low ones are what
/// people use.
const DOMAIN_MIN: u32 = 21;
const DOMAIN_COUNT: u32 = 80;

/// Whether nobody has the domain's multicast port or the first participant's
/// unicast port (RTPS 2.5 §9.6.2.3: 7400 + 250 × domain, + 10).
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
    fn a_domain_in_use_is_passed_over() {
        let domain = choose_free().unwrap();
        let port = u16::try_from(7400 + 250 * domain).unwrap();
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!is_free(domain));
        drop(taken);
    }
}
