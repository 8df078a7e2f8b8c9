//! The shortest way through the building that keeps away from walls: A* on the
//! cells, then corners that can be cut are cut.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::floor::Floor;

/// What a straight step costs; a diagonal one costs its length.
const STRAIGHT: u32 = 1_000;
const DIAGONAL: u32 = 1_414;
/// What a step close to a wall costs more, so that the way is wide where it can be.
const NARROW: u32 = 2_000;

/// Points from start to goal for something of that radius; `None` if there is no
/// way, or start or goal is in a wall. Visits each cell a few times at most.
pub fn path(floor: &Floor, from: [f64; 2], to: [f64; 2], radius: f64) -> Option<Vec<[f64; 2]>> {
    let (start, goal) = (floor.cell(from)?, floor.cell(to)?);
    if !floor.has_room(to, radius) {
        return None;
    }
    let cells = cells(floor, start, goal, radius)?;
    let mut points = vec![from];
    points.extend(cells.iter().skip(1).map(|cell| floor.middle(*cell)));
    points.pop();
    points.push(to);
    Some(straightened(floor, &points, radius))
}

type Cell = (usize, usize);

fn cells(floor: &Floor, start: Cell, goal: Cell, radius: f64) -> Option<Vec<Cell>> {
    let (width, height) = floor.size();
    let index = |(x, y): Cell| y * width + x;
    let far = |(x, y): Cell| {
        let (dx, dy) = (x.abs_diff(goal.0), y.abs_diff(goal.1));
        let (less, more) = (dx.min(dy), dx.max(dy));
        let cost = |steps: usize, each| {
            u32::try_from(steps)
                .unwrap_or(u32::MAX)
                .saturating_mul(each)
        };
        cost(less, DIAGONAL).saturating_add(cost(more - less, STRAIGHT))
    };
    let mut best = vec![u32::MAX; width * height];
    let mut came_from = vec![None; width * height];
    best[index(start)] = 0;
    let mut open = BinaryHeap::from([Reverse((far(start), 0, start))]);
    while let Some(Reverse((_, so_far, cell))) = open.pop() {
        if cell == goal {
            let mut way = vec![goal];
            while let Some(before) = way.last().and_then(|cell| came_from[index(*cell)]) {
                way.push(before);
            }
            way.reverse();
            return Some(way);
        }
        if so_far > best[index(cell)] {
            continue;
        }
        for (next, step) in neighbours(cell) {
            let middle = floor.middle(next);
            // A goal may be as near to a wall as the robot can stand.
            if next != goal && !floor.has_room(middle, radius) {
                continue;
            }
            let narrow = if floor.has_room(middle, radius * 2.0) {
                0
            } else {
                NARROW
            };
            let cost = so_far + step + narrow;
            if next.0 < width && next.1 < height && cost < best[index(next)] {
                best[index(next)] = cost;
                came_from[index(next)] = Some(cell);
                open.push(Reverse((cost + far(next), cost, next)));
            }
        }
    }
    None
}

fn neighbours((x, y): Cell) -> impl Iterator<Item = (Cell, u32)> {
    let steps = [-1, 0, 1];
    let pairs = steps
        .into_iter()
        .flat_map(move |dx| steps.map(|dy| (dx, dy)));
    pairs
        .filter(|step| *step != (0, 0))
        .filter_map(move |(dx, dy)| {
            let cell = (x.checked_add_signed(dx)?, y.checked_add_signed(dy)?);
            Some((
                cell,
                if dx == 0 || dy == 0 {
                    STRAIGHT
                } else {
                    DIAGONAL
                },
            ))
        })
}

/// Leaves out points that can be passed by straight on, with room to spare.
fn straightened(floor: &Floor, points: &[[f64; 2]], radius: f64) -> Vec<[f64; 2]> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(from) = points.get(at) {
        kept.push(*from);
        let ahead = (at + 2..points.len()).rev();
        let mut clear = ahead.filter(|to| floor.is_clear(*from, points[*to], radius * 1.3));
        at = clear.next().unwrap_or(at + 1);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_leads_through_the_door() {
        let floor = Floor::own();
        let way = path(&floor, [1.0, 5.0], [9.0, 1.0], 0.22).unwrap();
        assert_eq!((way[0], way[way.len() - 1]), ([1.0, 5.0], [9.0, 1.0]));
        for pair in way.windows(2) {
            assert!(floor.is_clear(pair[0], pair[1], 0.2), "{way:?}");
        }
        assert!(way.len() < 12, "corners are cut: {way:?}");
        assert!(
            path(&floor, [1.0, 5.0], [0.1, 0.1], 0.22).is_none(),
            "in a wall"
        );
        assert!(
            path(&floor, [1.0, 5.0], [99.0, 0.1], 0.22).is_none(),
            "outside"
        );
    }
}
