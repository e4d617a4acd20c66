//! What an id of `relay-mesh runs` stands for: a run, a review or a pipeline.

use std::path::Path;

use mesh::reviews::{PipelineRecord, ReviewRecord, StepKind};
use mesh::runs::{RunId, RunRecord};

use crate::errors::CommandError;
use crate::pipelines::{PipelineFolder, Pipelines};
use crate::reviews::{ReviewFolder, Reviews};
use crate::runs::{RunFolder, Runs, RunsError, whole_id};

/// One of the three, with its record.
pub(super) enum Kept {
    Run(RunFolder, Box<RunRecord>),
    Review(ReviewFolder, ReviewRecord),
    Pipeline(PipelineFolder, PipelineRecord),
}

/// What a user means by an id. `last` is the newest run.
pub(super) fn find(data: &Path, typed: &str) -> Result<Kept, CommandError> {
    let mut typed = typed;
    let whole;
    if typed != "last" {
        // The beginning of an id is looked for among all three, so that it never stands for one of two.
        let known = || newest(data).into_iter().map(Listed::id).collect();
        match whole_id(typed, known) {
            Ok(id) => {
                whole = id.to_string();
                typed = &whole;
            }
            Err(RunsError::Unknown(_) | RunsError::NotAnId(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some((folder, record)) = Reviews::of(data).find(typed)? {
            return Ok(Kept::Review(folder, record));
        }
        if let Some((folder, record)) = Pipelines::of(data).look(typed)? {
            return Ok(Kept::Pipeline(folder, record));
        }
    }
    let (folder, record) = Runs::of(data).find(typed)?;
    Ok(Kept::Run(folder, Box::new(record)))
}

/// The runs of all steps of a pipeline until now.
pub(super) fn runs_of(data: &Path, record: &PipelineRecord) -> Vec<RunId> {
    let reviews = Reviews::of(data);
    let works = record.steps.iter().filter_map(|step| Some((step.kind, step.work?)));
    let of_step = |(kind, id)| match kind {
        StepKind::Implement | StepKind::Fix => vec![id],
        StepKind::Review => reviews.folder(id).record().map(|review| review.runs).unwrap_or_default(),
    };
    works.flat_map(of_step).collect()
}

/// What a list shows, the newest first: the ids of all three kinds.
pub(super) fn newest(data: &Path) -> Vec<Listed> {
    let runs = Runs::of(data).ids().into_iter().map(Listed::Run);
    let reviews = Reviews::of(data).ids().into_iter().map(Listed::Review);
    let pipelines = Pipelines::of(data).ids().into_iter().map(Listed::Pipeline);
    let mut all: Vec<Listed> = runs.chain(reviews).chain(pipelines).collect();
    all.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.id()));
    all
}

/// An id of which it is known what it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Listed {
    Run(RunId),
    Review(RunId),
    Pipeline(RunId),
}

impl Listed {
    fn id(self) -> RunId {
        match self {
            Listed::Run(id) | Listed::Review(id) | Listed::Pipeline(id) => id,
        }
    }
}
