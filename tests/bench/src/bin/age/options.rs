//! The command line of this benchmark, and the ages that it knows.

use std::path::PathBuf;

use bench::Failure;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
bench age: what a data folder's age costs

  --ages LIST     day,month,year,decade: which folders to measure [default: all]; the first is what the others are
                  compared with
  --store LIST    files,nats: on which stores [default: both]
  --divide N      a day has 20,000 / N messages and 500 / N sessions [default: 1; on NATS 10]
  --runs N        how often each quick row is measured [default: 10; slow rows 3, and never more than N]
  --rows WORD     only the rows whose name contains this
  --keep DIR      keep the folders there, and reuse those that are less than six hours old;
                  on NATS only with --no-gc, because what `gc` deleted is gone
  --counts        only what grows with a number: acknowledging 10,000 messages, 50,000 sessions on record
  --no-counts     all but that
  --no-gc         skip `serve`, `gc` and the columns after them
  --plot FILE     write a plot of the growth laws; the one of NATS goes to FILE with `-nats` in its name
  --check         exit with 1 if a row is over its budget
";

/// The age of a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// One day.
    Day,
    /// Thirty days.
    Month,
    /// 365 days.
    Year,
    /// 3,650 days, with a tenth of the mail and of the sessions of each.
    Decade,
}

impl Age {
    const ALL: [Age; 4] = [Age::Day, Age::Month, Age::Year, Age::Decade];

    /// The word for it on the command line and in paths.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Age::Day => "day",
            Age::Month => "month",
            Age::Year => "year",
            Age::Decade => "decade",
        }
    }

    /// The heading of its column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Age::Day => "day",
            Age::Month => "month",
            Age::Year => "year",
            Age::Decade => "ten years at a tenth",
        }
    }

    /// How many days it has.
    pub(crate) fn days(self) -> u64 {
        match self {
            Age::Day => 1,
            Age::Month => 30,
            Age::Year => 365,
            Age::Decade => 3_650,
        }
    }

    /// The part of the usual volume that each of its days has.
    pub(crate) fn divisor(self) -> u64 {
        match self {
            Age::Day | Age::Month | Age::Year => 1,
            Age::Decade => 10,
        }
    }

    /// The ratio to the day that a row may have.
    pub(crate) fn allowance(self) -> f64 {
        match self {
            Age::Day | Age::Month | Age::Year => 1.5,
            Age::Decade => 2.0,
        }
    }
}

/// What is measured, and how.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The ages, in the order of the columns.
    pub(crate) ages: Vec<Age>,
    /// Whether to measure a data folder.
    pub(crate) files: bool,
    /// Whether to measure a NATS server.
    pub(crate) nats: bool,
    /// The divisor of the volume, if the user chose one.
    pub(crate) divide: Option<u64>,
    /// How often a quick row is measured.
    pub(crate) runs: usize,
    /// Only rows whose name contains this.
    pub(crate) rows: Option<String>,
    /// Where folders are kept.
    pub(crate) keep: Option<PathBuf>,
    /// Whether to measure what changes the folders, and what comes after that.
    pub(crate) gc: bool,
    /// Whether to measure what grows with a number, and whether nothing else.
    pub(crate) counts: bool,
    pub(crate) counts_alone: bool,
    /// Where the plot goes.
    pub(crate) plot: Option<PathBuf>,
    /// Whether a row over its budget is a failure.
    pub(crate) check: bool,
}

impl Options {
    /// Parses the arguments; none if help was asked for.
    pub(crate) fn of(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, Failure> {
        let mut options = Options {
            ages: Age::ALL.to_vec(),
            files: true,
            nats: true,
            divide: None,
            runs: 10,
            rows: None,
            keep: None,
            gc: true,
            counts: true,
            counts_alone: false,
            plot: None,
            check: false,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{argument}` needs a value; see --help"));
            match argument.as_str() {
                "--ages" => options.ages = value()?.split(',').map(age).collect::<Result<_, _>>()?,
                "--store" => {
                    let stores = value()?;
                    let has = |word: &str| stores.split(',').any(|store| store == word);
                    (options.files, options.nats) = (has("files"), has("nats"));
                }
                "--divide" => options.divide = Some(value()?.parse::<u64>()?.max(1)),
                "--runs" => options.runs = value()?.parse::<usize>()?.max(1),
                "--rows" => options.rows = Some(value()?),
                // Processes that run in other folders are given it.
                "--keep" => options.keep = Some(std::path::absolute(value()?)?),
                "--no-gc" => options.gc = false,
                "--counts" => options.counts_alone = true,
                "--no-counts" => options.counts = false,
                "--plot" => options.plot = Some(value()?.into()),
                "--check" => options.check = true,
                "--help" | "-h" => return Ok(None),
                other => return Err(format!("`{other}` is not an option; see --help").into()),
            }
        }
        if !options.files && !options.nats {
            return Err("`--store` names neither `files` nor `nats`".into());
        }
        Ok(Some(options))
    }
}

fn age(word: &str) -> Result<Age, Failure> {
    Age::ALL
        .into_iter()
        .find(|age| age.word() == word)
        .ok_or_else(|| format!("`{word}` is not an age: write `day`, `month`, `year` or `decade`").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Option<Options> {
        Options::of(arguments.iter().map(|&word| word.to_owned())).ok().flatten()
    }

    #[test]
    fn a_developer_chooses_ages_and_store() {
        let options = parsed(&["--ages", "day,month", "--store", "files", "--runs", "3"]).expect("options");
        assert_eq!((options.ages, options.files, options.nats), (vec![Age::Day, Age::Month], true, false));
        assert_eq!(options.runs, 3);
    }

    #[test]
    fn unknown_words_are_refused() {
        for arguments in [&["--ages", "week"][..], &["--store", "sqlite"], &["day"], &["--runs"]] {
            assert!(parsed(arguments).is_none(), "{arguments:?}");
        }
    }
}
