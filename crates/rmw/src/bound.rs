//! Whom of this host to call: only ports that somebody is bound to are announced
//! to, which the kernel is asked before each announcement.
//!
//! Who binds one later announces itself then, to us too, and is answered.

use pteros_rtps::time::Instant;

use crate::core::{Core, LOCAL_PEERS_MAX};
use crate::env::unicast_port;

impl Core {
    /// Before announcements go out: finds out who may be there.
    pub(crate) fn look_who_is_bound(&self, now: Instant) {
        if !self.participant.lock().announces_by(now) {
            return;
        }
        let domain = self.options.domain_id;
        let ports = unicast_port(domain, 0)..=unicast_port(domain, LOCAL_PEERS_MAX - 1);
        let bound = self.transport.bound_ports(ports);
        self.participant.lock().know_bound_ports(bound);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::CoreOptions;
    use crate::env::SystemEnv;
    use crate::shared_memory::SharedMemoryOptions;

    fn open() -> Arc<Core> {
        let options = CoreOptions {
            domain_id: 187,
            local_only: true,
            multicast: false,
            shared_memory: SharedMemoryOptions {
                on: false,
                ..SharedMemoryOptions::default()
            },
            ..CoreOptions::default()
        };
        Core::open(Arc::new(SystemEnv::new()), options).expect("open")
    }

    /// The helper thread drives meanwhile.
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
    fn who_is_alone_on_a_host_calls_nobody_and_who_comes_later_is_found() {
        let first = open();
        let announced = || first.participant.lock().stats().announcements_sent;
        until(|| announced() >= 5);
        let sent = first.counts().datagrams_sent;
        match first.transport.bound_ports(0..=u16::MAX) {
            Some(_) => assert_eq!(sent, 0, "datagrams to nobody"),
            // A system that keeps its list to itself.
            None => assert!(sent >= 5 * u64::from(LOCAL_PEERS_MAX - 1)),
        }
        let second = open();
        let met = |core: &Core| core.participant.lock().participants().count() == 1;
        until(|| met(&first) && met(&second));
    }
}
