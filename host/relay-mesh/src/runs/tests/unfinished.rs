//! Worktrees whose process was killed while git made them: of a run, a pipeline and a driven agent. Nothing of them is left
//! in the user's repository, or they are made once more.

use std::os::unix::fs::PermissionsExt;

use mesh::DryRun;
use mesh::driven::{DrivenId, WantedAgent};
use mesh::ports::machine::Instant;
use mesh::reviews::PipelineRecord;
use mesh::runs::RunId;

use super::*;
use crate::driven::{self, DrivenFolder};
use crate::pipelines::begin as pipelines;
use crate::pipelines::{PipelineFolder, Pipelines};
use crate::runs::worktrees;

/// What git leaves of a worktree, as a script makes it of a whole one: all of it; what it had locked, without an index; the
/// branch alone.
const LEFT: [&str; 3] = [
    ":",
    "for one in .git/worktrees/*; do rm \"$one/index\"; echo initializing > \"$one/locked\"; done",
    "for one in .git/worktrees/*; do git worktree remove --force \"$(dirname \"$(cat \"$one/gitdir\")\")\"; done",
];
/// An id of November 2024.
const OLD: &str = "01JD8Z3K5V0000000000000000";

/// A stage whose git stops the first time that it makes a worktree.
struct Stopped {
    stage: Stage,
    tools: tempfile::TempDir,
}

impl Stopped {
    fn leaving(left: &str) -> Stopped {
        let tools = tempfile::tempdir().expect("a folder");
        let (git, made) = (tools.path().join("git"), tools.path().join("made"));
        let usual = "/usr/bin:/bin:/usr/local/bin";
        let script = format!(
            "#!/bin/sh\nPATH={usual}\ngit \"$@\" || exit\ncase \"$*\" in *'worktree add'*) ;; *) exit 0;; esac\n\
            [ -e '{made}' ] && exit 0\n{left}\ntouch '{made}'; sleep 300\n",
            made = made.display()
        );
        std::fs::write(&git, script).expect("written");
        std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let path = format!("{}:{usual}", tools.path().display());
        let stage = Stage::with(ANSWERS, "exit 9", &[("PATH", &path)]).with_repository();
        Stopped { stage, tools }
    }

    /// Begins something, and kills it once git has stopped.
    async fn kill<T>(&self, begins: impl Future<Output = T>) {
        let made = self.tools.path().join("made");
        let is_made = async {
            while !made.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        // Dropping it closes what it has begun, as the system does when a process is killed.
        tokio::select! { _ = begins => panic!("it goes on"), () = is_made => {} }
    }

    fn branch(&self, id: RunId) -> PathBuf {
        self.stage.project().join(".git/refs/heads").join(changes::branch(id))
    }

    /// Nothing of a worktree is left, beside it and in the repository.
    fn nothing_is_left(&self, id: RunId, worktree: &Path) {
        assert!(!worktree.exists() && worktrees::noted(worktree).is_none());
        assert!(!self.branch(id).exists(), "its branch");
        let known = std::fs::read_dir(self.stage.project().join(".git/worktrees")).into_iter().flatten().count();
        assert_eq!(known, 0, "what git knows of it");
    }

    /// A worktree is there as its commit has it, and nothing says that it is unused.
    async fn is_whole(&self, worktree: &Path) {
        let git = changes::git(&self.stage.context);
        assert!(worktree.join("old").exists());
        assert!(git.status(worktree).await.expect("a worktree").is_clean());
        assert_eq!(worktrees::noted(worktree), None);
    }

    /// A pipeline that is killed while git makes its worktree.
    async fn killed_pipeline(&self) -> (PipelineFolder, PipelineRecord) {
        let Stage { context, open, .. } = &self.stage;
        let user = permission::Evidence { asker: Asker::User, parent: None };
        self.kill(pipelines::begin(context, open, &user, pipeline_request(&self.stage))).await;
        let (folder, record) = Pipelines::of(&context.settings.dir.value).find("last").expect("a record");
        assert!(self.branch(record.id).exists());
        let record = PipelineRecord { supervisor: dead(), ..record };
        folder.keep(&record).expect("kept");
        (folder, record)
    }

    /// A driven agent that is killed while git makes its worktree.
    async fn killed_agent(&self) -> (DrivenId, WantedAgent, DrivenFolder) {
        let Stage { context, open, .. } = &self.stage;
        let id: DrivenId = OLD.parse().expect("an id");
        let folder = self.stage.project();
        let wanted = WantedAgent { harness: NAME.to_owned(), folder, worktree: true, ..WantedAgent::default() };
        self.kill(driven::begin::begin(context, open, id, &wanted)).await;
        assert!(open.mesh.driven(id).await.expect("asked").is_none(), "no process drives it");
        assert!(self.branch(RunId(id.0)).exists());
        (id, wanted, DrivenFolder::of(&context.settings.dir.value, id))
    }
}

#[tokio::test]
async fn that_of_a_run_goes() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let stage = &stopped.stage;
        let request = RunRequest { reach: Reach::Edit, ..stage.request() };
        stopped.kill(begin::begin(&stage.context, &stage.open, request)).await;
        let (folder, mut record) = stage.runs().live().pop().expect("a record");
        assert!(stopped.branch(record.id).exists());
        record.supervisor = dead();
        folder.keep(&record).expect("kept");
        settle::settle(&stage.context, &stage.open, &stage.runs()).await;
        assert!(folder.record().expect("a record").ended.is_some());
        stopped.nothing_is_left(record.id, &folder.worktree());
    }
}

#[tokio::test]
async fn that_of_a_pipeline_goes_with_it() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let Stage { context, open, .. } = &stopped.stage;
        let (folder, record) = stopped.killed_pipeline().await;
        let (pipelines, git) = (Pipelines::of(&context.settings.dir.value), changes::git(context));
        let mut kept = Vec::new();
        let (later, how) = (Instant(u64::MAX), (DryRun::No, &mut kept));
        let deleted = pipelines.delete_old(&git, later, open.machine.as_ref(), how).await;
        assert_eq!((deleted.count, kept), (1, Vec::new()), "{left}");
        assert_eq!(pipelines.ids(), []);
        stopped.nothing_is_left(record.id, &folder.worktree());
    }
}

#[tokio::test]
async fn that_of_a_pipeline_is_made_once_more_when_it_goes_on() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let Stage { context, open, .. } = &stopped.stage;
        let (folder, record) = stopped.killed_pipeline().await;
        let begun = pipelines::resume(context, open, folder.clone(), record).await;
        let begun = begun.unwrap_or_else(|error| panic!("{left}: {}", mesh::reasons(&error)));
        stopped.is_whole(&begun.record.folder).await;
        assert_eq!(folder.record().expect("a record"), begun.record);
        // What was worked on stays, although nothing was noted of it.
        std::fs::write(folder.worktree().join("new"), "new\n").expect("written");
        drop(begun.alone);
        let again = pipelines::resume(context, open, folder.clone(), begun.record).await;
        let again = again.unwrap_or_else(|error| panic!("{left}: {}", mesh::reasons(&error)));
        assert!(again.record.folder.join("new").exists(), "{left}");
    }
}

#[tokio::test]
async fn that_of_a_driven_agent_goes_with_its_folder() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let Stage { context, open, .. } = &stopped.stage;
        let (id, _, folder) = stopped.killed_agent().await;
        let (data, git) = (&context.settings.dir.value, changes::git(context));
        let mut kept = Vec::new();
        for dry_run in [DryRun::Yes, DryRun::No] {
            assert!(folder.root.exists(), "{left}: {dry_run:?}");
            let deleted = driven::folder::clean_up(data, open, &git, (dry_run, &mut kept)).await.expect("cleaned up");
            assert_eq!((deleted.count, kept.len()), (1, 0), "{left}: {kept:?}");
        }
        assert!(!folder.root.exists());
        stopped.nothing_is_left(RunId(id.0), &folder.worktree());
    }
}

/// As after the user's answer: the next process begins the agent under the id of the question.
#[tokio::test]
async fn that_of_a_driven_agent_is_made_once_more_when_it_is_begun_again() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let Stage { context, open, .. } = &stopped.stage;
        let (id, wanted, _) = stopped.killed_agent().await;
        let begun = driven::begin::begin(context, open, id, &wanted).await;
        let begun = begun.unwrap_or_else(|error| panic!("{left}: {}", mesh::reasons(&error)));
        stopped.is_whole(&begun.record.agent.folder).await;
        assert!(open.mesh.driven(id).await.expect("asked").is_some());
    }
}

/// A note is no proof against what git finds: an earlier version works in a worktree and leaves the note.
#[tokio::test]
async fn what_was_worked_on_stays_although_it_is_noted() {
    let stopped = Stopped::leaving(":");
    let Stage { context, open, .. } = &stopped.stage;
    let (id, _, folder) = stopped.killed_agent().await;
    std::fs::write(folder.worktree().join("new"), "new\n").expect("written");
    let (data, git) = (&context.settings.dir.value, changes::git(context));
    for dry_run in [DryRun::Yes, DryRun::No] {
        let mut kept = Vec::new();
        let deleted = driven::folder::clean_up(data, open, &git, (dry_run, &mut kept)).await.expect("cleaned up");
        assert_eq!((deleted.count, kept), (0, vec![folder.worktree().display().to_string()]), "{dry_run:?}");
    }
    assert!(folder.worktree().join("new").exists() && stopped.branch(RunId(id.0)).exists());
}

#[tokio::test]
async fn that_of_a_driven_agent_goes_when_it_is_refused_the_next_time() {
    for left in LEFT {
        let stopped = Stopped::leaving(left);
        let Stage { context, open, .. } = &stopped.stage;
        let (id, wanted, folder) = stopped.killed_agent().await;
        std::fs::write(stopped.stage.project().join("old"), "changed\n").expect("written");
        let refused = driven::begin::begin(context, open, id, &wanted).await;
        assert!(refused.is_err_and(|error| mesh::reasons(&error).contains("changed file")), "{left}");
        assert!(!folder.root.exists());
        stopped.nothing_is_left(RunId(id.0), &folder.worktree());
    }
}

#[tokio::test]
async fn a_pipeline_whose_worktree_cannot_be_made_again_keeps_its_record() {
    let stopped = Stopped::leaving(LEFT[2]);
    let Stage { context, open, .. } = &stopped.stage;
    let (folder, record) = stopped.killed_pipeline().await;
    // Its branch has a commit by now that no other has, and the folder of its repository another one.
    let git = |words: &[&str]| stopped.stage.git(words);
    git(&["commit", "--quiet", "--allow-empty", "-m", "second"]);
    git(&["branch", "--force", &changes::branch(record.id), "HEAD"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "third"]);
    let before = folder.record().expect("a record");
    let refused = pipelines::resume(context, open, folder.clone(), record).await;
    assert!(refused.is_err_and(|error| mesh::reasons(&error).contains("already exists")));
    assert_eq!(folder.record().expect("a record"), before);
    assert!(!folder.worktree().exists() && worktrees::noted(&folder.worktree()).is_none());
    assert!(stopped.branch(before.id).exists(), "it has a commit of its own");
}
