//! Isometry: a rotation and a translation, the pose of one frame in another.

use std::ops::Mul;

use pteros_interfaces::geometry_msgs::msg;

/// Maps coordinates of one frame into another: rotation, then translation.
///
/// Metres and unit quaternions, as in REP 103.
///
/// ```
/// use std::f64::consts::FRAC_PI_2;
///
/// use pteros::tf::Isometry;
///
/// // A laser half a metre ahead of the base, turned to the left.
/// let laser = Isometry::planar(0.5, 0.0, FRAC_PI_2);
/// let [x, y, _] = laser.point([2.0, 0.0, 0.0]);
/// assert!((x - 0.5).abs() < 1e-9 && (y - 2.0).abs() < 1e-9);
/// let there_and_back = laser.inverse() * laser;
/// assert!(there_and_back.yaw().abs() < 1e-9);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Isometry {
    /// The translation of the origin.
    pub translation: [f64; 3],
    /// The rotation: x, y, z, w of a unit quaternion.
    pub rotation: [f64; 4],
}

impl Isometry {
    /// No translation, no rotation.
    pub const IDENTITY: Self = Self {
        translation: [0.0; 3],
        rotation: [0.0, 0.0, 0.0, 1.0],
    };

    /// A planar pose: translation `x`, `y` and rotation by `yaw` radians,
    /// counterclockwise seen from above.
    pub fn planar(x: f64, y: f64, yaw: f64) -> Self {
        Self::from_rpy([x, y, 0.0], [0.0, 0.0, yaw])
    }

    /// A translation, and a rotation by roll, pitch and yaw.
    ///
    /// Angles are in radians about the fixed axes x, y and z, in this order.
    pub fn from_rpy(translation: [f64; 3], [roll, pitch, yaw]: [f64; 3]) -> Self {
        let (sr, cr) = (roll / 2.0).sin_cos();
        let (sp, cp) = (pitch / 2.0).sin_cos();
        let (sy, cy) = (yaw / 2.0).sin_cos();
        Self {
            translation,
            rotation: [
                sr * cp * cy - cr * sp * sy,
                cr * sp * cy + sr * cp * sy,
                cr * cp * sy - sr * sp * cy,
                cr * cp * cy + sr * sp * sy,
            ],
        }
    }

    /// Maps a point of the inner frame to coordinates of the outer one.
    pub fn point(&self, point: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = self.vector(point);
        let [dx, dy, dz] = self.translation;
        [x + dx, y + dy, z + dz]
    }

    /// Maps a free vector: rotated, not translated.
    pub fn vector(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let [a, b, c] = self.matrix();
        let row = |[p, q, r]: [f64; 3]| p * x + q * y + r * z;
        [row(a), row(b), row(c)]
    }

    /// Maps an orientation: x, y, z, w.
    pub fn orientation(&self, rotation: [f64; 4]) -> [f64; 4] {
        product(self.rotation, rotation)
    }

    /// The isometry that takes this one back.
    pub fn inverse(&self) -> Self {
        let [x, y, z, w] = self.rotation;
        let turned_back = Self {
            translation: [0.0; 3],
            rotation: [-x, -y, -z, w],
        };
        let [x, y, z] = turned_back.vector(self.translation);
        Self {
            translation: [-x, -y, -z],
            ..turned_back
        }
    }

    /// Interpolates between this (`fraction` 0) and `other` (1).
    ///
    /// Linear in the translation, spherical in the rotation, along the shorter arc.
    pub fn interpolate(&self, other: &Self, fraction: f64) -> Self {
        let mut translation = self.translation;
        for (here, there) in translation.iter_mut().zip(other.translation) {
            *here += (there - *here) * fraction;
        }
        Self {
            translation,
            rotation: slerp(self.rotation, other.rotation, fraction),
        }
    }

    /// The rotation matrix, by rows.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        let [x, y, z, w] = self.rotation;
        [
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - z * w),
                2.0 * (x * z + y * w),
            ],
            [
                2.0 * (x * y + z * w),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - x * w),
            ],
            [
                2.0 * (x * z - y * w),
                2.0 * (y * z + x * w),
                1.0 - 2.0 * (x * x + y * y),
            ],
        ]
    }

    /// The same rotation by that of its two quaternions which tf2 reads from the matrix:
    /// with a positive w up to 120°, else with a positive largest component.
    pub(super) fn with_tf2_sign(mut self) -> Self {
        let [[xx, ..], [_, yy, _], [_, _, zz]] = self.matrix();
        let largest = if xx + yy + zz > 0.0 {
            3
        } else if xx.max(yy) < zz {
            2
        } else {
            usize::from(xx < yy)
        };
        if self.rotation[largest] < 0.0 {
            self.rotation = self.rotation.map(|part| -part);
        }
        self
    }

    /// Roll, pitch and yaw in radians, as in [`Isometry::from_rpy`].
    pub fn rpy(&self) -> [f64; 3] {
        let [[xx, xy, _], [yx, yy, _], [zx, zy, zz]] = self.matrix();
        if zx.abs() >= 1.0 - 1e-12 {
            // Straight up or down: roll and yaw rotate about the same axis.
            let pitch = if zx < 0.0 { 1.0 } else { -1.0 } * std::f64::consts::FRAC_PI_2;
            return [0.0, pitch, (-xy).atan2(yy)];
        }
        [zy.atan2(zz), (-zx).asin(), yx.atan2(xx)]
    }

    /// The yaw angle, in radians.
    pub fn yaw(&self) -> f64 {
        self.rpy()[2]
    }
}

/// `a * b` maps by `b` first, then by `a`.
impl Mul for Isometry {
    type Output = Self;

    fn mul(self, inner: Self) -> Self {
        Self {
            translation: self.point(inner.translation),
            rotation: product(self.rotation, inner.rotation),
        }
    }
}

pub fn length_squared(rotation: [f64; 4]) -> f64 {
    rotation.iter().map(|part| part * part).sum()
}

fn product([ax, ay, az, aw]: [f64; 4], [bx, by, bz, bw]: [f64; 4]) -> [f64; 4] {
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// Below this angle the arc is treated as straight: its sine is too small to divide
/// by.
const STRAIGHT: f64 = 1e-6;

fn slerp(a: [f64; 4], b: [f64; 4], fraction: f64) -> [f64; 4] {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    // A quaternion and its negative are the same rotation.
    let sign = if dot < 0.0 { -1.0 } else { 1.0 };
    let angle = dot.abs().min(1.0).acos();
    let (of_a, of_b) = match angle.sin() {
        sine if sine > STRAIGHT => (
            ((1.0 - fraction) * angle).sin() / sine,
            (fraction * angle).sin() / sine,
        ),
        _ => (1.0 - fraction, fraction),
    };
    let mut mixed = a;
    for (a, b) in mixed.iter_mut().zip(b) {
        *a = *a * of_a + b * sign * of_b;
    }
    let length = length_squared(mixed).sqrt();
    mixed.map(|part| part / length)
}

impl From<&msg::Transform> for Isometry {
    fn from(transform: &msg::Transform) -> Self {
        let (t, r) = (&transform.translation, &transform.rotation);
        Self {
            translation: [t.x, t.y, t.z],
            rotation: [r.x, r.y, r.z, r.w],
        }
    }
}

impl From<Isometry> for msg::Transform {
    fn from(isometry: Isometry) -> Self {
        let [x, y, z] = isometry.translation;
        Self {
            translation: msg::Vector3 { x, y, z },
            rotation: quaternion(isometry.rotation),
        }
    }
}

impl From<&msg::Pose> for Isometry {
    fn from(pose: &msg::Pose) -> Self {
        let (p, r) = (&pose.position, &pose.orientation);
        Self {
            translation: [p.x, p.y, p.z],
            rotation: [r.x, r.y, r.z, r.w],
        }
    }
}

impl From<Isometry> for msg::Pose {
    fn from(isometry: Isometry) -> Self {
        let [x, y, z] = isometry.translation;
        Self {
            position: msg::Point { x, y, z },
            orientation: quaternion(isometry.rotation),
        }
    }
}

fn quaternion([x, y, z, w]: [f64; 4]) -> msg::Quaternion {
    msg::Quaternion { x, y, z, w }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} is not {b}");
    }

    #[test]
    fn angles_survive_the_quaternion() {
        for rpy in [[0.1, -0.2, 3.0], [-3.0, 1.5, -0.5], [0.0, 0.0, -PI / 3.0]] {
            let back = Isometry::from_rpy([0.0; 3], rpy).rpy();
            for (a, b) in back.into_iter().zip(rpy) {
                near(a, b);
            }
        }
        // Pitch of 90 degrees: only the resulting rotation is unique.
        let down = Isometry::from_rpy([0.0; 3], [0.4, FRAC_PI_2, 1.0]);
        let again = Isometry::from_rpy([0.0; 3], down.rpy());
        for (a, b) in down
            .point([1.0, 2.0, 3.0])
            .into_iter()
            .zip(again.point([1.0, 2.0, 3.0]))
        {
            assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        }
    }

    /// Values of `tf2::Transform(q).getRotation()`.
    #[test]
    fn a_rotation_has_the_sign_that_tf2_gives_it() {
        let half = 0.5_f64.sqrt();
        for (rotation, expected) in [
            ([0.0, 0.0, -0.6, 0.8], [0.0, 0.0, -0.6, 0.8]),
            ([0.0, 0.0, 0.6, -0.8], [0.0, 0.0, -0.6, 0.8]),
            ([0.0, 0.0, -0.96, 0.28], [0.0, 0.0, 0.96, -0.28]),
            ([-0.96, 0.0, 0.0, 0.28], [0.96, 0.0, 0.0, -0.28]),
            ([0.0, -0.96, 0.0, 0.28], [0.0, 0.96, 0.0, -0.28]),
            ([0.0, -1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
            ([-half, half, 0.0, 0.0], [half, -half, 0.0, 0.0]),
            ([0.0, -half, half, 0.0], [0.0, half, -half, 0.0]),
            ([-half, 0.0, half, 0.0], [half, 0.0, -half, 0.0]),
        ] {
            let isometry = Isometry {
                translation: [1.0, 2.0, 3.0],
                rotation,
            };
            let found = isometry.with_tf2_sign().rotation;
            let found = found.map(|part| part + 0.0);
            assert_eq!(found, expected, "{rotation:?}");
        }
    }

    #[test]
    fn half_way_is_half_the_angle_along_the_shorter_arc() {
        let a = Isometry::planar(0.0, 2.0, 3.0);
        let mut b = Isometry::planar(4.0, 0.0, -3.0);
        b.rotation = b.rotation.map(|part| -part);
        let half = a.interpolate(&b, 0.5);
        near(half.yaw().abs(), PI);
        assert_eq!(half.translation, [2.0, 1.0, 0.0]);
        near(length_squared(half.rotation), 1.0);
        let same = a.interpolate(&a, 0.3);
        near(same.yaw(), 3.0);
    }
}
