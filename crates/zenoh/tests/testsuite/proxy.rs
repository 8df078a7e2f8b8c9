//! A TCP proxy whose links can be frozen: it takes no bytes from the client then.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::spawn;

/// See the module documentation. Its threads end with their connections.
pub struct Proxy {
    port: u16,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_frozen: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let frozen = self.is_frozen.lock().unwrap();
        drop(self.changed.wait_while(frozen, |frozen| *frozen).unwrap());
    }
}

impl Proxy {
    /// A proxy of a port of this host.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Arc::<Gate>::default();
        let own = gate.clone();
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else {
                    continue;
                };
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let gate = own.clone();
                spawn(move || copy(from, to, || gate.pass()));
                spawn(move || copy(server, client, || ()));
            }
        });
        Self { port, gate }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Freezes every link, or lets it go on.
    pub fn freeze(&self, is_frozen: bool) {
        *self.gate.is_frozen.lock().unwrap() = is_frozen;
        self.gate.changed.notify_all();
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, pass: impl Fn()) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        pass();
        match from.read(&mut buffer) {
            Ok(count @ 1..) if to.write_all(&buffer[..count]).is_ok() => {}
            _ => break,
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}
