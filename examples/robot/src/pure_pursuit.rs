//! Pure pursuit: steering along a path from the current pose.

use std::f64::consts::{PI, TAU};

/// Speed limits and lookahead distance.
#[derive(Clone, Copy, Debug)]
pub struct DriveLimits {
    /// Largest speed in m/s.
    pub speed: f64,
    /// Largest turning speed in rad/s.
    pub turning: f64,
    /// Lookahead distance on the path in metres.
    pub lookahead: f64,
}

/// Steering command and remaining distance.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// Forward speed in m/s.
    pub forward: f64,
    /// Turning speed to the left in rad/s.
    pub turning: f64,
    /// Remaining distance along the path in metres.
    pub remaining: f64,
}

/// Pure pursuit: steers to the point of the path that is `lookahead` beyond the
/// nearest one. Turns on the spot if that point is far from the heading.
pub fn steer(path: &[[f64; 2]], [x, y, yaw]: [f64; 3], limits: &DriveLimits) -> Steering {
    let (aim, left) = lookahead_point(path, [x, y], limits.lookahead);
    let off = normalize_angle((aim[1] - y).atan2(aim[0] - x) - yaw);
    let turning = (off * 2.5).clamp(-limits.turning, limits.turning);
    // Slower in curves and towards the end.
    let forward = match off.abs() {
        off if off > PI / 3.0 => 0.0,
        off => limits.speed * off.cos() * (left / 0.4).clamp(0.15, 1.0),
    };
    Steering {
        forward,
        turning,
        remaining: left,
    }
}

/// The same angle between -π and π.
pub fn normalize_angle(angle: f64) -> f64 {
    let angle = angle.rem_euclid(TAU);
    if angle > PI { angle - TAU } else { angle }
}

/// The lookahead point, and the path length from the nearest point to the end.
fn lookahead_point(path: &[[f64; 2]], [x, y]: [f64; 2], lookahead: f64) -> ([f64; 2], f64) {
    let mut nearest = (f64::INFINITY, 0, 0.0);
    for (at, pair) in path.windows(2).enumerate() {
        let (dx, dy) = (pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]);
        let square = (dx * dx + dy * dy).max(1e-12);
        let along = (((x - pair[0][0]) * dx + (y - pair[0][1]) * dy) / square).clamp(0.0, 1.0);
        let away = (pair[0][0] + dx * along - x).hypot(pair[0][1] + dy * along - y);
        if away < nearest.0 {
            nearest = (away, at, along);
        }
    }
    let (_, at, along) = nearest;
    let last = path.last().copied().unwrap_or([x, y]);
    let mut aim = None;
    let mut left = 0.0;
    for (index, pair) in path.windows(2).enumerate().skip(at) {
        let from = if index == at { along } else { 0.0 };
        let (dx, dy) = (pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]);
        let length = dx.hypot(dy) * (1.0 - from);
        if aim.is_none() && left + length >= lookahead && length > 0.0 {
            let part = from + (1.0 - from) * (lookahead - left) / length;
            aim = Some([pair[0][0] + dx * part, pair[0][1] + dy * part]);
        }
        left += length;
    }
    (aim.unwrap_or(last), left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANNER: DriveLimits = DriveLimits {
        speed: 0.5,
        turning: 1.5,
        lookahead: 0.4,
    };

    #[test]
    fn it_drives_turns_towards_the_path_and_slows_down() {
        let path = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]];
        let straight = steer(&path, [0.5, 0.0, 0.0], &MANNER);
        assert!((straight.remaining - 3.5).abs() < 1e-9 && straight.turning.abs() < 1e-9);
        assert!((straight.forward - 0.5).abs() < 1e-9);
        let beside = steer(&path, [0.5, 0.3, 0.0], &MANNER);
        assert!(beside.turning < 0.0, "back to the way");
        let away = steer(&path, [0.5, 0.0, PI], &MANNER);
        assert_eq!(away.forward, 0.0, "turns on the spot first");
        let near = steer(&path, [2.0, 1.9, PI / 2.0], &MANNER);
        assert!(near.forward < 0.2 && near.remaining < 0.11);
        assert!((normalize_angle(3.0 * PI) - PI).abs() < 1e-9);
    }
}
