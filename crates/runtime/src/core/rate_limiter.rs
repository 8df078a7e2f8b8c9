//! Rate limiter of discovery traffic: a token bucket for each source address.
//!
//! Discovery data costs a lock and a parser, 14 µs for an announcement. It shares the
//! sockets with user data, so a flood of it would delay user data. The driver checks the
//! bucket before parsing. Datagrams above the rate are dropped and counted. Reliable
//! discovery traffic is retransmitted, announcements are periodic.
//!
//! The buckets follow the generic cell rate algorithm (ITU-T I.371): each stores one
//! time.

use std::collections::BTreeMap;

use pteros_rtps::locator::IpAddress;
use pteros_rtps::time::{Duration, Instant};

/// Datagrams per second, and in one burst, from an address with a discovered
/// participant. 300 processes that start at once on a host stay below it.
const PEER_RATE: i64 = 10_000;

/// The same from any other address.
const STRANGER_RATE: i64 = 500;

/// The same for all other addresses together, because source addresses can be forged. It
/// corresponds to 7 % of a CPU.
const STRANGERS_RATE: i64 = 5_000;

/// Addresses with a bucket that is not full. Beyond it, further addresses have the
/// common bucket only.
const SOURCES_MAX: usize = 1_024;

/// Time between two log lines.
const REPORT_PERIOD: Duration = Duration::from_secs(60);

/// A token bucket that holds the tokens of one second.
#[derive(Clone, Copy)]
struct TokenBucket {
    /// When the bucket is full again.
    full_at: Instant,
}

impl TokenBucket {
    /// Takes a token from a bucket with `rate` tokens per second. Returns false if it is
    /// empty.
    fn take(&mut self, now: Instant, rate: i64) -> bool {
        if self.full_at.since(now) >= Duration::from_secs(1) {
            return false;
        }
        let interval = Duration::from_nanos(1_000_000_000 / rate);
        self.full_at = self.full_at.max(now) + interval;
        true
    }
}

/// The state of a source address.
struct SourceAddress {
    bucket: TokenBucket,
    has_peer: bool,
    /// Datagrams that were dropped.
    dropped: u64,
}

/// See the module documentation. Used by one thread at a time; allocates for a new
/// address.
pub(super) struct DiscoveryRateLimiter {
    sources: BTreeMap<IpAddress, SourceAddress>,
    strangers: TokenBucket,
    reported_at: Option<Instant>,
    /// The address with most dropped datagrams, and their number.
    most_limited: (IpAddress, u64),
}

impl DiscoveryRateLimiter {
    pub(super) fn new() -> Self {
        Self {
            sources: BTreeMap::new(),
            strangers: TokenBucket {
                full_at: Instant::ZERO,
            },
            reported_at: None,
            most_limited: (IpAddress::UNSPECIFIED, 0),
        }
    }

    /// Whether a datagram with discovery data from `address` is handled.
    pub(super) fn admits(&mut self, now: Instant, address: IpAddress) -> bool {
        if !self.sources.contains_key(&address) && !self.has_space(now) {
            return self.strangers.take(now, STRANGERS_RATE);
        }
        let source = self.sources.entry(address).or_insert(SourceAddress {
            bucket: TokenBucket {
                full_at: Instant::ZERO,
            },
            has_peer: false,
            dropped: 0,
        });
        let admitted = if source.has_peer {
            source.bucket.take(now, PEER_RATE)
        } else {
            // Its own bucket first, so that its excess takes nothing from others.
            let is_within = source.bucket.take(now, STRANGER_RATE);
            is_within && self.strangers.take(now, STRANGERS_RATE)
        };
        if !admitted {
            source.dropped += 1;
            if source.dropped > self.most_limited.1 {
                self.most_limited = (address, source.dropped);
            }
        }
        admitted
    }

    /// The address with most dropped datagrams, and their number.
    pub(super) fn most_limited(&self) -> (IpAddress, u64) {
        self.most_limited
    }

    /// Drops addresses with a full bucket from a full table. Peers are dropped last,
    /// because their next datagram would have to prove again that it comes from a peer.
    fn has_space(&mut self, now: Instant) -> bool {
        for keeps_peers in [true, false] {
            if self.sources.len() >= SOURCES_MAX {
                let keeps = |source: &SourceAddress| keeps_peers && source.has_peer;
                self.sources
                    .retain(|_, source| source.bucket.full_at > now || keeps(source));
            }
        }
        self.sources.len() < SOURCES_MAX
    }

    /// Notes whether the last admitted datagram from `address` came from a discovered
    /// participant.
    pub(super) fn note_source(&mut self, address: IpAddress, has_peer: bool) {
        if let Some(source) = self.sources.get_mut(&address) {
            source.has_peer |= has_peer;
        }
    }

    /// Whether dropped datagrams are worth a log line now.
    pub(super) fn is_report_due(&mut self, now: Instant) -> bool {
        let is_due = self
            .reported_at
            .is_none_or(|at| now.since(at) >= REPORT_PERIOD);
        if is_due {
            self.reported_at = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROBOT: [u8; 4] = [10, 0, 0, 1];
    const LAPTOP: [u8; 4] = [10, 0, 0, 2];

    fn at_millis(millis: i64) -> Instant {
        Instant::ZERO + Duration::from_millis(10_000 + millis)
    }

    /// How many of `rate` datagrams a second are admitted within `millis`.
    fn admitted(
        limiter: &mut DiscoveryRateLimiter,
        addresses: &[[u8; 4]],
        rate: i64,
        from: i64,
        millis: i64,
    ) -> i64 {
        let count = rate * millis / 1_000;
        let mut admitted = 0;
        for index in 0..count {
            let now = at_millis(from) + Duration::from_nanos(index * 1_000_000_000 / rate);
            let address = addresses[usize::try_from(index).unwrap() % addresses.len()];
            admitted += i64::from(limiter.admits(now, address.into()));
        }
        admitted
    }

    #[test]
    fn a_flood_from_one_address_keeps_to_its_rate() {
        let mut limiter = DiscoveryRateLimiter::new();
        let handled = admitted(&mut limiter, &[LAPTOP], 100_000, 0, 3_000);
        // The burst, and what three seconds refill.
        assert!((1_900..=2_010).contains(&handled), "{handled}");
    }

    #[test]
    fn the_address_with_most_dropped_datagrams_is_known() {
        let mut limiter = DiscoveryRateLimiter::new();
        assert_eq!(limiter.most_limited(), (IpAddress::UNSPECIFIED, 0));
        admitted(&mut limiter, &[ROBOT, LAPTOP, LAPTOP], 3_000, 0, 1_000);
        let (address, dropped) = limiter.most_limited();
        assert_eq!(address, LAPTOP.into());
        assert!((900..=1_100).contains(&dropped), "{dropped}");
    }

    #[test]
    fn a_newcomer_is_handled_during_a_flood_from_ten_addresses() {
        let mut limiter = DiscoveryRateLimiter::new();
        let attackers: Vec<[u8; 4]> = (10..20).map(|host| [10, 0, 0, host]).collect();
        for second in 0..5 {
            let from = second * 1_000;
            admitted(&mut limiter, &attackers[..9], 90_000, from, 1_000);
            assert!(
                limiter.admits(at_millis(from + 1_000), ROBOT.into()),
                "{second}"
            );
        }
    }

    #[test]
    fn forged_source_addresses_take_nothing_from_a_peer() {
        let mut limiter = DiscoveryRateLimiter::new();
        assert!(limiter.admits(at_millis(0), ROBOT.into()));
        limiter.note_source(ROBOT.into(), true);
        let mut forged = Vec::new();
        for high in 0..=255 {
            forged.extend((0..=19).map(|low| [172, 16, high, low]));
        }
        let handled = admitted(&mut limiter, &forged, 100_000, 0, 2_000);
        assert!(handled <= 15_010, "{handled}");
        for _ in 0..2_000 {
            assert!(limiter.admits(at_millis(2_000), ROBOT.into()));
        }
        assert!(limiter.sources.len() <= SOURCES_MAX);
    }

    #[test]
    fn three_hundred_processes_of_a_host_may_start_at_once() {
        let mut limiter = DiscoveryRateLimiter::new();
        limiter.admits(at_millis(0), ROBOT.into());
        limiter.note_source(ROBOT.into(), true);
        // 60 datagrams each within two seconds.
        let handled = admitted(&mut limiter, &[ROBOT], 9_000, 1, 2_000);
        assert_eq!(handled, 18_000);
    }

    #[test]
    fn a_flood_is_reported_once_a_minute() {
        let mut limiter = DiscoveryRateLimiter::new();
        assert!(limiter.is_report_due(at_millis(0)));
        assert!(!limiter.is_report_due(at_millis(59_000)));
        assert!(limiter.is_report_due(at_millis(60_000)));
    }
}
