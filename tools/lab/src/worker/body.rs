//! Measured message types: a byte sequence, or a string as in M16, with the
//! position of number and timestamp, and loaned messages.

use super::host::Traffic;
use super::{Bytes, Matched, Text, error_text};
use pteros::prelude::*;
use pteros::subscription::{MessageView, in_place};

/// A message type of variable size.
pub trait Body: Message + Default + Clone {
    /// A message with a payload of `size` bytes.
    fn of_size(size: usize) -> Self;

    /// The payload.
    fn bytes(&self) -> &[u8];

    /// Writes number and timestamp of the next message.
    fn fill(&mut self, traffic: &Traffic);

    /// Publishes a loaned message.
    fn publish_loaned(&mut self, _: &Publisher<Self>, _: &Traffic) -> Result<(), String> {
        Err("unsupported: a string has no loaned messages".into())
    }

    /// Subscribes with access to loaned messages.
    fn subscribe_loaned(
        _: &Node,
        _: &str,
        _: QosProfile,
        _: impl FnMut(&[u8], &'static str) + Send + 'static,
    ) -> Result<Matched, String> {
        Err("unsupported: a string has no loaned messages".into())
    }
}

impl Body for Bytes {
    fn of_size(size: usize) -> Self {
        Self {
            data: (0..size).map(|i| (i * 31) as u8).collect(),
            ..Self::default()
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.data
    }

    fn fill(&mut self, traffic: &Traffic) {
        traffic.fill(&mut self.data);
    }

    fn publish_loaned(
        &mut self,
        publisher: &Publisher<Self>,
        traffic: &Traffic,
    ) -> Result<(), String> {
        let count = self.data.len();
        let loan = publisher.borrow_loaned_sequence(self, |m| &mut m.data, count);
        let published = loan.and_then(|mut loan| {
            traffic.fill(&mut loan);
            publisher.publish_loaned(loan)
        });
        published.map_err(error_text)
    }

    fn subscribe_loaned(
        node: &Node,
        topic: &str,
        qos: QosProfile,
        mut on_data: impl FnMut(&[u8], &'static str) + Send + 'static,
    ) -> Result<Matched, String> {
        let callback =
            move |m: MessageView<'_, Self>| on_data(&m.data, m.info().delivery_path.name());
        let views = node.create_subscription(topic.qos(qos), in_place(callback));
        let views = views.map_err(error_text)?;
        Ok(Box::new(move |count, timeout| {
            views.wait_for_matched(count, timeout)
        }))
    }
}

impl Body for Text {
    fn of_size(size: usize) -> Self {
        Self {
            data: "x".repeat(size),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.data.as_bytes()
    }

    fn fill(&mut self, traffic: &Traffic) {
        let (seq, stamp) = traffic.next();
        let end = self.data.len() - 16;
        for (at, word) in [(0, seq), (end, seq), (16, stamp)] {
            self.data
                .replace_range(at..at + 16, &format!("{word:016x}"));
        }
    }
}
