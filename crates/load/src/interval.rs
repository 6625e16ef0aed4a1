//! The interval in which the mean of independent runs lies with a confidence of 95 %.

/// Student's t for two tails of 2.5 %, by degrees of freedom from 1 on.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A mean, and how far the true one may be from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Half of the interval of 95 %.
    pub half: f64,
}

/// The interval of values that are drawn independently; `None` of fewer than two.
pub fn of(values: &[f64]) -> Option<MeanInterval> {
    let count = values.len();
    if count < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1) as f64).sqrt();
    let t = T.get(count - 2).copied().unwrap_or(1.96);
    Some(MeanInterval { mean, half: t * deviation / (count as f64).sqrt() })
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        assert_eq!(of(&[3.0]), None);
        let interval = of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(interval.mean, 2.5);
        assert!((interval.half - 3.182 * 1.290_994 / 2.0).abs() < 1e-3, "{interval:?}");
        assert_eq!(of(&[7.0; 40]), Some(MeanInterval { mean: 7.0, half: 0.0 }));
    }

    #[test]
    fn it_holds_the_true_mean_as_often_as_it_says() {
        let mut random = SmallRng::seed_from_u64(4);
        let mut draw = || (0..12).map(|_| random.random::<f64>()).sum::<f64>();
        let holds = |_: &i32| {
            let values: Vec<f64> = (0..10).map(|_| draw()).collect();
            of(&values).is_some_and(|interval| (interval.mean - 6.0).abs() <= interval.half)
        };
        let right = (0..4_000).filter(holds).count();
        assert!((3_740..3_860).contains(&right), "{right} of 4000");
    }
}
