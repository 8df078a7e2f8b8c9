//! A differential drive: two wheels with limits, and encoders that count.

use pteros::tf::Isometry;

use crate::floor::Floor;

/// Encoder ticks of one turn of a wheel.
const TICKS: f64 = 4096.0;

/// What the robot is like, metres and seconds.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Between the wheels.
    pub wheel_separation: f64,
    /// Of a wheel.
    pub wheel_radius: f64,
    /// The fastest that a wheel goes on the ground.
    pub wheel_speed_max: f64,
    /// How fast a wheel changes that.
    pub wheel_acceleration: f64,
    /// Of the whole robot.
    pub radius: f64,
}

/// Where it is, where it believes to be and how its wheels turn.
#[derive(Clone, Debug)]
pub struct Drive {
    shape: Shape,
    floor: Floor,
    /// x, y, yaw in the building.
    pub truth: [f64; 3],
    /// The same by the encoders, from where it started.
    pub odometry: [f64; 3],
    /// Left and right, on the ground.
    wheels: [f64; 2],
    /// Ways that are not a whole tick yet.
    rests: [f64; 2],
    /// How often it has run into a wall.
    pub bumps: u64,
    touches: bool,
}

impl Drive {
    pub fn new(shape: Shape, floor: Floor, start: [f64; 3]) -> Self {
        Self {
            shape,
            floor,
            truth: start,
            odometry: [0.0; 3],
            wheels: [0.0; 2],
            rests: [0.0; 2],
            bumps: 0,
            touches: false,
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

    /// Goes on for so many seconds towards a forward and a turning speed.
    pub fn advance(&mut self, seconds: f64, (forward, turning): (f64, f64)) {
        let half = turning * self.shape.wheel_separation / 2.0;
        let wanted = [forward - half, forward + half];
        // Too fast for a wheel: both slower, so that the curve stays.
        let fastest = wanted[0].abs().max(wanted[1].abs());
        let scale = (self.shape.wheel_speed_max / fastest).min(1.0);
        let change = self.shape.wheel_acceleration * seconds;
        for (wheel, wanted) in self.wheels.iter_mut().zip(wanted) {
            *wheel += (wanted * scale - *wheel).clamp(-change, change);
        }
        let ways = self.wheels.map(|speed| speed * seconds);
        let next = self.rolled(self.truth, ways);
        if self.floor.has_room([next[0], next[1]], self.shape.radius) {
            self.truth = next;
            self.touches = false;
        } else {
            // It stands at the wall, but can turn on the spot.
            self.bumps += u64::from(!self.touches);
            self.touches = true;
            self.truth[2] = next[2];
        }
        let tick = std::f64::consts::TAU * self.shape.wheel_radius / TICKS;
        let mut counted = [0.0; 2];
        let rests = self.rests.iter_mut().zip(ways);
        for (counted, (rest, way)) in counted.iter_mut().zip(rests) {
            *rest += way;
            let ticks = (*rest / tick).trunc();
            *rest -= ticks * tick;
            *counted = ticks * tick;
        }
        self.odometry = self.rolled(self.odometry, counted);
    }

    /// Where both wheels' ways lead from a pose.
    fn rolled(&self, [x, y, yaw]: [f64; 3], [left, right]: [f64; 2]) -> [f64; 3] {
        let (way, turned) = (
            (left + right) / 2.0,
            (right - left) / self.shape.wheel_separation,
        );
        let (sin, cos) = (yaw + turned / 2.0).sin_cos();
        [x + way * cos, y + way * sin, yaw + turned]
    }
}

/// A pose in the plane as a transform.
pub fn placed([x, y, yaw]: [f64; 3]) -> Isometry {
    Isometry::planar(x, y, yaw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> Drive {
        let shape = Shape {
            wheel_separation: 0.3,
            wheel_radius: 0.04,
            wheel_speed_max: 0.6,
            wheel_acceleration: 1.0,
            radius: 0.2,
        };
        Drive::new(shape, Floor::own(), [1.0, 1.0, 0.0])
    }

    #[test]
    fn it_speeds_up_drives_a_circle_and_its_odometry_agrees() {
        let mut drive = drive();
        drive.advance(0.1, (0.5, 0.0));
        assert!((drive.velocity().0 - 0.1).abs() < 1e-9, "it accelerates");
        for _ in 0..2_000 {
            drive.advance(0.01, (0.4, 1.0));
        }
        let (truth, counted) = (placed(drive.truth), placed(drive.odometry));
        let believed = placed([1.0, 1.0, 0.0]) * counted;
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
            drive.advance(0.01, (0.5, 0.0));
        }
        assert_eq!(drive.bumps, 1);
        assert!(drive.truth[0] < 9.6 && drive.odometry[0] > 10.0);
        drive.advance(0.01, (9.0, 0.0));
        assert!(drive.velocity().0 < 0.6);
    }
}
