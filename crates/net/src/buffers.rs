//! Socket buffers (send buffer, receive buffer): the sizes that the kernel granted,
//! and how to raise them.
//!
//! Linux clamps SO_RCVBUF and SO_SNDBUF silently to `net.core.rmem_max` and
//! `net.core.wmem_max` (often 208 kB), which loses fragments of large samples.

use std::os::fd::AsFd;

use nix::sys::socket::{SetSockOpt, getsockopt, setsockopt, sockopt};

/// Outcome of a buffer request, both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferGrant {
    /// Receive side (SO_RCVBUF).
    pub receive: GrantedSize,
    /// Send side (SO_SNDBUF).
    pub send: GrantedSize,
}

/// Requested and granted size, in the bytes that setsockopt takes.
///
/// The kernel doubles the value for its own bookkeeping and reports the double;
/// here it is halved again so that both numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedSize {
    /// Bytes requested.
    pub asked_bytes: usize,
    /// Bytes in force; can exceed `asked_bytes`, because a larger buffer is kept.
    pub got_bytes: usize,
}

impl GrantedSize {
    /// Whether the kernel granted less than requested.
    pub fn is_clamped(&self) -> bool {
        self.got_bytes < self.asked_bytes
    }
}

impl BufferGrant {
    /// One line for the operator when a limit clamped the size, else `None`.
    ///
    /// Names each sysctl and the value that would satisfy the request.
    pub fn advice(&self) -> Option<String> {
        let lines: Vec<String> = [
            ("receive", "net.core.rmem_max", self.receive),
            ("send", "net.core.wmem_max", self.send),
        ]
        .into_iter()
        .filter(|(_, _, grant)| grant.is_clamped())
        .map(|(side, key, grant)| {
            format!(
                "socket {side} buffer is {} bytes, asked for {}; raise it with: sysctl -w {key}={}",
                grant.got_bytes, grant.asked_bytes, grant.asked_bytes
            )
        })
        .collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

pub(crate) fn request(socket: &impl AsFd, receive_bytes: usize, send_bytes: usize) -> BufferGrant {
    let receive_now = || getsockopt(socket, sockopt::RcvBuf).unwrap_or(0) / 2;
    let send_now = || getsockopt(socket, sockopt::SndBuf).unwrap_or(0) / 2;
    if receive_now() < receive_bytes {
        raise(socket, sockopt::RcvBufForce, sockopt::RcvBuf, receive_bytes);
    }
    if send_now() < send_bytes {
        raise(socket, sockopt::SndBufForce, sockopt::SndBuf, send_bytes);
    }
    BufferGrant {
        receive: GrantedSize {
            asked_bytes: receive_bytes,
            got_bytes: receive_now(),
        },
        send: GrantedSize {
            asked_bytes: send_bytes,
            got_bytes: send_now(),
        },
    }
}

/// The forced option needs CAP_NET_ADMIN; the plain one clamps without error. The
/// caller reads the effective size, so neither error matters here.
fn raise(
    socket: &impl AsFd,
    forced: impl SetSockOpt<Val = usize>,
    plain: impl SetSockOpt<Val = usize>,
    bytes: usize,
) {
    let bytes = bytes.min(i32::MAX as usize / 2);
    if setsockopt(socket, forced, &bytes).is_err() {
        let _ = setsockopt(socket, plain, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_sysctl_and_the_value_only_for_the_clamped_side() {
        let enough = GrantedSize {
            asked_bytes: 1000,
            got_bytes: 2000,
        };
        let clamped = GrantedSize {
            asked_bytes: 4_194_304,
            got_bytes: 212_992,
        };
        let mut grant = BufferGrant {
            receive: clamped,
            send: enough,
        };
        let advice = grant.advice().expect("clamped");
        assert!(
            advice.contains("sysctl -w net.core.rmem_max=4194304"),
            "{advice}"
        );
        assert!(!advice.contains("wmem_max"), "{advice}");
        grant.receive = enough;
        assert_eq!(grant.advice(), None);
    }
}
