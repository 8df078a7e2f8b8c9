//! Contexts that others open over the simulated clock and network, of `pteros`
//! for instance, with the executors that run their callbacks.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use pteros_rmw::Core;

use crate::env::SimEnv;
use crate::world::{Place, World, unique};

/// Rounds of emptying a guest's sockets at a time.
const ROUNDS: usize = 64;

/// What runs the callbacks of a guest.
pub trait Runner: Send {
    /// Runs what is ready, drives the network once, and waits for nothing.
    fn run(&mut self);

    /// In how many nanoseconds it has something to run even if nothing arrives.
    fn due(&self) -> Option<u64>;
}

/// A context that others have opened.
pub struct Guest {
    core: Weak<Core>,
    /// Missing while it runs.
    runner: Option<Box<dyn Runner>>,
}

/// What is done at some time.
type Deed = Box<dyn FnOnce() + Send>;

/// Deeds in their order: by time, then as they were planned.
#[derive(Default)]
pub(crate) struct Deeds {
    planned: BTreeMap<(u64, u64), Deed>,
    serial: u64,
}

impl Deeds {
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.planned.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn plan(&mut self, at: u64, deed: Deed) {
        self.serial += 1;
        self.planned.insert((at, self.serial), deed);
    }
}

impl Place {
    /// When its guest has something to do though nothing arrives.
    pub(crate) fn guest_due(&self, now: u64) -> Option<u64> {
        let guest = self.guest.as_ref().filter(|_| !self.blocked)?;
        let core = guest.core.upgrade()?;
        let runner = guest.runner.as_ref().and_then(|runner| runner.due());
        let runner = runner.map_or(u64::MAX, |span| now.saturating_add(span));
        let at = core.next_deadline().as_nanos().min(runner);
        let at = at.max(self.paused_until);
        (at < u64::MAX).then_some(at)
    }
}

impl World {
    /// What a context for that place is opened with: its next life.
    pub(crate) fn guest_env(self: &Arc<Self>, place: usize) -> SimEnv {
        let mut places = self.places();
        let here = &mut places[place];
        here.lives += 1;
        SimEnv {
            world: Arc::downgrade(self),
            place,
            host: here.host,
            unique: unique(place, here.lives),
            is_guest: true,
            disk: None,
            buffer_bytes: 8 << 20,
        }
    }

    /// A guest comes to a place, whoever was there before.
    pub(crate) fn welcome(&self, place: usize, core: &Weak<Core>) {
        let guest = Guest {
            core: core.clone(),
            runner: None,
        };
        let left = self.places()[place].guest.replace(guest);
        drop(left);
    }

    /// Who runs the callbacks of a guest from now on.
    pub(crate) fn set_runner(&self, place: usize, runner: Option<Box<dyn Runner>>) {
        let left = match &mut self.places()[place].guest {
            Some(guest) => std::mem::replace(&mut guest.runner, runner),
            None => None,
        };
        // Not under the lock: contexts end with their last holder.
        drop(left);
    }

    /// As [`World::turn`], of a guest; false where there is none.
    pub(crate) fn turn_guest(&self, place: usize) -> bool {
        loop {
            let now = self.now();
            let (core, runner) = {
                let mut places = self.places();
                let here = &mut places[place];
                let Some(guest) = &mut here.guest else {
                    return false;
                };
                if here.blocked || here.paused_until > now {
                    return true;
                }
                here.turns_total += 1;
                let Some(core) = guest.core.upgrade() else {
                    return true;
                };
                (core, guest.runner.take())
            };
            match runner {
                Some(mut runner) => {
                    runner.run();
                    self.put_back(place, runner, &core);
                }
                None => {
                    core.drive_for_others(ROUNDS);
                }
            }
            self.check_memory(place, &core);
            let socket = self.places()[place].socket;
            let has_mail = socket.is_some_and(|s| self.network().has_mail(s));
            if !has_mail || self.has_failed() {
                return true;
            }
        }
    }

    /// A runner has run, unless its guest has been followed by another meanwhile.
    fn put_back(&self, place: usize, runner: Box<dyn Runner>, core: &Arc<Core>) {
        let mut places = self.places();
        if let Some(guest) = &mut places[place].guest
            && std::ptr::eq(guest.core.as_ptr(), Arc::as_ptr(core))
            && guest.runner.is_none()
        {
            guest.runner = Some(runner);
            return;
        }
        drop(places);
        drop(runner);
    }

    /// Does what is due first.
    pub(crate) fn do_deed(&self) {
        let deed = self.deeds.lock().planned.pop_first();
        if let Some((_, deed)) = deed {
            deed();
        }
    }
}
