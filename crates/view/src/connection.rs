//! Connection: one thread that serves a request, or a viewer until it leaves.
//!
//! The socket of a viewer does not block. The thread sleeps in one poll of the socket and of
//! the outbox, so that a viewer that reads slowly blocks nobody else.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use crate::http::{self, Refusal, Request, WebSocketRequest};
use crate::incoming::Session;
use crate::options::{Allowed, MESSAGE_BYTES_MAX, READ_ONLY_MESSAGE_BYTES_MAX};
use crate::outbox::Outgoing;
use crate::page;
use crate::parameter_updates::next_message;
use crate::protocol::{SUBPROTOCOLS, data_frame};
use crate::server::Server;

/// Bytes that are handed to the socket at once. What is in the kernel's buffer delays what
/// comes later.
const BATCH_BYTES: usize = 64 << 10;
/// Messages of a viewer that are handled before its data are sent.
const MESSAGES_PER_TURN: usize = 32;
/// Time between two pings. A viewer that has sent nothing, or taken nothing, for three of
/// them is gone.
const PING_PERIOD: Duration = Duration::from_secs(10);
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Serves a connection until it ends.
pub fn serve(server: &Arc<Server>, mut stream: TcpStream) {
    let request = http::read_request(&mut stream, || server.is_stopped());
    let answered = match request {
        Ok(None) => return,
        Ok(Some(request)) => answer(server, &mut stream, request),
        Err(refusal) => Err(refusal),
    };
    let Err(refusal) = answered else {
        return;
    };
    tracing::debug!("refused a request: {}: {}", refusal.status, refusal.reason);
    // The other side may have gone.
    let _ = http::send_refusal(&mut stream, &refusal);
}

fn answer(server: &Arc<Server>, stream: &mut TcpStream, request: Request) -> Result<(), Refusal> {
    if let Some(websocket) = &request.websocket {
        let protocol = check_viewer(server, &request, websocket)?;
        if http::send_upgrade(stream, &websocket.key, protocol).is_ok() {
            let ended = serve_viewer(server, stream, request.rest);
            tracing::debug!("a viewer has left: {ended}");
        }
        return Ok(());
    }
    let missing = || Refusal::new("404 Not Found", format!("{} is not served", request.path));
    let file = page::find(&request.path).ok_or_else(missing)?;
    // The other side may have gone.
    let _ = http::send_file(stream, file, request.is_head);
    Ok(())
}

/// Checks whether a viewer may connect; returns the subprotocol.
fn check_viewer(
    server: &Server,
    request: &Request,
    websocket: &WebSocketRequest,
) -> Result<&'static str, Refusal> {
    if request.path != "/" {
        let reason = format!("no WebSocket is served at {}; use /", request.path);
        return Err(Refusal::new("404 Not Found", reason));
    }
    if let Some(origin) = &request.origin {
        let place = ["http://", "https://"]
            .iter()
            .find_map(|scheme| origin.strip_prefix(scheme));
        let is_own = !request.host.is_empty() && place == Some(&request.host);
        if !is_own && !server.options.origins.contains(origin) {
            let reason = format!("pages of {origin} may not connect; allow them with --origin");
            return Err(Refusal::new("403 Forbidden", reason));
        }
    }
    let token = http::parameter(&request.query, "token");
    if !token.is_some_and(|token| server.token.is(token)) {
        let reason = "the token is missing or wrong; use the URL that pteros view printed";
        return Err(Refusal::new("401 Unauthorized", reason));
    }
    let offered = websocket.protocols.iter();
    let mut known = offered.filter_map(|one| SUBPROTOCOLS.into_iter().find(|known| known == one));
    known.next().ok_or_else(|| {
        let reason = format!("offer the subprotocol {}", SUBPROTOCOLS.join(" or "));
        Refusal::new("400 Bad Request", reason)
    })
}

fn config(allowed: Allowed) -> WebSocketConfig {
    let bytes = match allowed {
        Allowed {
            publish: false,
            services: false,
            ..
        } => READ_ONLY_MESSAGE_BYTES_MAX,
        _ => MESSAGE_BYTES_MAX,
    };
    WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        .max_message_size(Some(bytes))
        .max_frame_size(Some(bytes))
}

/// Why a viewer is no longer served.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("it closed the connection")]
    Closed,
    #[error("{0}")]
    Failed(Error),
    #[error("{0}")]
    System(io::Error),
    #[error("it was silent for {} s", SILENCE_MAX.as_secs())]
    Silent,
    #[error("it let too many control messages wait")]
    TooSlow,
    #[error("the server ends")]
    ServerStopped,
}

/// Serves a viewer; returns why no longer.
fn serve_viewer(server: &Arc<Server>, stream: &TcpStream, rest: Vec<u8>) -> Ended {
    let opened = stream
        .set_nonblocking(true)
        .and_then(|()| Session::open(server));
    let session = match opened {
        Ok(session) => session,
        Err(error) => return Ended::System(error),
    };
    let config = Some(config(server.options.allowed));
    let socket = WebSocket::from_partially_read(stream, rest, Role::Server, config);
    let mut viewer = Viewer {
        socket,
        session,
        is_flushed: true,
        heard_at: Instant::now(),
        flushed_at: Instant::now(),
        next_ping: Instant::now() + PING_PERIOD,
    };
    loop {
        if let Err(ended) = viewer.turn(server) {
            // The other side may have gone.
            let _ = viewer.socket.close(None);
            let _ = viewer.socket.flush();
            return ended;
        }
    }
}

struct Viewer<'s> {
    socket: WebSocket<&'s TcpStream>,
    session: Session,
    /// Whether the kernel has taken everything.
    is_flushed: bool,
    heard_at: Instant,
    flushed_at: Instant,
    next_ping: Instant,
}

impl Viewer<'_> {
    /// Reads, writes and waits once.
    fn turn(&mut self, server: &Server) -> Result<(), Ended> {
        let outbox = &self.session.client().outbox;
        outbox.drain();
        if server.is_stopped() {
            return Err(Ended::ServerStopped);
        }
        if outbox.is_cut() {
            return Err(Ended::TooSlow);
        }
        let is_all_read = self.read()?;
        self.session.tick();
        self.keep_alive()?;
        self.write()?;
        if is_all_read {
            self.wait()?;
        }
        Ok(())
    }

    /// Handles what the viewer sent; false if there may be more.
    fn read(&mut self) -> Result<bool, Ended> {
        for _ in 0..MESSAGES_PER_TURN {
            let message = match self.socket.read() {
                Ok(message) => message,
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(true);
                }
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => return Err(Ended::Closed),
                Err(error) => return Err(Ended::Failed(error)),
            };
            self.heard_at = Instant::now();
            match message {
                Message::Text(text) => self.session.handle_text(&text),
                Message::Binary(frame) => self.session.handle_frame(&frame),
                // tungstenite answers pings; the next turn flushes the answer.
                Message::Ping(_) => self.is_flushed = false,
                Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
            }
        }
        Ok(false)
    }

    /// Hands messages to the socket until it is full or nothing waits.
    fn write(&mut self) -> Result<(), Ended> {
        while self.flush()? {
            let mut bytes = 0;
            // One at a time, so that updates and the rest do not wait for each other.
            let updates = next_message(&self.session.client().wanted_parameters);
            if let Some(message) = updates {
                bytes += message.len();
                self.is_flushed = false;
                taken(self.socket.write(message))?;
            }
            while bytes < BATCH_BYTES
                && let Some(next) = self.session.client().outbox.next()
            {
                let message = match next {
                    Outgoing::Control(message) => message,
                    Outgoing::Data {
                        subscription,
                        log_time,
                        payload,
                    } => data_frame(subscription, log_time, &payload),
                };
                bytes += message.len();
                self.is_flushed = false;
                taken(self.socket.write(message))?;
            }
            if bytes == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the kernel has taken everything.
    fn flush(&mut self) -> Result<bool, Ended> {
        if !self.is_flushed {
            self.is_flushed = taken(self.socket.flush())?;
        }
        if self.is_flushed {
            self.flushed_at = Instant::now();
        }
        Ok(self.is_flushed)
    }

    fn keep_alive(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        let is_silent = |since: Instant| now.saturating_duration_since(since) > SILENCE_MAX;
        // Pongs wait behind data on a slow path: one that takes data is there.
        if is_silent(self.heard_at) && is_silent(self.flushed_at) {
            return Err(Ended::Silent);
        }
        if now >= self.next_ping {
            if is_silent(self.heard_at) && self.is_flushed {
                return Err(Ended::Silent);
            }
            self.next_ping = now + PING_PERIOD;
            if self.is_flushed {
                self.is_flushed = false;
                taken(self.socket.write(Message::Ping(Default::default())))?;
            }
        }
        Ok(())
    }

    /// Sleeps until the socket or the outbox is ready, or a deadline has come.
    fn wait(&self) -> Result<(), Ended> {
        let wanted = if self.is_flushed {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        let mut ready = [
            PollFd::new(self.socket.get_ref(), wanted),
            PollFd::new(self.session.client().outbox.waker(), PollFlags::IN),
        ];
        let until = self
            .session
            .deadline()
            .map_or(self.next_ping, |at| at.min(self.next_ping));
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        match poll(&mut ready, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Ended::System(error.into())),
        }
    }
}

/// Whether the kernel took everything. What it did not take waits in tungstenite's buffer.
fn taken(result: Result<(), Error>) -> Result<bool, Ended> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(Error::ConnectionClosed | Error::AlreadyClosed) => Err(Ended::Closed),
        Err(error) => Err(Ended::Failed(error)),
    }
}
