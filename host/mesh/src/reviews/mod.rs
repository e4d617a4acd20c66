//! Reviews: what harnesses find in a change, held against the change itself. This folder holds the decisions: reading
//! the difference, what a reviewer is asked, where a finding lies, what is a double, what a second look refutes, and
//! where a suggestion still fits. Running the reviewers is the binary's work.

mod anchor;
mod diff;
mod doubles;
mod finding;
mod pipeline;
mod prompt;
mod quoted_path;
mod record;
mod suggestion;

pub use anchor::{Anchor, fingerprint};
pub use diff::{Diff, FileChange, FileDiff, Hunk, HunkLine, Portion};
pub use doubles::merge;
pub use finding::{Finding, Severity, UnknownSeverity, Verdict, findings_in, verdicts_in};
pub use pipeline::{Next, PipelineRecord, Step, StepKind, StepState, fix_task, next_step};
pub use prompt::{findings_schema, review_task, verdicts_schema, verify_task};
pub use record::{Review, ReviewEnd, ReviewRecord, Reviewed, ReviewedFile, ReviewerOutcome, Subject, counts_against};
pub use suggestion::{SuggestionError, apply_suggestion};
