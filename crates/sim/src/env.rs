//! The simulated machine as the engine sees it: `Env` and `Transport` over the
//! virtual clock and network.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use pteros_rmw::env::{
    Core, Env, GROUP, Opened, Received, SocketPlan, Transport, multicast_port, unicast_port,
};
use pteros_rmw::error::OpenError;
use pteros_rmw::links::Links;
use pteros_rmw::ready::ReadyQueue;
use pteros_rmw::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};
use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::time::{Instant, Timestamp};

use crate::link::Socket;
use crate::relay::Wake;
use crate::shared::SimLinks;
use crate::world::World;

/// The wall clock's start: some day in 2026.
const WALL_START: i64 = 1_790_000_000_000_000_000;

/// One process's view of the world.
pub struct SimEnv {
    /// The world it lives in.
    pub world: Weak<World>,
    /// The process's place.
    pub place: usize,
    /// Its host, last byte of the address.
    pub host: u8,
    /// What makes its GUID unique.
    pub unique: [u8; 10],
    /// Whether it is opened by others than the world, which then has it for a guest.
    pub is_guest: bool,
    /// Where its stores are; else it has none.
    pub disk: Option<Arc<dyn Env>>,
    /// Bytes of its receive buffer.
    pub buffer_bytes: usize,
}

impl SimEnv {
    fn links(&self, plan: &SocketPlan, number: usize) -> Result<Arc<dyn Links>, String> {
        if !plan.shared_memory.on {
            return Err("switched off here".into());
        }
        Ok(Arc::new(SimLinks {
            world: self.world.clone(),
            number,
            host: self.host,
        }))
    }
}

impl Env for SimEnv {
    fn now(&self) -> Instant {
        let world = self.world.upgrade();
        world.map_or(Instant::FAR_FUTURE, |w| Instant::from_nanos(w.now()))
    }

    fn wall(&self) -> Timestamp {
        let world = self.world.upgrade();
        world.map_or(Timestamp::default(), |world| wall(&world, self.place))
    }

    fn unique(&self) -> [u8; 10] {
        self.unique
    }

    fn open(&self, plan: &SocketPlan) -> Result<Opened, OpenError> {
        let no_port = OpenError::NoFreePort {
            domain_id: plan.domain_id,
            first: unicast_port(plan.domain_id, 0),
            last: unicast_port(plan.domain_id, 119),
        };
        let Some(world) = self.world.upgrade() else {
            return Err(no_port);
        };
        let ip = [10, 0, 0, self.host];
        let mut network = world.network();
        let address = |index| Locator::udp_v4(ip, unicast_port(plan.domain_id, index));
        let Some(index) = (0..120).find(|index| network.is_free(&address(*index))) else {
            return Err(no_port);
        };
        let address = address(index);
        let mut socket = Socket::new(self.place, address, self.buffer_bytes, plan.multicast);
        socket.shared.name = plan.prefix.0;
        socket.shared.host = self.host;
        let number = network.open(socket);
        drop(network);
        let group = Locator::udp_v4(GROUP.octets(), multicast_port(plan.domain_id));
        world.note_socket(self.place, number);
        Ok(Opened {
            transport: Box::new(SimTransport {
                world: Arc::downgrade(&world),
                place: self.place,
                number,
                is_guest: self.is_guest,
            }),
            participant_index: index,
            unicast: vec![address],
            own: vec![OwnAddress {
                ip,
                prefix_length: 24,
            }],
            multicast: plan.multicast.then_some(group),
            advice: Vec::new(),
            links: self.links(plan, number),
        })
    }

    fn open_store(
        &self,
        spec: StoreSpec,
        on_loss: OnLoss,
    ) -> Result<(Store, Vec<StoredSample>), StoreError> {
        match &self.disk {
            Some(disk) => disk.open_store(spec, on_loss),
            None => Err(StoreError::NoDisk),
        }
    }

    fn spawn(&self, _name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        match self.world.upgrade() {
            Some(world) => world.let_run(work),
            None => work(),
        }
        Ok(())
    }

    fn looks_after(&self, core: &Weak<Core>) -> bool {
        let world = self.world.upgrade().filter(|_| self.is_guest);
        if let Some(world) = world {
            world.welcome(self.place, core);
        }
        true
    }
}

/// What a place's wall clock shows.
pub fn wall(world: &World, place: usize) -> Timestamp {
    let now = i64::try_from(world.now()).unwrap_or(i64::MAX);
    let jumped = world.wall_offset(place);
    Timestamp::from_nanos(WALL_START.saturating_add(now).saturating_add(jumped))
}

struct SimTransport {
    world: Weak<World>,
    place: usize,
    number: usize,
    is_guest: bool,
}

impl Drop for SimTransport {
    /// The world closes the sockets of its own processes.
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade().filter(|_| self.is_guest) {
            let now = world.now();
            world.network().close(now, self.number);
        }
    }
}

impl Transport for SimTransport {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let Some(world) = self.world.upgrade() else {
            return Ok(());
        };
        let mut bytes = Vec::with_capacity(parts.iter().map(|p| p.len()).sum());
        for part in parts {
            bytes.extend_from_slice(part);
        }
        if world.is_foreign(self.place) {
            crate::service::disguise(&mut bytes);
        }
        let sent = world
            .network()
            .send(world.now(), self.number, bytes.into(), to);
        match sent {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<Received> {
        let world = self.world.upgrade()?;
        let (bytes, from) = world.network().take(self.number)?;
        let into = buffer.get_mut(..bytes.len())?;
        into.copy_from_slice(&bytes);
        Some(Received {
            len: bytes.len(),
            from,
        })
    }

    fn look(&self) {}

    fn sleep(&self, _now: Instant, until: Instant) {
        if let Some(world) = self.world.upgrade() {
            if self.is_guest {
                world.places()[self.place].blocked = true;
            }
            world.wait_for_mail(self.number, until.as_nanos());
            if self.is_guest {
                world.places()[self.place].blocked = false;
            }
        }
    }

    fn rest(&self, queue: &Arc<ReadyQueue>, until: Instant) -> bool {
        if let Some(world) = self.world.upgrade() {
            world.wait(&Wake::Queue(queue.clone()), until.as_nanos());
        }
        true
    }

    fn wake(&self) {
        if let Some(world) = self.world.upgrade() {
            world.network().sockets[self.number].woken = true;
        }
    }

    fn shutdown_requested(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
