//! What is known of all frames for the last seconds, and the look-ups in it.

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
use pteros_rmw::rtps::id::Guid;

use super::LATEST;
use super::error::{LookupError, TransformRefused};
use super::history::FrameId;
use super::isometry::Isometry;
use super::report::Describe;
use super::transformable::Transformable;
use super::tree::{Authority, Miss, Tree, bare};
use crate::clock::Time;

/// How much a buffer keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformBufferOptions {
    /// How long each frame is remembered, back from its own newest transform; 10 s
    /// by default, as in tf2.
    pub keep: Duration,
    /// Transforms of all frames together, of 80 bytes each; 500 000 by default, 10 s
    /// of fifty frames at 1 kHz. When full, a new transform takes the place of its
    /// frame's oldest; a frame of which nothing is kept yet is refused.
    pub transforms_max: usize,
    /// Frames, which are never forgotten; 10 000 by default. More are refused.
    pub frames_max: usize,
}

impl Default for TransformBufferOptions {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(10),
            transforms_max: 500_000,
            frames_max: 10_000,
        }
    }
}

/// Transforms of the last seconds and the look-ups in them. Cheap to clone,
/// thread-safe; knows no clock and no network: a
/// [`TransformListener`](super::TransformListener) fills it.
///
/// Look-ups go on side by side; who brings a transform keeps them waiting for the
/// time it takes to put it into its frame's list, a fraction of a microsecond.
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
/// let found = buffer.lookup("base_link", "laser", LATEST)?;
/// assert_eq!(found.transform.translation.x, 0.2);
/// let error = buffer.lookup("base_lnik", "laser", LATEST).unwrap_err();
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
    tree: RwLock<Tree>,
    /// Futures that wait for a transform, by number.
    waiting: Mutex<Vec<(u64, Waker)>>,
    waits: AtomicU64,
    refused: AtomicU64,
    name_of: OnceLock<NameOf>,
}

impl TransformBuffer {
    /// An empty one.
    pub fn new(options: TransformBufferOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options,
                ..Inner::default()
            }),
        }
    }

    /// What it was made with.
    pub fn options(&self) -> &TransformBufferOptions {
        &self.inner.options
    }

    /// Takes a transform; `authority` is who says so, for errors and reports. A
    /// static one holds at all times.
    ///
    /// # Errors
    /// See [`TransformRefused`].
    pub fn set_transform(
        &self,
        transform: &TransformStamped,
        authority: &str,
        is_static: bool,
    ) -> Result<(), TransformRefused> {
        let authority = Authority::Named(authority.into());
        let transform = std::slice::from_ref(transform);
        let refused = self.take(transform, &authority, is_static);
        refused.into_iter().next().map_or(Ok(()), Err)
    }

    /// Takes several at once and returns what it refuses of them.
    pub(super) fn take(
        &self,
        transforms: &[TransformStamped],
        authority: &Authority,
        is_static: bool,
    ) -> Vec<TransformRefused> {
        let inner = &*self.inner;
        let mut tree = inner.tree.write();
        let mut insert = |transform| tree.insert(transform, authority, is_static, &inner.options);
        let refused: Vec<_> = transforms.iter().filter_map(|t| insert(t).err()).collect();
        drop(tree);
        let count = u64::try_from(refused.len()).unwrap_or(u64::MAX);
        inner.refused.fetch_add(count, Ordering::Relaxed);
        self.wake();
        refused
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.inner.waiting.lock());
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// Says which node a publisher belongs to.
    pub(super) fn name_publishers_by(&self, name_of: NameOf) {
        let _ = self.inner.name_of.set(name_of);
    }

    /// Forgets all transforms but the static ones, as when ROS time goes back.
    pub fn clear(&self) {
        self.inner.tree.write().clear();
    }

    /// Transforms kept now.
    pub fn len(&self) -> usize {
        self.inner.tree.read().held()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Transforms refused so far ([`TransformRefused`]).
    pub fn refused(&self) -> u64 {
        self.inner.refused.load(Ordering::Relaxed)
    }

    /// The transform that maps coordinates of `source` into those of `target`, in
    /// other words where `source` lies in `target`, at a time; [`LATEST`] is the
    /// latest for which all frames between the two are known, and its stamp is that
    /// time, or zero if they are all static. Never blocks for the network.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup(
        &self,
        target: &str,
        source: &str,
        time: Time,
    ) -> Result<TransformStamped, LookupError> {
        let tree = self.inner.tree.read();
        let (Some(to), Some(from)) = (tree.frame(target), tree.frame(source)) else {
            return Err(self.describe(&tree).unknown(target, source));
        };
        match resolve(&tree, to, from, time) {
            Ok((time, isometry)) => Ok(stamped(time, target, source, isometry)),
            Err(miss) => Err(self.describe(&tree).miss(to, from, miss)),
        }
    }

    /// Whether [`TransformBuffer::lookup`] would succeed; tells no reasons and is
    /// cheaper where it would not.
    pub fn can_transform(&self, target: &str, source: &str, time: Time) -> bool {
        self.find(target, source, time).is_some()
    }

    /// [`TransformBuffer::lookup`] without a word why there is none.
    pub(super) fn find(&self, target: &str, source: &str, time: Time) -> Option<TransformStamped> {
        let tree = self.inner.tree.read();
        let (to, from) = (tree.frame(target)?, tree.frame(source)?);
        let (time, isometry) = resolve(&tree, to, from, time).ok()?;
        Some(stamped(time, target, source, isometry))
    }

    /// Through time: where `source` was at `source_time`, seen from `target` at
    /// `target_time`, when `fixed` is what has not moved between the two.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup_full(
        &self,
        (target, target_time): (&str, Time),
        (source, source_time): (&str, Time),
        fixed: &str,
    ) -> Result<TransformStamped, LookupError> {
        let then = self.lookup(fixed, source, source_time)?;
        let now = self.lookup(target, fixed, target_time)?;
        let isometry = Isometry::from(&now.transform) * Isometry::from(&then.transform);
        let time = Time::from(&now.header.stamp);
        Ok(stamped(time, target, source, isometry))
    }

    /// What has a header, in another frame: looked up at its stamp.
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
        let by = self.lookup(target, frame_id, Time::from(stamp))?;
        Ok(it.transformed(&by))
    }

    /// A future of [`TransformBuffer::lookup`] that is done as soon as the transform
    /// is there, or the question is a mistake. It waits for ever otherwise:
    /// [`Node::timeout`](crate::Node::timeout) limits that.
    pub fn wait_for(&self, target: &str, source: &str, time: Time) -> TransformWait {
        TransformWait {
            buffer: self.clone(),
            target: target.into(),
            source: source.into(),
            time,
            number: self.inner.waits.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(super) fn describe<'t>(&'t self, tree: &'t Tree) -> Describe<'t> {
        Describe {
            tree,
            name_of: self.inner.name_of.get().map(|name_of| &**name_of as _),
        }
    }

    pub(super) fn with_tree<R>(&self, look: impl FnOnce(Describe<'_>) -> R) -> R {
        look(self.describe(&self.inner.tree.read()))
    }
}

impl fmt::Debug for TransformBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = self.inner.tree.read();
        f.debug_struct("TransformBuffer")
            .field("frames", &tree.frames().len())
            .field("transforms", &tree.held())
            .finish()
    }
}

/// The time that is meant, and the transform then.
fn resolve(
    tree: &Tree,
    target: FrameId,
    source: FrameId,
    time: Time,
) -> Result<(Time, Isometry), Miss> {
    let time = match time {
        LATEST => Time::from_nanos(tree.latest_common_time(target, source)?.unwrap_or(0)),
        time => time,
    };
    let isometry = tree.isometry(target, source, time.as_nanos())?;
    Ok((time, isometry))
}

/// The mistake of asking for a frame without a name.
pub(super) fn nameless(target: &str, source: &str) -> Option<LookupError> {
    let which = match (bare(target), bare(source)) {
        ("", _) => "target",
        (_, "") => "source",
        _ => return None,
    };
    Some(LookupError::NoName(which))
}

fn stamped(time: Time, target: &str, source: &str, isometry: Isometry) -> TransformStamped {
    TransformStamped {
        header: Header {
            stamp: time.into(),
            frame_id: bare(target).into(),
        },
        child_frame_id: bare(source).into(),
        transform: isometry.into(),
    }
}

/// Waits for a transform; see [`TransformBuffer::wait_for`]. While it waits, each
/// message of transforms costs one look-up.
#[must_use = "it waits when it is awaited"]
pub struct TransformWait {
    buffer: TransformBuffer,
    target: String,
    source: String,
    time: Time,
    number: u64,
}

impl TransformWait {
    fn forget(&self) {
        let mut waiting = self.buffer.inner.waiting.lock();
        waiting.retain(|(number, _)| *number != self.number);
    }
}

impl Future for TransformWait {
    type Output = Result<TransformStamped, LookupError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Before the look, or what comes in between would wake nobody.
        self.forget();
        let waker = (self.number, context.waker().clone());
        self.buffer.inner.waiting.lock().push(waker);
        let found = match nameless(&self.target, &self.source) {
            Some(mistake) => Err(mistake),
            None => match self.buffer.find(&self.target, &self.source, self.time) {
                Some(found) => Ok(found),
                None => return Poll::Pending,
            },
        };
        self.forget();
        Poll::Ready(found)
    }
}

impl Drop for TransformWait {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for TransformWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformWait")
            .field("target", &self.target)
            .field("source", &self.source)
            .field("time", &self.time)
            .finish()
    }
}
