//! Publishing in a traced context.

use pteros_rtps::time::Timestamp;

use crate::core::Core;
use crate::endpoints::writer::WriterEndpoint;
use crate::error::PublishError;
use crate::graph::DISCOVERY_TOPIC;
use crate::outbound::OutboundMessage;
use crate::sample::DeliveryPath;
use crate::trace::current_context::{self, CallbackInput, PublishContext};
use crate::trace::tracing_decorators::TracingMessage;
use crate::trace::{TraceEvent, Tracer, entity_word};

impl Core {
    /// The tracer of this context, if it is traced.
    #[inline]
    pub fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_deref()
    }

    pub(crate) fn publish_traced(
        &self,
        tracer: &Tracer,
        writer: &WriterEndpoint,
        message: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<i64, PublishError> {
        let budget = writer.data.qos.max_blocking_time;
        if writer.data.topic == DISCOVERY_TOPIC {
            return self.publish_with_timeout(writer, message, source, budget);
        }
        let entered = tracer.now();
        let publish = PublishContext {
            began: current_context::take_publish_began().unwrap_or(entered),
            entered,
            serialized: None,
            bytes: 0,
            handed: None,
        };
        let outer = current_context::replace_publish(Some(publish));
        let mut message = TracingMessage {
            inner: message,
            tracer,
        };
        let published = self.publish_with_timeout(writer, &mut message, source, budget);
        let Some(publish) = current_context::replace_publish(outer) else {
            return published;
        };
        if let Ok(sequence) = &published {
            let (began, ended) = publish.serialized.unzip();
            let handed = publish.handed.unwrap_or_else(|| tracer.now());
            let times = [Some(publish.entered), began, ended, Some(handed)];
            let input = CallbackInput {
                writer: writer.guid(),
                sequence: *sequence,
                path: DeliveryPath::IntraProcess,
                bytes: publish.bytes,
            };
            tracer.write(
                TraceEvent::Published,
                publish.began,
                times,
                Some(input),
                entity_word(writer.guid().entity),
                0,
            );
            self.driver.schedule_trace_writing(publish.entered);
        }
        published
    }
}
