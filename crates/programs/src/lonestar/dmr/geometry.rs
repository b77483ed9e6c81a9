//! Exact plane geometry on integer coordinates.

/// A point. Input coordinates are below 2^24; circumcentre coordinates have magnitudes below 2^30.
pub(super) type Point = [i64; 2];

/// Largest coordinate for a circumcentre: farther circumcentres are moved to this limit, still far outside.
const FARTHEST: i128 = 1 << 30;
/// Squared side length below which a triangle is left unchanged, so that rounding at its centre remains comparatively
/// small.
pub(super) const LEAST: i64 = 64 * 64;

/// Twice the area of a triangle, positive for counterclockwise corners.
pub(super) fn area([a, b, c]: [Point; 3]) -> i64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Squared distance between two points in the plane.
pub(super) fn square(a: Point, b: Point) -> i64 {
    (b[0] - a[0]).pow(2) + (b[1] - a[1]).pow(2)
}

/// True if a point lies strictly inside the circle through a counterclockwise triangle's corners.
pub(super) fn in_circle(triangle: [Point; 3], point: Point) -> bool {
    let [a, b, c] = triangle.map(|corner| {
        let [x, y] = [0, 1].map(|axis| i128::from(corner[axis] - point[axis]));
        [x, y, x * x + y * y]
    });
    let minor = |p: [i128; 3], q: [i128; 3]| p[0] * q[1] - p[1] * q[0];
    a[2] * minor(b, c) + b[2] * minor(c, a) + c[2] * minor(a, b) > 0
}

/// Centre of the circle through a triangle's corners, rounded to integer coordinates.
pub(super) fn circumcentre(triangle: [Point; 3]) -> Point {
    let [a, b, c] = triangle;
    let [b, c] = [b, c].map(|corner| [0, 1].map(|axis| i128::from(corner[axis] - a[axis])));
    let (long, wide) = (b[0] * b[0] + b[1] * b[1], c[0] * c[0] + c[1] * c[1]);
    let twice = 2 * i128::from(area(triangle));
    let place =
        [c[1] * long - b[1] * wide, b[0] * wide - c[0] * long].map(|above| (2 * above + twice).div_euclid(2 * twice));
    [0, 1].map(|axis| (i128::from(a[axis]) + place[axis]).clamp(-FARTHEST, FARTHEST) as i64)
}

/// True if the smallest angle is below 30 degrees: the circle's radius exceeds the shortest side. Source: LonestarGPU
/// dmr (`MINANGLE`). Triangles with a side below the square root of [`LEAST`] are not bad.
pub(super) fn is_bad(triangle: [Point; 3]) -> bool {
    let [a, b, c] = triangle;
    let mut sides = [square(a, b), square(b, c), square(c, a)];
    sides.sort_unstable();
    // R² = l² m² n² / (4 area²) for sides l, m, n; `area` is the doubled area.
    let area = i128::from(area(triangle));
    sides[0] >= LEAST && i128::from(sides[1]) * i128::from(sides[2]) > 4 * area * area
}

/// True if a point lies strictly inside the circle whose diameter is a segment.
pub(super) fn encroaches(point: Point, [a, b]: [Point; 2]) -> bool {
    (a[0] - point[0]) * (b[0] - point[0]) + (a[1] - point[1]) * (b[1] - point[1]) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_and_angles_are_exact() {
        let right = [[0, 0], [600, 0], [0, 800]];
        assert_eq!((area(right), circumcentre(right)), (480_000, [300, 400]));
        assert!(in_circle(right, [600, 799]) && !in_circle(right, [600, 800]) && !in_circle(right, [601, 801]));
        assert!(!is_bad(right), "36.9 degrees");
        assert!(is_bad([[0, 0], [1000, 0], [0, 400]]), "21.8 degrees");
        assert!(!is_bad([[0, 0], [1000, 0], [0, 40]]), "too small to mend");
        assert!(encroaches([500, 499], [[0, 0], [1000, 0]]) && !encroaches([500, 500], [[0, 0], [1000, 0]]));
    }

    #[test]
    fn the_centre_of_a_needle_stays_in_range() {
        let [x, y] = circumcentre([[0, 0], [1 << 23, 1], [1 << 24, 1]]);
        assert!(x.abs() <= 1 << 30 && y.abs() <= 1 << 30);
    }
}
