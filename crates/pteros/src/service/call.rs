//! Response future: one pending call of a service client.
//!
//! [`ResponseFuture`] completes with the response, or with a [`CallError`]. It can
//! be awaited, polled or waited for with a deadline. Service correlation (request
//! id) is the runtime's.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pteros_runtime::error::PublishError;
use pteros_runtime::service::CallId;
use thiserror::Error;

use super::client::ClientCore;
use crate::error::CreateError;
use crate::sample::Sample;

/// Why a service call has no response.
#[derive(Error)]
pub enum CallError {
    /// No server was matched in time.
    #[error(
        "service \"{service}\": no server of type {service_type} is available{}; start one, or compare names and types with `pteros service list -t`",
        after(*.waited_ms)
    )]
    NoServer {
        /// The service's name.
        service: String,
        /// The type that client and server must share, `package/srv/Name`.
        service_type: String,
        /// How long the call waited for a server.
        waited_ms: u64,
    },
    /// All servers that received the request left before they responded. Whether
    /// they executed it is unknown.
    #[error(
        "service \"{service}\": its server left before it responded; call again when it is back"
    )]
    ServerLost {
        /// The service's name.
        service: String,
    },
    /// The response did not arrive in time.
    #[error(
        "service \"{service}\": no response within {waited_ms} ms; allow more time, or check that the server's node spins"
    )]
    TimedOut {
        /// The service's name.
        service: String,
        /// How long the call waited.
        waited_ms: u64,
    },
    /// The response did not arrive in time, and may never: the stack of the server may not
    /// understand this client.
    #[error("service \"{service}\": no response within {waited_ms} ms: {reason}")]
    Unanswered {
        /// The service's name.
        service: String,
        /// How long the call waited.
        waited_ms: u64,
        /// Why the server may never respond, and what to do.
        reason: String,
    },
    /// The client has the maximum number of pending requests.
    #[error(
        "service \"{service}\": {max} requests are pending, which is the limit; drop some of them, or call less often"
    )]
    TooManyCalls {
        /// The service's name.
        service: String,
        /// The limit.
        max: usize,
    },
    /// The response does not decode as the service's type.
    #[error(
        "service \"{service}\": the response does not decode as {service_type}: {reason}; compare the server's interface with ours"
    )]
    Undecodable {
        /// The service's name.
        service: String,
        /// The type as the client knows it, `package/srv/Name`.
        service_type: String,
        /// The problem.
        reason: String,
    },
    /// The request could not be published.
    #[error("service \"{service}\": {source}")]
    Publish {
        /// The service's name.
        service: String,
        /// Why.
        #[source]
        source: PublishError,
    },
    /// The node of the server refused, or its response makes no sense.
    #[error("node \"{node}\" {reason}")]
    Refused {
        /// Fully qualified name of the node.
        node: String,
        /// The refusal or the senseless response, as the rest of a sentence.
        reason: String,
    },
    /// A client could not be created for the call.
    #[error(transparent)]
    Create(Box<CreateError>),
    /// The context has been shut down.
    #[error("service \"{service}\": the context is shut down")]
    ShutDown {
        /// The service's name.
        service: String,
    },
}

impl CallError {
    /// Whether no response arrived in time, for whatever reason.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Unanswered { .. })
    }
}

pteros_msg::debug_as_display!(CallError);

impl From<CreateError> for CallError {
    fn from(error: CreateError) -> Self {
        Self::Create(Box::new(error))
    }
}

fn after(waited_ms: u64) -> String {
    match waited_ms {
        0 => String::new(),
        waited => format!(" after {waited} ms"),
    }
}

/// A pending service call: a future, or a value to [wait](ResponseFuture::wait) on.
///
/// Dropping it cancels the wait; the server responds all the same. As a future it
/// makes progress while the client's node is spun. It completes with an error when
/// all servers that received the request have left. It has no time limit of its
/// own: the caller that awaits it sets one.
pub struct ResponseFuture<R: 'static> {
    pub(super) client: Arc<ClientCore<R>>,
    pub(super) id: CallId,
}

impl<R: 'static> ResponseFuture<R> {
    /// Waits for the response. Blocks, at most `timeout` or until the context shuts
    /// down.
    ///
    /// Drives the network itself, so no executor is needed.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn wait(self, timeout: Duration) -> Result<Sample<R>, CallError> {
        self.client.wait(self.id, timeout)
    }

    /// The response, if it has arrived. Never blocks and reads no socket.
    pub fn take(&mut self) -> Option<Result<Sample<R>, CallError>> {
        self.client.drain();
        self.client.take_response(self.id)
    }
}

impl<R: 'static> Future for ResponseFuture<R> {
    type Output = Result<Sample<R>, CallError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.client.poll_response(self.id, context.waker())
    }
}

impl<R: 'static> Drop for ResponseFuture<R> {
    fn drop(&mut self) {
        self.client.cancel(self.id);
    }
}

impl<R: 'static> fmt::Debug for ResponseFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("service", &self.client.service)
            .field("id", &self.id)
            .finish()
    }
}
