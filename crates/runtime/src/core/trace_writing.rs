//! Schedule of a context's trace file: the driver writes it shortly after new records.

use pteros_rtps::time::Instant;

use crate::core::driver::Driver;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::trace::file::WRITE_DELAY;

impl Driver {
    /// Schedules the next write if the trace has new records and none is scheduled.
    #[inline]
    pub(crate) fn schedule_trace_writing(&self, now: Instant) {
        if let Some(tracer) = &self.tracer
            && tracer.begin_write_delay()
        {
            let at = now.after(WRITE_DELAY);
            self.scheduler.schedule(TimeoutOwner::TraceFile, Some(at));
        }
    }

    /// Writes the file. Blocks for the disk, but not for its cache.
    pub(crate) fn write_trace_file(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.write_file();
        }
    }
}
