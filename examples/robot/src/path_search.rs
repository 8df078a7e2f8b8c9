//! Path search: A* on the cells with a penalty near walls, then a shortcut of
//! corners.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::floor_map::{FloorMap, GridCell};

/// Cost of a straight step. A diagonal one costs its length.
const STRAIGHT_COST: u32 = 1_000;
const DIAGONAL_COST: u32 = 1_414;
/// Penalty of a step close to a wall, so that paths stay in wide passages.
const NARROW_COST: u32 = 2_000;

/// Points from start to goal for a disc of this radius. `None` if there is no path,
/// or if start or goal is in a wall. Visits each cell a few times at most.
pub fn shortest_path(
    floor: &FloorMap,
    from: [f64; 2],
    to: [f64; 2],
    radius: f64,
) -> Option<Vec<[f64; 2]>> {
    let (start, goal) = (floor.cell(from)?, floor.cell(to)?);
    if !floor.is_free_around(to, radius) {
        return None;
    }
    let cells = search_cells(floor, start, goal, radius)?;
    let mut points = vec![from];
    points.extend(cells.iter().skip(1).map(|cell| floor.middle(*cell)));
    points.pop();
    points.push(to);
    Some(shortcut(floor, &points, radius))
}

fn search_cells(
    floor: &FloorMap,
    start: GridCell,
    goal: GridCell,
    radius: f64,
) -> Option<Vec<GridCell>> {
    let (width, height) = floor.size();
    let index = |cell: GridCell| cell.y * width + cell.x;
    let far = |cell: GridCell| {
        let (dx, dy) = (cell.x.abs_diff(goal.x), cell.y.abs_diff(goal.y));
        let (less, more) = (dx.min(dy), dx.max(dy));
        let cost = |steps: usize, each| {
            u32::try_from(steps)
                .unwrap_or(u32::MAX)
                .saturating_mul(each)
        };
        cost(less, DIAGONAL_COST).saturating_add(cost(more - less, STRAIGHT_COST))
    };
    let mut best = vec![u32::MAX; width * height];
    let mut came_from = vec![None; width * height];
    best[index(start)] = 0;
    let mut open = BinaryHeap::from([Reverse((far(start), 0, start))]);
    while let Some(Reverse((_, so_far, cell))) = open.pop() {
        if cell == goal {
            let mut path = vec![goal];
            while let Some(before) = path.last().and_then(|cell| came_from[index(*cell)]) {
                path.push(before);
            }
            path.reverse();
            return Some(path);
        }
        if so_far > best[index(cell)] {
            continue;
        }
        for (next, step) in neighbours(cell) {
            let middle = floor.middle(next);
            // A goal may be as close to a wall as the robot can stand.
            if next != goal && !floor.is_free_around(middle, radius) {
                continue;
            }
            let narrow = if floor.is_free_around(middle, radius * 2.0) {
                0
            } else {
                NARROW_COST
            };
            let cost = so_far + step + narrow;
            if next.x < width && next.y < height && cost < best[index(next)] {
                best[index(next)] = cost;
                came_from[index(next)] = Some(cell);
                open.push(Reverse((cost + far(next), cost, next)));
            }
        }
    }
    None
}

fn neighbours(cell: GridCell) -> impl Iterator<Item = (GridCell, u32)> {
    let steps = [-1, 0, 1];
    let pairs = steps
        .into_iter()
        .flat_map(move |dx| steps.map(|dy| (dx, dy)));
    pairs
        .filter(|step| *step != (0, 0))
        .filter_map(move |(dx, dy)| {
            let next = GridCell {
                x: cell.x.checked_add_signed(dx)?,
                y: cell.y.checked_add_signed(dy)?,
            };
            Some((
                next,
                if dx == 0 || dy == 0 {
                    STRAIGHT_COST
                } else {
                    DIAGONAL_COST
                },
            ))
        })
}

/// Drops points that a straight line with clearance can bypass.
fn shortcut(floor: &FloorMap, points: &[[f64; 2]], radius: f64) -> Vec<[f64; 2]> {
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
    fn the_path_leads_through_the_door() {
        let floor = FloorMap::built_in();
        let path = shortest_path(&floor, [1.0, 5.0], [9.0, 1.0], 0.22).unwrap();
        assert_eq!((path[0], path[path.len() - 1]), ([1.0, 5.0], [9.0, 1.0]));
        for pair in path.windows(2) {
            assert!(floor.is_clear(pair[0], pair[1], 0.2), "{path:?}");
        }
        assert!(path.len() < 12, "corners are cut: {path:?}");
        assert!(
            shortest_path(&floor, [1.0, 5.0], [0.1, 0.1], 0.22).is_none(),
            "in a wall"
        );
        assert!(
            shortest_path(&floor, [1.0, 5.0], [99.0, 0.1], 0.22).is_none(),
            "outside"
        );
    }
}
