//! Order statistics of a few samples.

use serde::{Deserialize, Serialize};

/// The spread of a series of measurements of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// Least.
    pub(crate) min: f64,
    /// The 10 % quantile: what the thing costs when nothing disturbs it.
    pub(crate) p10: f64,
    /// The middle.
    pub(crate) median: f64,
    /// Greatest.
    pub(crate) max: f64,
}

impl Spread {
    /// The spread of `samples`; nothing when there are none.
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            min: *sorted.first()?,
            p10: quantile(&sorted, 0.1),
            median: quantile(&sorted, 0.5),
            max: *sorted.last()?,
        })
    }
}

/// The quantile of samples in ascending order, interpolated between neighbours (Hyndman and Fan's type 7, the
/// default of R and NumPy).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_numpy() {
        // numpy.quantile([15, 20, 35, 40, 50], [0.1, 0.5]) = 17.0, 35.0
        let spread = Spread::of([40.0, 15.0, 50.0, 20.0, 35.0]).unwrap();
        assert_eq!(
            spread,
            Spread {
                min: 15.0,
                p10: 17.0,
                median: 35.0,
                max: 50.0
            }
        );
        // An even count: the median lies between the two in the middle.
        assert_eq!(Spread::of([1.0, 2.0, 3.0, 4.0]).unwrap().median, 2.5);
    }

    #[test]
    fn one_sample_is_all_of_its_quantiles_and_none_has_none() {
        assert_eq!(
            Spread::of([7.0]).unwrap(),
            Spread {
                min: 7.0,
                p10: 7.0,
                median: 7.0,
                max: 7.0
            }
        );
        assert_eq!(Spread::of([]), None);
    }
}
