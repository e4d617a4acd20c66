//! Where a thread works, read anew at each call. No program is started for it.

use std::path::Path;

use mesh::tool_threads::ThreadPlace;

use crate::git_checkout;

pub(super) fn of(folder: &Path) -> ThreadPlace {
    let Some(top) = git_checkout::top_of(folder) else { return ThreadPlace::default() };
    let everywhere = git_checkout::checkout(&top).ok().and_then(|checkout| checkout.everywhere);
    let own_name = || Some(top.file_name()?.to_string_lossy().into_owned());
    ThreadPlace {
        repository: Some(top.display().to_string()),
        name: everywhere.or_else(own_name),
        branch: git_checkout::branch_of(&top),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_repository_and_branch_are_those_of_this_moment() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = std::fs::canonicalize(folder.path()).expect("there").join("shop");
        let below = top.join("web");
        std::fs::create_dir_all(&below).expect("a folder");
        std::fs::create_dir_all(top.join(".git")).expect("a folder");
        let head = |text: &str| std::fs::write(top.join(".git/HEAD"), text).expect("writable");
        head("ref: refs/heads/topic/a\n");
        let place = of(&below);
        assert_eq!(place.repository.as_deref(), top.to_str());
        assert_eq!((place.name.as_deref(), place.branch.as_deref()), (Some("shop"), Some("topic/a")));
        head("4631062e04d9519e1e6e0ffe8f635e937c552cb3\n");
        assert_eq!(of(&below).branch.as_deref(), Some("4631062e04d9"));
        assert_eq!(of(folder.path()), ThreadPlace::default());
    }
}
