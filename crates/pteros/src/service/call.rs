//! One call of a client, waited for as a future or by blocking.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pteros_rmw::error::PublishError;
use pteros_rmw::service::CallId;
use thiserror::Error;

use super::ClientCore;
use crate::sample::Sample;

/// Why a call has no answer.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// Nobody serves it.
    #[error(
        "service \"{service}\": no server of type {service_type} is there{}; start one, or compare names and types with `pteros service list -t`",
        after(*.waited_ms)
    )]
    NoServer {
        /// The service.
        service: String,
        /// Its type.
        service_type: String,
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// The servers that were asked are gone. Whether they did what they were
    /// asked for is not known.
    #[error(
        "service \"{service}\": its server went away before it answered; call again once it is back"
    )]
    ServerGone {
        /// The service.
        service: String,
    },
    /// The answer did not come in time.
    #[error(
        "service \"{service}\": no answer within {waited_ms} ms; allow more time, or look whether the server's node spins"
    )]
    TimedOut {
        /// The service.
        service: String,
        /// How long.
        waited_ms: u64,
    },
    /// Too many calls of this client have no answer yet.
    #[error(
        "service \"{service}\": {max} calls wait for an answer, the most that may; drop some of them, or call less often"
    )]
    TooManyCalls {
        /// The service.
        service: String,
        /// The limit.
        max: usize,
    },
    /// The answer is not of the type.
    #[error(
        "service \"{service}\": the answer is not of the type {service_type}: {reason}; compare the server's interface with ours"
    )]
    Undecodable {
        /// The service.
        service: String,
        /// Its type.
        service_type: String,
        /// What is wrong.
        reason: String,
    },
    /// The request could not be sent.
    #[error("service \"{service}\": {source}")]
    Publish {
        /// The service.
        service: String,
        /// Why.
        #[source]
        source: PublishError,
    },
    /// The context has been shut down.
    #[error("service \"{service}\": the context is shut down")]
    ShutDown {
        /// The service.
        service: String,
    },
}

fn after(waited_ms: u64) -> String {
    match waited_ms {
        0 => String::new(),
        waited => format!(" after {waited} ms"),
    }
}

/// A call whose answer is still to come: a future for whoever has an executor of
/// futures, [`Call::wait`] for whoever has none. Dropped, it waits no longer; the
/// server answers all the same.
///
/// As a future it makes progress while the client's node is spun. It ends with
/// an error when the servers that were asked are gone, and never by itself otherwise: whoever
/// awaits it sets the time limit.
pub struct Call<R: 'static> {
    pub(super) client: Arc<ClientCore<R>>,
    pub(super) id: CallId,
}

impl<R: 'static> Call<R> {
    /// Waits for the answer. Blocks, at most `timeout` or until the context shuts
    /// down; drives the network itself, so no executor is needed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn wait(self, timeout: Duration) -> Result<Sample<R>, CallError> {
        self.client.wait(self.id, timeout)
    }

    /// The answer, if it is there. Never blocks and looks at no socket.
    pub fn take(&mut self) -> Option<Result<Sample<R>, CallError>> {
        self.client.drain();
        self.client.take_answer(self.id)
    }
}

impl<R: 'static> Future for Call<R> {
    type Output = Result<Sample<R>, CallError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.client.poll_answer(self.id, context.waker())
    }
}

impl<R: 'static> Drop for Call<R> {
    fn drop(&mut self) {
        self.client.forget(self.id);
    }
}

impl<R: 'static> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("service", &self.client.service)
            .field("id", &self.id)
            .finish()
    }
}
