//! The simulated platform: `Platform` and `DatagramSockets` over the virtual clock and the
//! simulated network.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_runtime::error::OpenError;
use pteros_runtime::platform::{
    DISCOVERY_GROUP, DatagramSockets, InterfaceChange, OpenedSockets, Platform, ReceivedDatagram,
    SocketPlan, UndrivenContext, multicast_port, unicast_port,
};
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::shm_transport::ShmTransport;
use pteros_runtime::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};
use pteros_seeded_bugs::take_steps;

use super::event_loop::EventLoop;
use super::shared_memory::SimSharedMemory;
use super::thread_scheduler::WakeCondition;
use crate::network::Socket;

/// Start of the wall clock: a day in 2026.
const WALL_START: i64 = 1_790_000_000_000_000_000;

/// The platform of one process.
pub struct SimEnv {
    /// The world of the process.
    pub world: Weak<EventLoop>,
    /// Index of the process.
    pub process: usize,
    /// Its host, the last byte of the address.
    pub host: u8,
    /// The unique part of its GUID prefix.
    pub unique: [u8; 10],
    /// Whether a caller opens the context. The world then attaches it as an
    /// external context.
    pub is_external: bool,
    /// Platform of its durable stores. Without one it has none.
    pub disk: Option<Arc<dyn Platform>>,
    /// Size of its receive buffer.
    pub buffer_bytes: usize,
}

impl SimEnv {
    fn connections(
        &self,
        plan: &SocketPlan,
        number: usize,
    ) -> Result<Arc<dyn ShmTransport>, String> {
        if !plan.shared_memory.enabled {
            return Err("switched off here".into());
        }
        Ok(Arc::new(SimSharedMemory {
            world: self.world.clone(),
            number,
            host: self.host,
        }))
    }
}

impl Platform for SimEnv {
    fn now(&self) -> Instant {
        let world = self.world.upgrade();
        world.map_or(Instant::FAR_FUTURE, |w| Instant::from_nanos(w.now()))
    }

    fn wall_clock(&self) -> Timestamp {
        let world = self.world.upgrade();
        world.map_or(Timestamp::default(), |world| wall(&world, self.process))
    }

    fn guid_seed(&self) -> [u8; 10] {
        self.unique
    }

    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
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
        let mut socket = Socket::new(self.process, address, self.buffer_bytes, plan.multicast);
        socket.shared.name = plan.prefix.0;
        socket.shared.host = self.host;
        socket.group_port = multicast_port(plan.domain_id);
        let number = network.open(socket);
        let links = network.topology.is_multihomed(self.host).then(|| {
            network.follow_interfaces(number);
            // Changes since then, and links that are down.
            network.sockets[number].interfaces.changed = true;
            network.sockets[number].interfaces.told().clone()
        });
        drop(network);
        let group = Locator::udp_v4(DISCOVERY_GROUP.octets(), multicast_port(plan.domain_id));
        world.record_socket(self.process, number);
        Ok(OpenedSockets {
            sockets: Box::new(SimSockets {
                world: Arc::downgrade(&world),
                process: self.process,
                number,
                is_external: self.is_external,
            }),
            unicast: links.as_ref().map_or(vec![address], |l| l.unicast.clone()),
            own_addresses: match &links {
                Some(links) => links.addresses.clone(),
                None => vec![OwnAddress {
                    ip: ip.into(),
                    prefix_length: 24,
                }],
            },
            multicast: match &links {
                Some(links) => links.multicast.clone(),
                None => plan.multicast.then_some(group).into_iter().collect(),
            },
            advice: Vec::new(),
            shm: self.connections(plan, number),
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
            Some(world) => world.spawn_detached(work),
            None => work(),
        }
        Ok(())
    }

    fn drives_undriven(&self, context: &Weak<dyn UndrivenContext>) -> bool {
        let world = self.world.upgrade().filter(|_| self.is_external);
        if let Some(world) = world {
            world.attach_external_context(self.process, context);
        }
        true
    }
}

/// The wall clock of a process.
pub fn wall(world: &EventLoop, process: usize) -> Timestamp {
    let now = i64::try_from(world.now()).unwrap_or(i64::MAX);
    let jumped = world.wall_offset(process);
    Timestamp::from_nanos(WALL_START.saturating_add(now).saturating_add(jumped))
}

struct SimSockets {
    world: Weak<EventLoop>,
    process: usize,
    number: usize,
    is_external: bool,
}

impl Drop for SimSockets {
    /// The world closes the sockets of its own processes itself.
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade().filter(|_| self.is_external) {
            let now = world.now();
            world.network().close(now, self.number);
        }
    }
}

impl DatagramSockets for SimSockets {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let Some(world) = self.world.upgrade() else {
            return Ok(());
        };
        let mut bytes = Vec::with_capacity(parts.iter().map(|p| p.len()).sum());
        for part in parts {
            bytes.extend_from_slice(part);
        }
        let disguise = world.processes()[self.process].disguise;
        if let Some(disguise) = disguise {
            disguise(&mut bytes);
        }
        let sent = world
            .network()
            .send(world.now(), self.number, bytes.into(), to);
        if sent {
            Ok(())
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let world = self.world.upgrade()?;
        let (bytes, from) = {
            let mut network = world.network();
            if network.processing_cost.is_some() {
                network.charge_steps(world.now(), self.number, take_steps());
            }
            network.take(self.number)?
        };
        let into = buffer.get_mut(..bytes.len())?;
        into.copy_from_slice(&bytes);
        Some(ReceivedDatagram {
            len: bytes.len(),
            from,
        })
    }

    fn check_readable(&self) {}

    fn sleep(&self, _now: Instant, until: Instant) {
        if let Some(world) = self.world.upgrade() {
            let sleep = || world.wait(&WakeCondition::Datagram(self.number), until.as_nanos());
            if self.is_external {
                world.blocking(self.process, sleep);
            } else {
                sleep();
            }
            world.network().sockets[self.number].woken = false;
        }
    }

    fn sleep_queue(&self, queue: &Arc<ReadyQueue>, until: Instant) -> bool {
        if let Some(world) = self.world.upgrade() {
            world.wait(&WakeCondition::Queue(queue.clone()), until.as_nanos());
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

    fn interfaces_changed(&self) -> bool {
        let Some(world) = self.world.upgrade() else {
            return false;
        };
        let mut network = world.network();
        std::mem::take(&mut network.sockets[self.number].interfaces.changed)
    }

    fn follow_interfaces(&self) -> Option<InterfaceChange> {
        let world = self.world.upgrade()?;
        world.network().follow_interfaces(self.number)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
