//! Differential drive model: two wheels with limits, and encoders.

use pteros::tf::Isometry;

use crate::floor_map::FloorMap;

/// Encoder ticks per turn of a wheel.
const ENCODER_TICKS: f64 = 4096.0;

/// Geometry and limits of the drive, in metres and seconds.
#[derive(Clone, Copy, Debug)]
pub struct DriveGeometry {
    /// Distance between the wheels.
    pub wheel_separation: f64,
    /// Radius of a wheel.
    pub wheel_radius: f64,
    /// Largest speed of a wheel on the ground.
    pub wheel_speed_max: f64,
    /// Largest acceleration of a wheel.
    pub wheel_acceleration: f64,
    /// Radius of the robot.
    pub radius: f64,
}

/// The true pose, the odometry pose and the wheel speeds.
#[derive(Clone, Debug)]
pub struct DiffDrive {
    shape: DriveGeometry,
    floor: FloorMap,
    /// True pose: x, y, yaw in the building.
    pub truth: [f64; 3],
    /// Pose from the encoders, relative to the start.
    pub odometry: [f64; 3],
    /// Speeds of the left and right wheel on the ground.
    wheels: [f64; 2],
    /// Distances below a whole tick.
    tick_remainders: [f64; 2],
    /// Number of collisions with walls.
    pub bumps: u64,
    is_touching: bool,
}

impl DiffDrive {
    pub fn new(shape: DriveGeometry, floor: FloorMap, start: [f64; 3]) -> Self {
        Self {
            shape,
            floor,
            truth: start,
            odometry: [0.0; 3],
            wheels: [0.0; 2],
            tick_remainders: [0.0; 2],
            bumps: 0,
            is_touching: false,
        }
    }

    /// Forward and turning speed.
    pub fn velocity(&self) -> (f64, f64) {
        let [left, right] = self.wheels;
        (
            (left + right) / 2.0,
            (right - left) / self.shape.wheel_separation,
        )
    }

    /// Advances the simulation by a time step, towards a forward and a turning
    /// speed.
    pub fn advance(&mut self, seconds: f64, forward: f64, turning: f64) {
        let half = turning * self.shape.wheel_separation / 2.0;
        let wanted = [forward - half, forward + half];
        // If one wheel would be too fast, both are slowed, so the curvature stays
        // the same.
        let fastest = wanted[0].abs().max(wanted[1].abs());
        let scale = (self.shape.wheel_speed_max / fastest).min(1.0);
        let change = self.shape.wheel_acceleration * seconds;
        for (wheel, wanted) in self.wheels.iter_mut().zip(wanted) {
            *wheel += (wanted * scale - *wheel).clamp(-change, change);
        }
        let ways = self.wheels.map(|speed| speed * seconds);
        let next = self.integrate(self.truth, ways);
        if self
            .floor
            .is_free_around([next[0], next[1]], self.shape.radius)
        {
            self.truth = next;
            self.is_touching = false;
        } else {
            // At a wall it can still turn on the spot.
            self.bumps += u64::from(!self.is_touching);
            self.is_touching = true;
            self.truth[2] = next[2];
        }
        let tick = std::f64::consts::TAU * self.shape.wheel_radius / ENCODER_TICKS;
        let mut counted = [0.0; 2];
        let rests = self.tick_remainders.iter_mut().zip(ways);
        for (counted, (rest, path)) in counted.iter_mut().zip(rests) {
            *rest += path;
            let ticks = (*rest / tick).trunc();
            *rest -= ticks * tick;
            *counted = ticks * tick;
        }
        self.odometry = self.integrate(self.odometry, counted);
    }

    /// The pose after both wheels have moved these distances.
    fn integrate(&self, [x, y, yaw]: [f64; 3], [left, right]: [f64; 2]) -> [f64; 3] {
        let (path, turned) = (
            (left + right) / 2.0,
            (right - left) / self.shape.wheel_separation,
        );
        let (sin, cos) = (yaw + turned / 2.0).sin_cos();
        [x + path * cos, y + path * sin, yaw + turned]
    }
}

/// A pose in the plane as a transform.
pub fn planar_pose([x, y, yaw]: [f64; 3]) -> Isometry {
    Isometry::planar(x, y, yaw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> DiffDrive {
        let shape = DriveGeometry {
            wheel_separation: 0.3,
            wheel_radius: 0.04,
            wheel_speed_max: 0.6,
            wheel_acceleration: 1.0,
            radius: 0.2,
        };
        DiffDrive::new(shape, FloorMap::built_in(), [1.0, 1.0, 0.0])
    }

    #[test]
    fn it_accelerates_drives_a_circle_and_its_odometry_agrees() {
        let mut drive = drive();
        drive.advance(0.1, 0.5, 0.0);
        assert!((drive.velocity().0 - 0.1).abs() < 1e-9, "it accelerates");
        for _ in 0..2_000 {
            drive.advance(0.01, 0.4, 1.0);
        }
        let (truth, counted) = (planar_pose(drive.truth), planar_pose(drive.odometry));
        let believed = planar_pose([1.0, 1.0, 0.0]) * counted;
        for (a, b) in truth.translation.into_iter().zip(believed.translation) {
            assert!((a - b).abs() < 0.01, "{a} and {b}");
        }
        assert_eq!(drive.bumps, 0);
        assert!((drive.velocity().1 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_wall_stops_it_and_its_wheels_slip() {
        let mut drive = drive();
        for _ in 0..3_000 {
            drive.advance(0.01, 0.5, 0.0);
        }
        assert_eq!(drive.bumps, 1);
        assert!(drive.truth[0] < 9.6 && drive.odometry[0] > 10.0);
        drive.advance(0.01, 9.0, 0.0);
        assert!(drive.velocity().0 < 0.6);
    }
}
