//! A text's meaning as a direction in space, in one byte per dimension.

/// How many dimensions the model has.
pub const DIMENSIONS: usize = 384;

/// A direction. The closer the meaning of two texts, the smaller the angle between their vectors.
#[derive(Clone, PartialEq)]
pub struct Vector {
    values: [i8; DIMENSIONS],
    /// Makes the length 1: one divided by the length of `values`.
    scale: f32,
}

impl Vector {
    /// The vector of a text without meaning. It is similar to no other, not even to itself.
    pub const NOTHING: Vector = Vector { values: [0; DIMENSIONS], scale: 0.0 };

    /// Keeps the direction of `values`, as good as one byte each allows. What is not finite has no direction.
    pub fn new(values: &[f32; DIMENSIONS]) -> Vector {
        let largest = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        if !largest.is_normal() || values.iter().any(|value| value.is_nan()) {
            return Vector::NOTHING;
        }
        // Rounded and in -127..=127, so the cast loses nothing.
        Vector::of_bytes(values.map(|value| (value / largest * 127.0).round() as i8))
    }

    /// How alike two vectors are: 1 the same, 0 unrelated, -1 opposite.
    pub fn cosine(&self, other: &Vector) -> f32 {
        dot(&self.values, &other.values) as f32 * self.scale * other.scale
    }

    /// The direction in whole numbers, the largest of them 127 or -127.
    pub fn values(&self) -> &[i8; DIMENSIONS] {
        &self.values
    }

    /// The factor that scales the values to a length of 1; 0 without a direction.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    pub(crate) fn of_bytes(values: [i8; DIMENSIONS]) -> Vector {
        let square = dot(&values, &values);
        Vector { values, scale: if square == 0 { 0.0 } else { 1.0 / (square as f32).sqrt() } }
    }
}

impl std::fmt::Debug for Vector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Vector({:?}, …; scale {})", &self.values[..4], self.scale)
    }
}

/// The products of 384 pairs of bytes, added up; exact, since 384 × 128² fits into 32 bits with room to spare.
///
/// Written so that the compiler generates vector instructions on every machine: in blocks of 32 that are widened first,
/// it multiplies pairs of 16 bits together. The plain sum over pairs takes two and a half times as long without AVX2.
pub(crate) fn dot(a: &[i8; DIMENSIONS], b: &[i8; DIMENSIONS]) -> i32 {
    let blocks = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0);
    blocks
        .map(|(a, b)| {
            let (a, b) = (a.map(i16::from), b.map(i16::from));
            a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn floats(values: &[f32]) -> [f32; DIMENSIONS] {
        let mut all = [0.0; DIMENSIONS];
        all[..values.len()].copy_from_slice(values);
        all
    }

    #[test]
    fn length_does_not_matter_and_direction_does() {
        let check = |a: &[f32], b: &[f32], expected: f32| {
            let cosine = Vector::new(&floats(a)).cosine(&Vector::new(&floats(b)));
            assert!((cosine - expected).abs() < 0.01, "{a:?} {b:?}: {cosine}");
        };
        check(&[1.0, 2.0], &[1.0, 2.0], 1.0);
        check(&[1.0, 2.0], &[1e-20, 2e-20], 1.0);
        check(&[1.0, 2.0], &[-3.0, -6.0], -1.0);
        check(&[1.0, 2.0], &[2.0, -1.0], 0.0);
        check(&[1.0, 0.0], &[1.0, 1.0], std::f32::consts::FRAC_1_SQRT_2);
    }

    #[test]
    fn what_has_no_direction_is_like_nothing() {
        for values in [&[][..], &[f32::NAN, 1.0], &[f32::INFINITY], &[1e-42]] {
            let vector = Vector::new(&floats(values));
            assert_eq!(vector, Vector::NOTHING, "{values:?}");
            assert_eq!(vector.cosine(&vector), 0.0);
        }
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        assert_eq!(dot(&[-128; DIMENSIONS], &[-128; DIMENSIONS]), 384 * 128 * 128);
        assert_eq!(dot(&[-128; DIMENSIONS], &[127; DIMENSIONS]), -384 * 128 * 127);
    }

    proptest! {
        #[test]
        fn blocks_add_up_as_pairs_do(
            a in prop::collection::vec(any::<i8>(), DIMENSIONS),
            b in prop::collection::vec(any::<i8>(), DIMENSIONS),
        ) {
            let plain: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            prop_assert_eq!(dot(&a.try_into().expect("384"), &b.try_into().expect("384")), plain);
        }

        #[test]
        fn bytes_keep_the_cosine(
            a in prop::collection::vec(-1.0f32..1.0, DIMENSIONS),
            b in prop::collection::vec(-1.0f32..1.0, DIMENSIONS),
        ) {
            let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
            let exact = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>() / length(&a) / length(&b);
            let cosine = Vector::new(&floats(&a)).cosine(&Vector::new(&floats(&b)));
            prop_assert!((cosine - exact).abs() < 0.005, "{cosine} {exact}");
        }
    }
}
