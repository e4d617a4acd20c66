//! Two things measured in turns.

use std::time::Duration;

use crate::Failure;

/// Runs that are thrown away, so that files and caches are warm.
const WARM_UP: usize = 20;
/// Runs that count.
const RUNS: usize = 300;

/// What two things took, measured in turns.
pub struct Compared {
    /// The median of what is measured.
    pub subject: Duration,
    /// The median of what it is measured against.
    pub baseline: Duration,
}

impl Compared {
    /// How many times as long the subject took.
    pub fn ratio(&self) -> f64 {
        self.subject.as_secs_f64() / self.baseline.as_secs_f64()
    }
}

/// Runs both in turns, many times, and takes the median of each.
pub fn compare(
    mut subject: impl FnMut() -> Result<Duration, Failure>,
    mut baseline: impl FnMut() -> Result<Duration, Failure>,
) -> Result<Compared, Failure> {
    let mut subjects = Vec::with_capacity(RUNS);
    let mut baselines = Vec::with_capacity(RUNS);
    for run in 0..WARM_UP + RUNS {
        let took = subject()?;
        // What the subject leaves behind (a journal that the disk still writes, memory that is
        // given back) delays whatever starts next. That is not the baseline's own time.
        baseline()?;
        let pair = (took, baseline()?);
        if run >= WARM_UP {
            subjects.push(pair.0);
            baselines.push(pair.1);
        }
    }
    Ok(Compared { subject: median(subjects), baseline: median(baselines) })
}

/// Runs one thing many times and takes the median.
pub fn median_of(mut run: impl FnMut() -> Result<Duration, Failure>) -> Result<Duration, Failure> {
    let times: Vec<Duration> = (0..WARM_UP + RUNS).map(|_| run()).collect::<Result<_, _>>()?;
    Ok(median(times.into_iter().skip(WARM_UP).collect()))
}

/// The median.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_move_the_median() {
        let times = [3, 1, 900, 2, 4].map(Duration::from_millis).to_vec();
        assert_eq!(median(times), Duration::from_millis(3));
    }

    #[test]
    fn a_ratio_is_the_subject_over_the_baseline() {
        let compared = Compared { subject: Duration::from_millis(6), baseline: Duration::from_millis(2) };
        assert!((compared.ratio() - 3.0).abs() < 1e-9, "{}", compared.ratio());
    }
}
