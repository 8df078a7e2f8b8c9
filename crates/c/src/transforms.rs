//! Transforms between coordinate frames: the tf buffer of a node, and broadcasters.

use std::ffi::c_char;

use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::{Quaternion, Transform, TransformStamped, Vector3};
use pteros::interfaces::std_msgs::msg::Header;
use pteros::tf::{StaticTransformBroadcaster, TransformBroadcaster, TransformListener};

use crate::argument::{put, required, text, timeout};
use crate::error::{self, Status};
use crate::node::PterosNode;

/// `pteros_tf_listener_t`.
pub struct PterosTfListener(TransformListener);

/// `pteros_tf_broadcaster_t`.
pub struct PterosTfBroadcaster(Broadcaster);

enum Broadcaster {
    Dynamic(TransformBroadcaster),
    Static(StaticTransformBroadcaster),
}

/// `pteros_transform_t`.
#[repr(C)]
pub struct CTransform {
    time_ns: i64,
    /// x, y, z in metres.
    translation: [f64; 3],
    /// Quaternion x, y, z, w.
    rotation: [f64; 4],
}

// `tests/programs/lifecycle.c` has the same numbers.
const _: () =
    assert!(size_of::<CTransform>() == 64 && std::mem::offset_of!(CTransform, rotation) == 32);

impl From<&TransformStamped> for CTransform {
    fn from(from: &TransformStamped) -> Self {
        let Transform {
            translation,
            rotation,
        } = &from.transform;
        Self {
            time_ns: Time::from(&from.header.stamp).as_nanos(),
            translation: [translation.x, translation.y, translation.z],
            rotation: [rotation.x, rotation.y, rotation.z, rotation.w],
        }
    }
}

impl CTransform {
    fn stamped(&self, parent: &str, child: &str) -> TransformStamped {
        let [x, y, z] = self.translation;
        let translation = Vector3 { x, y, z };
        let [x, y, z, w] = self.rotation;
        TransformStamped {
            header: Header {
                stamp: Time::from_nanos(self.time_ns).into(),
                frame_id: parent.into(),
            },
            child_frame_id: child.into(),
            transform: Transform {
                translation,
                rotation: Quaternion { x, y, z, w },
            },
        }
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_listener_new(
    node: Option<&PterosNode>,
) -> Option<Box<PterosTfListener>> {
    error::create("pteros_tf_listener_new", || {
        let node = &required(node, "node")?.node;
        Ok(PterosTfListener(TransformListener::new(node)?))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_listener_free(listener: Option<Box<PterosTfListener>>) {
    error::free("pteros_tf_listener_free", listener);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_listener_lookup(
    listener: Option<&PterosTfListener>,
    target: *const c_char,
    source: *const c_char,
    time_ns: i64,
    timeout_ns: i64,
    transform: *mut CTransform,
) -> Status {
    error::run("pteros_tf_listener_lookup", || {
        let listener = &required(listener, "listener")?.0;
        let (target, source) = (text(target, "target")?, text(source, "source")?);
        let found = listener.lookup_transform_within(
            target,
            source,
            Time::from_nanos(time_ns),
            timeout(timeout_ns),
        )?;
        put(transform, CTransform::from(&found), "transform")
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_broadcaster_new(
    node: Option<&PterosNode>,
    is_static: bool,
) -> Option<Box<PterosTfBroadcaster>> {
    error::create("pteros_tf_broadcaster_new", || {
        let node = &required(node, "node")?.node;
        Ok(PterosTfBroadcaster(if is_static {
            Broadcaster::Static(StaticTransformBroadcaster::new(node)?)
        } else {
            Broadcaster::Dynamic(TransformBroadcaster::new(node)?)
        }))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_broadcaster_free(broadcaster: Option<Box<PterosTfBroadcaster>>) {
    error::free("pteros_tf_broadcaster_free", broadcaster);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_tf_broadcaster_send(
    broadcaster: Option<&PterosTfBroadcaster>,
    parent: *const c_char,
    child: *const c_char,
    transform: Option<&CTransform>,
) -> Status {
    error::run("pteros_tf_broadcaster_send", || {
        let broadcaster = &required(broadcaster, "broadcaster")?.0;
        let (parent, child) = (text(parent, "parent")?, text(child, "child")?);
        let transform = required(transform, "transform")?.stamped(parent, child);
        Ok(match broadcaster {
            Broadcaster::Dynamic(broadcaster) => broadcaster.send_transform(transform),
            Broadcaster::Static(broadcaster) => broadcaster.send_transform(transform),
        }?)
    })
}
