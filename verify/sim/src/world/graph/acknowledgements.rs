//! I23, true acknowledgements: a writer never believes that a reader has what the
//! reader lacks, whatever is acknowledged in the reader's name.
//!
//! An acknowledgement only grows and is sent after the samples came. So the writer's
//! knowledge is never ahead of the reader's own, at any instant. The check follows each
//! single claim of [`super::forgery`], before the samples in flight arrive.

use super::forgery::flows;
use super::world::GraphWorld;

impl GraphWorld {
    /// Checks the reliable flows between two processes.
    pub fn check_acknowledgements(&self, from: usize, to: usize) {
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for (writer, reader) in flows(&model, from, to) {
            let guid = writer.endpoint.guid();
            let mut readers = model.living_readers();
            let record = readers.find(|(_, r)| r.endpoint.data.guid == reader);
            let Some((r, record)) = record else { continue };
            let believed = writer.endpoint.first_unacknowledged(reader);
            let Some((believed, missing)) = believed.zip(record.endpoint.first_missing(guid))
            else {
                continue;
            };
            if believed > missing {
                wrong.push(format!(
                    "I23 {guid} believes that r{r} has all below {}, and it lacks {}",
                    believed.0, missing.0
                ));
            }
        }
        drop(model);
        self.sim.report(wrong);
    }
}
