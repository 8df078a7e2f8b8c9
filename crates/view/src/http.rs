//! HTTP/1.1 of the port: reads one request of bounded size and time, and answers it. A
//! connection carries one request, or becomes a WebSocket (RFC 6455).
//!
//! Requests have no body: only GET and HEAD are served.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::page::PageFile;

/// Largest request line with all headers.
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEADERS_MAX: usize = 64;
/// Time for a whole request, against connections that send a byte now and then.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a part of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a waiting connection looks whether the server ends.
const STOP_CHECK_PERIOD: Duration = Duration::from_millis(100);
const SECURITY_HEADERS: &str = "Content-Security-Policy: default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n";

/// A request.
#[derive(Debug, Default)]
pub struct Request {
    pub is_head: bool,
    pub path: String,
    /// The text after `?`.
    pub query: String,
    pub host: String,
    pub origin: Option<String>,
    /// The subprotocols that a WebSocket offers, and its key.
    pub websocket: Option<WebSocketRequest>,
    /// What came behind the request.
    pub rest: Vec<u8>,
}

/// The headers of a WebSocket.
#[derive(Debug, Default)]
pub struct WebSocketRequest {
    pub key: String,
    pub protocols: Vec<String>,
}

/// An answer other than success: a status line's code and text, and a reason.
#[derive(Debug)]
pub struct Refusal {
    pub status: &'static str,
    pub reason: String,
}

impl Refusal {
    pub fn new(status: &'static str, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
        }
    }
}

/// Reads a request. `None` if the other side has gone, or is too slow.
///
/// # Errors
/// A request that is too large, malformed or of another method.
pub fn read_request(
    stream: &mut TcpStream,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<Request>, Refusal> {
    let end = Instant::now() + REQUEST_TIMEOUT;
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    if stream.set_read_timeout(Some(STOP_CHECK_PERIOD)).is_err()
        || stream.set_write_timeout(Some(WRITE_TIMEOUT)).is_err()
    {
        return Ok(None);
    }
    loop {
        match stream.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(count) => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(error) if is_timeout(&error) => {}
            Err(_) => return Ok(None),
        }
        if let Some(request) = parse(&bytes)? {
            return Ok(Some(request));
        }
        if bytes.len() > HEAD_BYTES_MAX {
            let reason = format!("the headers are larger than {HEAD_BYTES_MAX} bytes");
            return Err(Refusal::new("431 Request Header Fields Too Large", reason));
        }
        if is_stopped() || Instant::now() >= end {
            return Ok(None);
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Parses a request; `None` if it is not complete.
fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES_MAX => length,
        Ok(_) => return Ok(None),
        Err(error) => return Err(Refusal::new("400 Bad Request", error.to_string())),
    };
    let method = parsed.method.unwrap_or_default();
    if !["GET", "HEAD"].contains(&method) {
        let reason = format!("{method} is not served; use GET");
        return Err(Refusal::new("405 Method Not Allowed", reason));
    }
    let header = |name: &str| {
        let found = parsed
            .headers
            .iter()
            .find(|h| h.name.eq_ignore_ascii_case(name));
        found.and_then(|found| std::str::from_utf8(found.value).ok())
    };
    let has_word = |name: &str, word: &str| {
        let mut words = header(name).unwrap_or_default().split(',');
        words.any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    let is_websocket = has_word("connection", "upgrade") && has_word("upgrade", "websocket");
    let websocket = is_websocket.then(|| WebSocketRequest {
        key: header("sec-websocket-key")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        protocols: header("sec-websocket-protocol")
            .unwrap_or_default()
            .split(',')
            .map(|offered| offered.trim().to_owned())
            .collect(),
    });
    if let Some(websocket) = &websocket
        && (websocket.key.len() != 24 || header("sec-websocket-version") != Some("13"))
    {
        let reason = "a WebSocket needs Sec-WebSocket-Version 13 and a Sec-WebSocket-Key";
        return Err(Refusal::new("400 Bad Request", reason));
    }
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Some(Request {
        is_head: method == "HEAD",
        path: path.to_owned(),
        query: query.to_owned(),
        host: header("host").unwrap_or_default().trim().to_owned(),
        origin: header("origin").map(|origin| origin.trim().to_owned()),
        websocket,
        rest: bytes.get(length..).unwrap_or_default().to_vec(),
    }))
}

/// The value of a parameter in a query. Tokens have no characters that a URL escapes.
pub fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Sends a file of the page.
pub fn send_file(stream: &mut TcpStream, file: &PageFile, is_head: bool) -> io::Result<()> {
    let head = head("200 OK", file.content_type, file.content.len());
    stream.write_all(head.as_bytes())?;
    if !is_head {
        stream.write_all(file.content)?;
    }
    Ok(())
}

/// Sends a refusal with its reason as text.
pub fn send_refusal(stream: &mut TcpStream, refusal: &Refusal) -> io::Result<()> {
    let text = format!("{}\n", refusal.reason);
    let head = head(refusal.status, "text/plain; charset=utf-8", text.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

fn head(status: &str, content_type: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{SECURITY_HEADERS}Connection: close\r\n\r\n"
    )
}

/// Accepts a WebSocket.
pub fn send_upgrade(stream: &mut TcpStream, key: &str, protocol: &str) -> io::Result<()> {
    let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websocket_request_is_recognised() {
        let text = b"GET /?a=b&token=0f HTTP/1.1\r\nHost: h:1\r\nconnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: x, foxglove.sdk.v1\r\n\r\nrest";
        let request = parse(text).unwrap().unwrap();
        assert_eq!(request.path, "/");
        assert_eq!(parameter(&request.query, "token"), Some("0f"));
        assert_eq!(request.rest, b"rest");
        assert_eq!(
            request.websocket.unwrap().protocols,
            ["x", "foxglove.sdk.v1"]
        );
        assert!(parse(&text[..40]).unwrap().is_none());
    }

    #[test]
    fn malformed_requests_are_refused() {
        for text in [
            "\0\r\n\r\n",
            "GET / HTTP/1.1\r\n: x\r\n\r\n",
            "POST / HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        let no_key = "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert!(parse(no_key.as_bytes()).is_err());
    }
}
