//! Floor map of the building: walls, collision checks and ray casting.

use pteros::interfaces::nav_msgs::msg::OccupancyGrid;

/// Width of a character of the drawing in metres.
const RESOLUTION: f32 = 0.25;
/// Value of a wall in an occupancy grid.
const WALL: i8 = 100;

/// A cell by column and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GridCell {
    pub x: usize,
    pub y: usize,
}

/// A grid of free and occupied cells with its lower left corner at the origin.
#[derive(Clone, Debug)]
pub struct FloorMap {
    width: usize,
    height: usize,
    resolution: f64,
    occupied: Vec<bool>,
}

impl FloorMap {
    /// The built-in building: two rooms above a hall, 10 by 6 metres.
    pub fn built_in() -> Self {
        let rows: Vec<&str> = include_str!("floor.txt").lines().rev().collect();
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let cell = |row: &&str, x| row.as_bytes().get(x).is_none_or(|cell| *cell == b'#');
        let occupied = rows
            .iter()
            .flat_map(|row| (0..width).map(move |x| cell(row, x)));
        Self {
            width,
            height: rows.len(),
            resolution: f64::from(RESOLUTION),
            occupied: occupied.collect(),
        }
    }

    /// From an occupancy grid. Unknown cells count as walls.
    pub fn from_map(map: &OccupancyGrid) -> Option<Self> {
        let (width, height) = (
            usize::try_from(map.info.width).ok()?,
            usize::try_from(map.info.height).ok()?,
        );
        let is_sound = width.checked_mul(height) == Some(map.data.len());
        let resolution = f64::from(map.info.resolution);
        (is_sound && resolution > 0.0).then(|| Self {
            width,
            height,
            resolution,
            occupied: map.data.iter().map(|cell| *cell != 0).collect(),
        })
    }

    /// As an occupancy grid.
    pub fn map(&self) -> OccupancyGrid {
        let mut map = OccupancyGrid::default();
        map.info.resolution = RESOLUTION;
        map.info.width = u32::try_from(self.width).unwrap_or(0);
        map.info.height = u32::try_from(self.height).unwrap_or(0);
        map.info.origin.orientation.w = 1.0;
        map.data = self
            .occupied
            .iter()
            .map(|wall| if *wall { WALL } else { 0 })
            .collect();
        map
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// The cell that a point is in; `None` outside.
    pub fn cell(&self, [x, y]: [f64; 2]) -> Option<GridCell> {
        let index = |metres: f64, count: usize| {
            let index = (metres / self.resolution).floor();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be from 0 to a count"
            )]
            (index >= 0.0 && index < count as f64).then_some(index as usize)
        };
        Some(GridCell {
            x: index(x, self.width)?,
            y: index(y, self.height)?,
        })
    }

    /// The centre of a cell.
    pub fn middle(&self, cell: GridCell) -> [f64; 2] {
        [cell.x, cell.y].map(|index| (index as f64 + 0.5) * self.resolution)
    }

    /// Whether the cell is a wall. All cells outside of the map are walls.
    pub fn is_wall(&self, cell: GridCell) -> bool {
        let inside = cell.x < self.width && cell.y < self.height;
        !inside || self.occupied[cell.y * self.width + cell.x]
    }

    /// Whether a disc at this point touches no wall.
    pub fn is_free_around(&self, [x, y]: [f64; 2], radius: f64) -> bool {
        self.is_free([x, y])
            && (0..16).all(|part| {
                let (sin, cos) = (f64::from(part) * std::f64::consts::TAU / 16.0).sin_cos();
                self.is_free([x + radius * cos, y + radius * sin])
            })
    }

    fn is_free(&self, point: [f64; 2]) -> bool {
        self.cell(point).is_some_and(|cell| !self.is_wall(cell))
    }

    /// Whether a disc can move straight from one point to the other.
    pub fn is_clear(&self, from: [f64; 2], to: [f64; 2], radius: f64) -> bool {
        let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
        let steps = (dx.hypot(dy) / (self.resolution / 4.0)).ceil().max(1.0);
        let mut step = 0.0;
        while step <= steps {
            let part = step / steps;
            if !self.is_free_around([from[0] + dx * part, from[1] + dy * part], radius) {
                return false;
            }
            step += 1.0;
        }
        true
    }

    /// Distance along a ray to the next wall; at most `range_max`.
    pub fn cast_ray(&self, [x, y]: [f64; 2], angle: f64, range_max: f64) -> f64 {
        let (sin, cos) = angle.sin_cos();
        let step = self.resolution / 20.0;
        let mut range = 0.0;
        while range < range_max {
            if !self.is_free([x + range * cos, y + range * sin]) {
                return range;
            }
            range += step;
        }
        range_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rays_end_at_the_walls_of_the_map() {
        let floor = FloorMap::built_in();
        assert_eq!(floor.size(), (40, 24));
        let range = floor.cast_ray([1.0, 1.0], std::f64::consts::PI, 10.0);
        assert!((range - 0.75).abs() < 0.02, "{range}");
        assert_eq!(floor.cast_ray([1.0, 1.0], 0.0, 0.5), 0.5);
        assert!(floor.is_free_around([1.0, 1.0], 0.25) && !floor.is_free_around([0.4, 1.0], 0.25));
        assert!(floor.is_clear([1.0, 0.5], [9.0, 0.5], 0.2));
        assert!(!floor.is_clear([1.0, 1.0], [1.0, 5.0], 0.2));
        let again = FloorMap::from_map(&floor.map()).unwrap();
        assert_eq!(again.occupied, floor.occupied);
        let mut broken = floor.map();
        broken.data.pop();
        assert!(FloorMap::from_map(&broken).is_none());
    }
}
