//! Bound-port probe: sends unicast announcements only to bound ports of this host.
//!
//! The kernel lists bound ports before each announcement (SPDP, RTPS 2.5 §8.5.3). A
//! participant that binds a port later announces itself and gets a reply.

use pteros_rtps::time::Instant;

use crate::core::LOCAL_PEERS_MAX;
use crate::core::discovery::Discovery;
use crate::platform::unicast_port;

impl Discovery {
    /// Finds out which participant ports are bound, before announcements are sent.
    pub(crate) fn probe_bound_ports(&self, now: Instant) {
        if !self
            .participant()
            .lock()
            .spdp_writer()
            .is_announcement_due(now)
        {
            return;
        }
        let domain = self.domain_id;
        let ports = unicast_port(domain, 0)..=unicast_port(domain, LOCAL_PEERS_MAX - 1);
        let bound = self.datagrams.bound_ports(ports);
        self.participant()
            .lock()
            .spdp_writer_mut()
            .set_bound_ports(bound);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::CoreOptions;
    use crate::core::Core;
    use crate::platform::SystemPlatform;
    use crate::shared_memory::SharedMemoryOptions;

    fn open() -> Arc<Core> {
        let options = CoreOptions {
            domain_id: 187,
            local_only: true,
            multicast: false,
            shared_memory: SharedMemoryOptions {
                enabled: false,
                ..SharedMemoryOptions::default()
            },
            ..CoreOptions::default()
        };
        Core::open(Arc::new(SystemPlatform::new()), options).expect("open")
    }

    /// The background I/O thread drives meanwhile.
    fn until(mut done: impl FnMut() -> bool) {
        let (_hold, never) = std::sync::mpsc::channel::<()>();
        for _ in 0..2_000 {
            if done() {
                return;
            }
            let _ = never.recv_timeout(Duration::from_millis(20));
        }
        panic!("not in 40 s");
    }

    #[test]
    fn a_lone_participant_announces_to_no_port_and_a_later_one_is_discovered() {
        let first = open();
        let announced = || {
            first
                .discovery()
                .participant()
                .lock()
                .stats()
                .announcements_sent
        };
        until(|| announced() >= 5);
        let sent = first.counts().datagrams_sent;
        match first.discovery().datagrams.bound_ports(0..=u16::MAX) {
            Some(_) => assert_eq!(sent, 0, "datagrams to nobody"),
            // A system that does not reveal its list of bound ports.
            None => assert!(sent >= 5 * u64::from(LOCAL_PEERS_MAX - 1)),
        }
        let second = open();
        let met = |core: &Core| core.discovery().participant().lock().participants().count() == 1;
        until(|| met(&first) && met(&second));
    }
}
