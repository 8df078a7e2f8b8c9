//! The messages that are measured: a sequence of bytes, or a text as in M16. Each
//! says how its number and stamp are written and how it is lent.

use super::host::Traffic;
use super::{Bytes, Matched, Text, said};
use pteros::View;
use pteros::prelude::*;

/// A message whose size is what is measured.
pub trait Body: Message + Default + Clone {
    /// One with a payload of so many bytes.
    fn of_size(size: usize) -> Self;

    /// The payload.
    fn bytes(&self) -> &[u8];

    /// Writes number and stamp of the next message.
    fn fill(&mut self, traffic: &Traffic);

    /// Publishes it written into memory that the stack lends.
    fn publish_lent(&mut self, _: &Publisher<Self>, _: &Traffic) -> Result<(), String> {
        Err("unsupported: a text is not lent".into())
    }

    /// Hears such messages where they lie.
    fn hear_in_place(
        _: &Node,
        _: &str,
        _: QosProfile,
        _: impl FnMut(&[u8], &'static str) + Send + 'static,
    ) -> Result<Matched, String> {
        Err("unsupported: a text is not lent".into())
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

    fn publish_lent(
        &mut self,
        publisher: &Publisher<Self>,
        traffic: &Traffic,
    ) -> Result<(), String> {
        let count = self.data.len();
        let loan = publisher.loan_sequence(self, |m| &mut m.data, count);
        let published = loan.and_then(|mut loan| {
            traffic.fill(&mut loan);
            publisher.publish_loaned(loan)
        });
        published.map_err(said)
    }

    fn hear_in_place(
        node: &Node,
        topic: &str,
        qos: QosProfile,
        mut hear: impl FnMut(&[u8], &'static str) + Send + 'static,
    ) -> Result<Matched, String> {
        let callback = move |m: View<'_, Self>| hear(&m.data, m.info().path.name());
        let views = node.create_view_subscription(topic, qos, callback);
        let views = views.map_err(said)?;
        Ok(Box::new(move |count, patience| {
            views.wait_for_matched(count, patience)
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
