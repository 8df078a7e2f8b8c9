//! tf buffer: transforms of the last seconds, and look-ups with interpolation.
//!
//! [`TransformBuffer`] is plain data behind a lock, as tf2's `BufferCore`. It has
//! no clock and no network; a listener fills it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::std_msgs::msg::Header;
use pteros_runtime::rtps::id::Guid;

use super::LATEST;
use super::error::{InvalidTransform, LookupError};
use super::history::FrameId;
use super::isometry::Isometry;
use super::report::TreeReporter;
use super::transformable::Transformable;
use super::tree::{Authority, FrameTree, LookupMiss, without_leading_slash};
use crate::time::Time;

/// Limits of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformBufferOptions {
    /// tf2's cache time: how long transforms are kept.
    ///
    /// Counted per frame, back from its newest transform; 10 s by default, as in
    /// tf2.
    pub cache_time: Duration,
    /// The most transforms of all frames, of 80 bytes each.
    ///
    /// 500 000 by default: 10 s of fifty frames at 1 kHz. When full, a new
    /// transform replaces the oldest of its frame; a frame without transforms is
    /// refused.
    pub transforms_max: usize,
    /// The most frames; 10 000 by default.
    ///
    /// Frames are never removed, and further ones are refused.
    pub frames_max: usize,
}

impl Default for TransformBufferOptions {
    fn default() -> Self {
        Self {
            cache_time: Duration::from_secs(10),
            transforms_max: 500_000,
            frames_max: 10_000,
        }
    }
}

/// Buffer of transforms, with look-ups. Cheap to clone, thread-safe.
///
/// It has no clock and no network: a
/// `TransformListener` fills it. Look-ups run in
/// parallel. An insertion blocks them for the time it takes to insert into the
/// frame's list, a fraction of a microsecond.
///
/// ```
/// use pteros::interfaces::geometry_msgs::msg::TransformStamped;
/// use pteros::tf::{Isometry, LATEST, TransformBuffer};
///
/// let mut laser = TransformStamped::default();
/// laser.header.frame_id = "base_link".into();
/// laser.child_frame_id = "laser".into();
/// laser.transform = Isometry::planar(0.2, 0.0, 0.0).into();
/// let buffer = TransformBuffer::default();
/// buffer.set_transform(&laser, "me", true)?;
/// let found = buffer.lookup_transform("base_link", "laser", LATEST)?;
/// assert_eq!(found.transform.translation.x, 0.2);
/// let error = buffer.lookup_transform("base_lnik", "laser", LATEST).unwrap_err();
/// assert!(error.to_string().contains("did you mean base_link?"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct TransformBuffer {
    inner: Arc<Inner>,
}

type NameOf = Box<dyn Fn(Guid) -> Option<String> + Send + Sync>;

#[derive(Default)]
struct Inner {
    options: TransformBufferOptions,
    tree: RwLock<FrameTree>,
    /// Futures that wait for a transform, by number.
    waiting_futures: Mutex<Vec<(u64, Waker)>>,
    next_wait_id: AtomicU64,
    rejected: AtomicU64,
    name_of: OnceLock<NameOf>,
}

impl TransformBuffer {
    /// An empty buffer.
    pub fn new(options: TransformBufferOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                ..Inner::default()
            }),
        }
    }

    /// The options it was created with.
    pub fn options(&self) -> &TransformBufferOptions {
        &self.inner.options
    }

    /// Inserts a transform. `authority` names its origin, for errors and reports.
    ///
    /// A static transform holds at all times.
    ///
    /// # Errors
    /// See [`InvalidTransform`].
    pub fn set_transform(
        &self,
        transform: &TransformStamped,
        authority: &str,
        is_static: bool,
    ) -> Result<(), InvalidTransform> {
        let authority = Authority::Named(authority.into());
        let transform = std::slice::from_ref(transform);
        let rejected = self.insert_all(transform, &authority, is_static);
        rejected.into_iter().next().map_or(Ok(()), Err)
    }

    /// Inserts several transforms and returns those that were rejected.
    #[doc(hidden)]
    pub fn insert_all(
        &self,
        transforms: &[TransformStamped],
        authority: &Authority,
        is_static: bool,
    ) -> Vec<InvalidTransform> {
        let inner = &*self.inner;
        let mut tree = inner.tree.write();
        let mut insert = |transform| tree.insert(transform, authority, is_static, &inner.options);
        let rejected: Vec<_> = transforms.iter().filter_map(|t| insert(t).err()).collect();
        drop(tree);
        let count = u64::try_from(rejected.len()).unwrap_or(u64::MAX);
        inner.rejected.fetch_add(count, Ordering::Relaxed);
        self.wake_waiting_futures();
        rejected
    }

    fn wake_waiting_futures(&self) {
        let waiting_futures = std::mem::take(&mut *self.inner.waiting_futures.lock());
        for (_, waker) in waiting_futures {
            waker.wake();
        }
    }

    /// Sets the function that names the node of a publisher.
    #[doc(hidden)]
    pub fn set_publisher_names(&self, name_of: NameOf) {
        let _ = self.inner.name_of.set(name_of);
    }

    /// Removes all transforms except static ones, as when ROS time jumps back.
    pub fn clear(&self) {
        self.inner.tree.write().clear_dynamic();
    }

    /// Number of transforms kept.
    pub fn len(&self) -> usize {
        self.inner.tree.read().transform_count()
    }

    /// Whether no transform is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Transforms rejected so far ([`InvalidTransform`]).
    pub fn rejected_count(&self) -> u64 {
        self.inner.rejected.load(Ordering::Relaxed)
    }

    /// The transform from `source` to `target` at a time.
    ///
    /// It maps coordinates of `source` into `target`, so it is the pose of `source`
    /// in `target`.
    ///
    /// [`LATEST`] selects the latest time for which all frames between the two are
    /// known. The stamp is that time, or zero if they are all static. Never blocks
    /// on the network.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup_transform(
        &self,
        target: &str,
        source: &str,
        time: Time,
    ) -> Result<TransformStamped, LookupError> {
        let tree = self.inner.tree.read();
        match find(&tree, target, source, time) {
            Ok((time, isometry)) => Ok(stamped(time, target, source, isometry)),
            Err(Some((to, from, miss))) => Err(self.reporter(&tree).lookup_error(to, from, miss)),
            Err(None) => Err(self.reporter(&tree).unknown_frame(&[target, source])),
        }
    }

    /// The latest time for which all frames between the two are known, as tf2's
    /// `getLatestCommonTime`; zero if they are all static.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn latest_common_time(&self, target: &str, source: &str) -> Result<Time, LookupError> {
        let tree = self.inner.tree.read();
        let (Some(to), Some(from)) = (tree.id_of(target), tree.id_of(source)) else {
            return Err(self.reporter(&tree).unknown_frame(&[target, source]));
        };
        match tree.latest_common_time(to, from) {
            Ok(time) => Ok(Time::from_nanos(time.unwrap_or(0))),
            Err(miss) => Err(self.reporter(&tree).lookup_error(to, from, miss)),
        }
    }

    /// Whether a transform has named the frame.
    pub fn has_frame(&self, name: &str) -> bool {
        self.inner.tree.read().id_of(name).is_some()
    }

    /// The names of all frames, in the order in which transforms named them first.
    pub fn frame_names(&self) -> Vec<String> {
        let tree = self.inner.tree.read();
        tree.frames()
            .iter()
            .map(|frame| frame.name.to_string())
            .collect()
    }

    /// Whether [`TransformBuffer::lookup_transform`] would succeed.
    ///
    /// Gives no reason and costs less if it would not.
    pub fn can_transform(&self, target: &str, source: &str, time: Time) -> bool {
        self.try_lookup_transform(target, source, time).is_some()
    }

    /// [`TransformBuffer::lookup_transform`] without the reason of a failure.
    #[doc(hidden)]
    pub fn try_lookup_transform(
        &self,
        target: &str,
        source: &str,
        time: Time,
    ) -> Option<TransformStamped> {
        let tree = self.inner.tree.read();
        let (time, isometry) = find(&tree, target, source, time).ok()?;
        Some(stamped(time, target, source, isometry))
    }

    /// Time travel, as tf2's advanced API.
    ///
    /// The result is where `source` was at `source_time`, seen from `target` at
    /// `target_time`, assuming that `fixed` did not move in between.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup_transform_full(
        &self,
        target: &str,
        target_time: Time,
        source: &str,
        source_time: Time,
        fixed: &str,
    ) -> Result<TransformStamped, LookupError> {
        let frames = [target, source, fixed];
        let tree = self.inner.tree.read();
        if frames.iter().any(|frame| tree.id_of(frame).is_none()) {
            return Err(self.reporter(&tree).unknown_frame(&frames));
        }
        drop(tree);
        let then = self.lookup_transform(fixed, source, source_time)?;
        let now = self.lookup_transform(target, fixed, target_time)?;
        let isometry = Isometry::from(&now.transform) * Isometry::from(&then.transform);
        let time = Time::from(&now.header.stamp);
        Ok(stamped(time, target, source, isometry))
    }

    /// Transforms a stamped message into another frame, at its stamp.
    ///
    /// ```
    /// # use pteros::interfaces::geometry_msgs::msg::{PointStamped, TransformStamped};
    /// # use pteros::tf::{Isometry, TransformBuffer};
    /// # let mut laser = TransformStamped::default();
    /// # laser.header.frame_id = "base_link".into();
    /// # laser.child_frame_id = "laser".into();
    /// # laser.transform = Isometry::planar(0.2, 0.0, 0.0).into();
    /// # let buffer = TransformBuffer::default();
    /// # buffer.set_transform(&laser, "me", true)?;
    /// let mut hit = PointStamped::default();
    /// hit.header.frame_id = "laser".into();
    /// hit.point.x = 3.0;
    /// assert_eq!(buffer.transform(&hit, "base_link")?.point.x, 3.2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn transform<T: Transformable>(&self, it: &T, target: &str) -> Result<T, LookupError> {
        let Header { stamp, frame_id } = it.header();
        let by = self.lookup_transform(target, frame_id, Time::from(stamp))?;
        Ok(it.transformed(&by))
    }

    /// A future of [`TransformBuffer::lookup_transform`].
    ///
    /// It completes when the transform is available, or the request is invalid.
    ///
    /// It has no time limit; `Node::timeout` adds one.
    pub fn wait_for_transform(&self, target: &str, source: &str, time: Time) -> TransformFuture {
        TransformFuture {
            buffer: self.clone(),
            target: target.into(),
            source: source.into(),
            time,
            number: self.inner.next_wait_id.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(super) fn reporter<'t>(&'t self, tree: &'t FrameTree) -> TreeReporter<'t> {
        TreeReporter {
            tree,
            name_of: self.inner.name_of.get().map(|name_of| &**name_of as _),
        }
    }

    pub(super) fn with_reporter<R>(&self, look: impl FnOnce(TreeReporter<'_>) -> R) -> R {
        look(self.reporter(&self.inner.tree.read()))
    }
}

impl fmt::Debug for TransformBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = self.inner.tree.read();
        f.debug_struct("TransformBuffer")
            .field("frames", &tree.frames().len())
            .field("transforms", &tree.transform_count())
            .finish()
    }
}

/// The target, the source, and why there is no transform.
type KnownMiss = (FrameId, FrameId, LookupMiss);

/// The resolved time, and the transform at that time. Else why there is none, or `None` if a
/// frame is unknown.
fn find(
    tree: &FrameTree,
    target: &str,
    source: &str,
    time: Time,
) -> Result<(Time, Isometry), Option<KnownMiss>> {
    let (Some(to), Some(from)) = (tree.id_of(target), tree.id_of(source)) else {
        // As in tf2: each frame lies in itself, also one that no transform has named.
        let is_one = target == source && !without_leading_slash(target).is_empty();
        return is_one.then_some((time, Isometry::IDENTITY)).ok_or(None);
    };
    let resolve = || {
        let time = match time {
            LATEST => Time::from_nanos(tree.latest_common_time(to, from)?.unwrap_or(0)),
            time => time,
        };
        Ok((time, tree.isometry(to, from, time.as_nanos())?))
    };
    resolve().map_err(|miss| Some((to, from, miss)))
}

/// The error if one of the frame ids is empty, apart from a leading `/`.
pub fn empty_frame_id_error(target: &str, source: &str) -> Option<LookupError> {
    let which = match (without_leading_slash(target), without_leading_slash(source)) {
        ("", _) => "target",
        (_, "") => "source",
        _ => return None,
    };
    Some(LookupError::EmptyFrameId(which))
}

fn stamped(time: Time, target: &str, source: &str, isometry: Isometry) -> TransformStamped {
    TransformStamped {
        header: Header {
            stamp: time.into(),
            frame_id: without_leading_slash(target).into(),
        },
        child_frame_id: without_leading_slash(source).into(),
        transform: isometry.with_tf2_sign().into(),
    }
}

/// Future of a transform; see [`TransformBuffer::wait_for_transform`].
///
/// While it waits, each message of transforms costs one look-up.
#[must_use = "a transform future does nothing unless awaited"]
pub struct TransformFuture {
    buffer: TransformBuffer,
    target: String,
    source: String,
    time: Time,
    number: u64,
}

impl TransformFuture {
    fn forget(&self) {
        let mut waiting_futures = self.buffer.inner.waiting_futures.lock();
        waiting_futures.retain(|(number, _)| *number != self.number);
    }
}

impl Future for TransformFuture {
    type Output = Result<TransformStamped, LookupError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Registered before the look-up, so that no transform in between is missed.
        self.forget();
        let waker = (self.number, context.waker().clone());
        self.buffer.inner.waiting_futures.lock().push(waker);
        let found = match empty_frame_id_error(&self.target, &self.source) {
            Some(mistake) => Err(mistake),
            None => match self
                .buffer
                .try_lookup_transform(&self.target, &self.source, self.time)
            {
                Some(found) => Ok(found),
                None => return Poll::Pending,
            },
        };
        self.forget();
        Poll::Ready(found)
    }
}

impl Drop for TransformFuture {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for TransformFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformWait")
            .field("target", &self.target)
            .field("source", &self.source)
            .field("time", &self.time)
            .finish()
    }
}
