//! The files that `plugin new` writes, from `templates/`, with blanks in double braces.

use super::new::Language;

/// A file of a template: its path in the new repository, and its text. Both may hold blanks.
pub(super) struct Template {
    /// With `/` between folders.
    pub(super) path: &'static str,
    /// Before the blanks are filled in.
    pub(super) text: &'static str,
}

/// Embeds files of one folder of `templates/`: a language's, or shared ones.
macro_rules! templates {
    ($folder:literal: $($path:literal),+ $(,)?) => {
        &[$(Template { path: $path, text: include_str!(concat!("../../../templates/", $folder, "/", $path)) }),+]
    };
}

/// Files of all languages.
const SHARED: &[Template] = templates!("shared":
    "LICENSE",
    "fixtures/hooks/1.0-after-tool-register.json",
    "fixtures/hooks/1.0-after-tool.json",
    "fixtures/hooks/1.0-before-tool-shell.json",
    "fixtures/hooks/1.0-before-tool-write.json",
    "fixtures/hooks/1.0-prompt-continued.json",
    "fixtures/hooks/1.0-prompt.json",
    "fixtures/hooks/1.0-session-end.json",
    "fixtures/hooks/1.0-session-start-resumed.json",
    "fixtures/hooks/1.0-session-start.json",
    "fixtures/hooks/1.0-turn-end.json",
    "fixtures/callers/1.0-another-client.json",
    "fixtures/callers/1.0-tools-call.json",
);

const RUST: &[Template] = templates!("rust":
    ".github/workflows/ci.yml",
    ".gitignore",
    "README.md",
    "adapter.toml",
    "fixtures/settings/with-comments/config/settings.json",
    "fixtures/settings/with-comments/project/.{{name}}/settings.json",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "src/hooks.rs",
    "src/install.rs",
    "src/lib.rs",
);

/// Has another name in `templates/`: Cargo packs no folder that holds a `Cargo.toml` of its own.
const RUST_MANIFEST: &[Template] =
    &[Template { path: "Cargo.toml", text: include_str!("../../../templates/rust/package.toml") }];

const PYTHON: &[Template] = templates!("python":
    ".github/workflows/ci.yml",
    ".gitignore",
    "README.md",
    "adapter.py",
    "adapter.toml",
    "build.py",
    "requirements.txt",
);

const JS: &[Template] = templates!("js":
    ".github/workflows/ci.yml",
    ".gitignore",
    "README.md",
    "adapter.js",
    "adapter.toml",
    "build.mjs",
    "package.json",
);

/// Fixtures for an adapter with a settings file of its own: without an sdk, it cannot edit other people's files and
/// keep their comments.
const OWN_FILE: &[Template] = templates!("own-file":
    "fixtures/settings/with-others/config/settings.d/theme.json",
    "fixtures/settings/with-others/project/.{{name}}/settings.d/tickets.json",
    "fixtures/settings/with-others/project/.{{name}}/settings.json",
);

/// The WIT files, for languages that have no sdk.
pub(super) const WIT: &[Template] = &[
    Template { path: "wit/adapter.wit", text: include_str!("../../../templates/sdk/wit/adapter.wit") },
    Template { path: "wit/host.wit", text: include_str!("../../../templates/sdk/wit/host.wit") },
    Template { path: "wit/types.wit", text: include_str!("../../../templates/sdk/wit/types.wit") },
];

/// Every file of a language's template.
pub(super) fn of(language: Language) -> impl Iterator<Item = &'static Template> {
    let parts: &[&[Template]] = match language {
        Language::Rust => &[SHARED, RUST, RUST_MANIFEST],
        Language::Python => &[SHARED, PYTHON, OWN_FILE, WIT],
        Language::Js => &[SHARED, JS, OWN_FILE, WIT],
    };
    parts.iter().copied().flatten()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    pub(in super::super) fn files_in(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of templates") {
            let entry = entry.expect("a folder of templates");
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true => files_in(&entry.path(), &format!("{path}/"), found),
                false => {
                    found.insert(path);
                }
            }
        }
    }

    #[test]
    fn every_file_in_templates_is_written() {
        for (folder, listed) in
            [("shared", SHARED), ("own-file", OWN_FILE), ("rust", RUST), ("python", PYTHON), ("js", JS)]
        {
            let mut found = BTreeSet::new();
            files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates").join(folder), "", &mut found);
            let mut listed: BTreeSet<String> = listed.iter().map(|template| template.path.to_owned()).collect();
            if folder == "rust" {
                listed.insert("package.toml".to_owned());
            }
            assert_eq!(listed, found, "{folder}");
        }
    }
}
