//! Instances of keyed topics: ends, registrations, and disposal of all instances of a
//! removed writer.

use pteros_dcps::instance::{InstanceEnd, InstanceIdentity};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::time::{Duration, Timestamp};

use crate::core::Core;
use crate::endpoints::instance_end::{InstanceEndMessage, no_key};
use crate::endpoints::writer::WriterEndpoint;
use crate::error::PublishError;

impl WriterEndpoint {
    /// Registers an instance without publishing anything. Never blocks.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::TooManyInstances`].
    pub fn register_instance(&self, identity: InstanceIdentity) -> Result<(), PublishError> {
        if !self.is_keyed {
            return Err(no_key(self));
        }
        let kind = ChangeKind::Alive;
        let keyed = self.register(&mut InstanceEndMessage { kind, identity })?;
        if let Some(instances) = &mut self.state.lock().instances {
            instances.keep(&keyed);
        }
        Ok(())
    }
}

impl Core {
    /// Publishes the end of an instance. Blocks as [`Core::publish`] does.
    ///
    /// # Errors
    /// [`PublishError::NoKey`], [`PublishError::UnknownInstance`], and those of
    /// [`Core::publish`].
    pub fn end_instance(
        &self,
        writer: &WriterEndpoint,
        ending: InstanceEnd,
        identity: InstanceIdentity,
        source: Timestamp,
    ) -> Result<(), PublishError> {
        if !writer.is_keyed {
            return Err(no_key(writer));
        }
        let kind = match (ending, writer.autodisposes()) {
            (InstanceEnd::Dispose, _) => ChangeKind::Disposed,
            (InstanceEnd::Unregister, true) => ChangeKind::DisposedUnregistered,
            (InstanceEnd::Unregister, false) => ChangeKind::Unregistered,
        };
        self.publish(writer, &mut InstanceEndMessage { kind, identity }, source)
            .map(drop)
    }

    /// Disposes of all instances of a publisher that is being removed, if its QoS
    /// demands it.
    ///
    /// Does not wait: without space, readers see instances without writers. Instances
    /// with stored samples outlive the publisher and are not disposed of. Returns whether
    /// any was disposed of.
    pub(crate) fn dispose_all(&self, writer: &WriterEndpoint) -> bool {
        if !writer.is_keyed || !writer.autodisposes() || writer.store.is_some() {
            return false;
        }
        let all = match &writer.state.lock().instances {
            Some(instances) => instances.all(),
            None => return false,
        };
        let mut disposed = false;
        let source = self.platform.wall_clock();
        let kind = ChangeKind::DisposedUnregistered;
        for identity in all {
            let mut end = InstanceEndMessage { kind, identity };
            let sent = self.publish_with_timeout(writer, &mut end, source, Duration::ZERO);
            if sent.is_err() {
                break;
            }
            disposed = true;
        }
        disposed
    }
}
