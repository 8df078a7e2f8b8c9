//! The transform buffer of the package `tf2_py`: that of the Rust library.
//!
//! Values cross as numbers, since message classes belong to Python. A failure crosses
//! as the parts from which `tf2_py` makes its exceptions.

use std::time::Duration;

use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::tf::{FrameEdge, FrameInfo, Isometry, LookupError, TransformBufferOptions};
use pyo3::prelude::*;

/// Translation (x, y, z) and rotation (x, y, z, w).
type Rigid = ((f64, f64, f64), (f64, f64, f64, f64));

/// A frame with a parent: name, parent, whether it is static, its oldest and newest
/// time, number of transforms, broadcaster.
type Row = (String, String, bool, i64, i64, usize, String);

/// A transform buffer.
#[pyclass(frozen, module = "pteros._native")]
pub(crate) struct TransformBuffer {
    buffer: pteros::tf::TransformBuffer,
}

#[pymethods]
impl TransformBuffer {
    #[new]
    #[pyo3(signature = (cache_ns, frames_max=None))]
    fn new(cache_ns: i64, frames_max: Option<usize>) -> Self {
        let defaults = TransformBufferOptions::default();
        let options = TransformBufferOptions {
            cache_time: Duration::from_nanos(cache_ns.max(0).unsigned_abs()),
            frames_max: frames_max.unwrap_or(defaults.frames_max),
            ..defaults
        };
        Self {
            buffer: pteros::tf::TransformBuffer::new(options),
        }
    }

    /// Adds a transform. Returns why it was rejected, or None.
    #[expect(
        clippy::too_many_arguments,
        reason = "the fields of a message, and two more"
    )]
    fn set_transform(
        &self,
        parent: &str,
        child: &str,
        stamp_ns: i64,
        translation: [f64; 3],
        rotation: [f64; 4],
        authority: &str,
        is_static: bool,
    ) -> Option<String> {
        let mut transform = TransformStamped::default();
        transform.header.frame_id = parent.into();
        transform.header.stamp = Time::from_nanos(stamp_ns).into();
        transform.child_frame_id = child.into();
        transform.transform = Isometry {
            translation,
            rotation,
        }
        .into();
        let set = self.buffer.set_transform(&transform, authority, is_static);
        set.err().map(|error| error.to_string())
    }

    /// The pose of the source in the target, and its time; or why there is none. Time 0 is
    /// the latest time of the path.
    fn lookup(&self, target: &str, source: &str, stamp_ns: i64) -> Result<(Rigid, i64), PyErr> {
        let time = Time::from_nanos(stamp_ns);
        let found = self.buffer.lookup_transform(target, source, time);
        found
            .map(|found| parts(&found))
            .map_err(|error| miss(&error))
    }

    /// The same from the source at one time to the target at another one.
    fn lookup_full(
        &self,
        target: &str,
        target_ns: i64,
        source: &str,
        source_ns: i64,
        fixed: &str,
    ) -> Result<(Rigid, i64), PyErr> {
        let [to, from] = [target_ns, source_ns].map(Time::from_nanos);
        let found = self
            .buffer
            .lookup_transform_full(target, to, source, from, fixed);
        found
            .map(|found| parts(&found))
            .map_err(|error| miss(&error))
    }

    /// The latest time of the path between two frames; 0 if it is static.
    fn latest_common_time(&self, target: &str, source: &str) -> Result<i64, PyErr> {
        let found = self.buffer.latest_common_time(target, source);
        found.map(Time::as_nanos).map_err(|error| miss(&error))
    }

    /// Whether a transform has named the frame.
    fn has_frame(&self, name: &str) -> bool {
        self.buffer.has_frame(name)
    }

    /// The frames, in the order in which they were named first.
    fn frame_names(&self) -> Vec<String> {
        self.buffer.frame_names()
    }

    /// The frames that have a parent, by name.
    fn frames(&self) -> Vec<Row> {
        self.buffer.frames().into_iter().filter_map(row).collect()
    }

    /// Removes all but static transforms.
    fn clear(&self) {
        self.buffer.clear();
    }
}

fn row(frame: FrameInfo) -> Option<Row> {
    let FrameEdge {
        frame: name,
        parent,
        span,
        authority,
        ..
    } = frame.edge;
    let (oldest, newest) = span.unwrap_or_default();
    Some((
        name,
        parent?,
        frame.is_static,
        oldest.as_nanos(),
        newest.as_nanos(),
        frame.transforms,
        authority.unwrap_or_default(),
    ))
}

fn parts(found: &TransformStamped) -> (Rigid, i64) {
    let rigid = Isometry::from(&found.transform);
    let stamp = Time::from(&found.header.stamp).as_nanos();
    ((rigid.translation.into(), rigid.rotation.into()), stamp)
}

/// tf2's exception and its text.
fn miss(error: &LookupError) -> PyErr {
    TransformMiss::new_err(error.as_tf2())
}

pyo3::create_exception!(pteros._native, TransformMiss, pyo3::exceptions::PyException);

/// Adds class and exception to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TransformMiss", py.get_type::<TransformMiss>())?;
    module.add_class::<TransformBuffer>()
}
