//! Following a way: where to steer now, given where one is.

use std::f64::consts::{PI, TAU};

/// How it drives.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Metres a second at most.
    pub speed: f64,
    /// Radians a second at most.
    pub turning: f64,
    /// How far ahead on the way it aims, metres.
    pub lookahead: f64,
}

/// Where it is to drive to and what is left.
#[derive(Clone, Copy, Debug)]
pub struct Steering {
    /// Metres a second ahead.
    pub forward: f64,
    /// Radians a second to the left.
    pub turning: f64,
    /// Metres along the way.
    pub left: f64,
}

/// Pure pursuit: drives to the point of the way that is `lookahead` further on than
/// the nearest one; on the spot it turns where that is far off its nose.
pub fn pursue(way: &[[f64; 2]], [x, y, yaw]: [f64; 3], manner: &Manner) -> Steering {
    let (aim, left) = ahead(way, [x, y], manner.lookahead);
    let off = within_pi((aim[1] - y).atan2(aim[0] - x) - yaw);
    let turning = (off * 2.5).clamp(-manner.turning, manner.turning);
    // Slower in curves, and towards the end.
    let forward = match off.abs() {
        off if off > PI / 3.0 => 0.0,
        off => manner.speed * off.cos() * (left / 0.4).clamp(0.15, 1.0),
    };
    Steering {
        forward,
        turning,
        left,
    }
}

/// An angle as the same one from -π to π.
pub fn within_pi(angle: f64) -> f64 {
    let angle = angle.rem_euclid(TAU);
    if angle > PI { angle - TAU } else { angle }
}

/// The point to aim at, and how long the way is from the nearest point on.
fn ahead(way: &[[f64; 2]], [x, y]: [f64; 2], lookahead: f64) -> ([f64; 2], f64) {
    let mut nearest = (f64::INFINITY, 0, 0.0);
    for (at, pair) in way.windows(2).enumerate() {
        let (dx, dy) = (pair[1][0] - pair[0][0], pair[1][1] - pair[0][1]);
        let square = (dx * dx + dy * dy).max(1e-12);
        let along = (((x - pair[0][0]) * dx + (y - pair[0][1]) * dy) / square).clamp(0.0, 1.0);
        let away = (pair[0][0] + dx * along - x).hypot(pair[0][1] + dy * along - y);
        if away < nearest.0 {
            nearest = (away, at, along);
        }
    }
    let (_, at, along) = nearest;
    let last = way.last().copied().unwrap_or([x, y]);
    let mut aim = None;
    let mut left = 0.0;
    for (index, pair) in way.windows(2).enumerate().skip(at) {
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

    const MANNER: Manner = Manner {
        speed: 0.5,
        turning: 1.5,
        lookahead: 0.4,
    };

    #[test]
    fn it_drives_on_turns_towards_the_way_and_slows_down() {
        let way = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]];
        let straight = pursue(&way, [0.5, 0.0, 0.0], &MANNER);
        assert!((straight.left - 3.5).abs() < 1e-9 && straight.turning.abs() < 1e-9);
        assert!((straight.forward - 0.5).abs() < 1e-9);
        let beside = pursue(&way, [0.5, 0.3, 0.0], &MANNER);
        assert!(beside.turning < 0.0, "back to the way");
        let away = pursue(&way, [0.5, 0.0, PI], &MANNER);
        assert_eq!(away.forward, 0.0, "turns on the spot first");
        let near = pursue(&way, [2.0, 1.9, PI / 2.0], &MANNER);
        assert!(near.forward < 0.2 && near.left < 0.11);
        assert!((within_pi(3.0 * PI) - PI).abs() < 1e-9);
    }
}
