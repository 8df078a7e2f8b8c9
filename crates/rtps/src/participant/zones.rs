//! Zones of link-local addresses in announcements (RFC 4007 §6).
//!
//! An announcement names no zone, since the number of an interface has a meaning on one
//! host only. A link-local address is of use together with the interface on which its
//! participant was heard from it. Copies of an announcement come from several addresses
//! of its host, so what was learned from one copy is kept for the next. Until then an
//! address without a zone is not used.

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::locator::{Locator, NetworkScope};

/// Adds the zones to an announcement of a participant that came from this address.
/// `known` is its announcement before.
pub(super) fn add_to_participant(
    data: &mut ParticipantData,
    from: Option<Locator>,
    known: Option<&ParticipantData>,
    network: &NetworkScope,
) {
    for at in [&mut data.metatraffic_unicast, &mut data.default_unicast] {
        add_zones(at, from, known, network);
    }
}

/// Adds the zones to an announcement of an endpoint: those of its participant.
pub(super) fn add_to_endpoint(
    data: &mut EndpointData,
    participant: &ParticipantData,
    network: &NetworkScope,
) {
    add_zones(&mut data.unicast, None, Some(participant), network);
}

fn add_zones(
    locators: &mut [Locator],
    from: Option<Locator>,
    known: Option<&ParticipantData>,
    network: &NetworkScope,
) {
    for locator in locators.iter_mut().filter(|at| at.is_link_local_v6()) {
        let known = known.map(|known| {
            known
                .metatraffic_unicast
                .iter()
                .chain(&known.default_unicast)
        });
        let heard = from.iter().chain(known.into_iter().flatten());
        let heard = heard.filter_map(|at| at.to_udp()).map(|(ip, _)| ip);
        // A participant of this host may be reached by shared memory alone.
        let mut candidates = heard.chain(network.all().map(|own| own.ip));
        let zone = candidates.find(|ip| ip.zone() != 0 && locator.is_at_unzoned(*ip));
        *locator = locator.in_zone(zone.map_or(0, |ip| ip.zone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::GuidPrefix;
    use crate::locator::{IpAddress, OwnAddress};
    use core::net::IpAddr;

    fn at(text: &str, zone: u32) -> Locator {
        let ip: IpAddr = text.parse().unwrap();
        Locator::udp(IpAddress::new(ip, zone), 7410)
    }

    fn announced(locators: &[Locator]) -> ParticipantData {
        ParticipantData {
            metatraffic_unicast: locators.to_vec(),
            ..ParticipantData::new(GuidPrefix([7; 12]))
        }
    }

    fn resolved(
        locators: &[Locator],
        from: Option<Locator>,
        known: Option<&ParticipantData>,
        network: &NetworkScope,
    ) -> ParticipantData {
        let mut data = announced(locators);
        add_to_participant(&mut data, from, known, network);
        data
    }

    #[test]
    fn an_address_gets_the_zone_of_the_interface_on_which_it_was_heard() {
        let network = NetworkScope::default();
        let list = [at("fe80::1", 0), at("fe80::2", 0), at("fd00::1", 0)];
        let first = resolved(&list, Some(at("fe80::1", 3)), None, &network);
        let expected = [at("fe80::1", 3), at("fe80::2", 0), at("fd00::1", 0)];
        assert_eq!(first.metatraffic_unicast, expected);
        assert!(!first.metatraffic_unicast[1].is_unicast(), "not used");
        // The copies from the other addresses add to it, and take nothing away.
        let other = resolved(&list, Some(at("fe80::2", 4)), Some(&first), &network);
        let expected = [at("fe80::1", 3), at("fe80::2", 4), at("fd00::1", 0)];
        assert_eq!(other.metatraffic_unicast, expected);
        let third = resolved(&list, Some(at("fd00::1", 0)), Some(&other), &network);
        assert_eq!(third, other);
    }

    #[test]
    fn a_copy_from_another_link_moves_the_address_there() {
        let network = NetworkScope::default();
        let list = [at("fe80::1", 0)];
        let known = resolved(&list, Some(at("fe80::1", 3)), None, &network);
        let moved = resolved(&list, Some(at("fe80::1", 5)), Some(&known), &network);
        assert_eq!(moved.metatraffic_unicast, [at("fe80::1", 5)]);
    }

    #[test]
    fn an_address_of_this_host_has_our_zone() {
        let network = NetworkScope {
            addresses: alloc::vec![OwnAddress {
                ip: IpAddress::new("fe80::9".parse().unwrap(), 2),
                prefix_length: 64,
            }],
            ..NetworkScope::default()
        };
        let data = resolved(&[at("fe80::9", 0)], None, None, &network);
        assert_eq!(data.metatraffic_unicast, [at("fe80::9", 2)]);
    }
}
