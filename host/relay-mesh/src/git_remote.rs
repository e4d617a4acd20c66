//! A repository's name from its remote: `github.com/them/it`. It is the same on every machine, for clones by https and
//! by ssh and for every user.

/// The name from a repository's git `config`: from its remote `origin`, else from its only remote. None without a
/// remote, or if the remote is a path, which means nothing on other machines.
pub(crate) fn fetched_from(config: &str) -> Option<String> {
    let mut remotes: Vec<(&str, &str)> = Vec::new();
    let mut section = None;
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').strip_prefix("remote \"").and_then(|name| name.strip_suffix('"'));
        } else if let (Some(remote), Some((key, value))) = (section, line.split_once('='))
            && key.trim() == "url"
        {
            remotes.push((remote, value.trim()));
        }
    }
    let origin = remotes.iter().find(|(name, _)| *name == "origin");
    let (_, url) = match (origin, remotes.as_slice()) {
        (Some(origin), _) => *origin,
        (None, [only]) => *only,
        (None, _) => return None,
    };
    name_of(url)
}

/// A remote's URL without scheme and user.
fn name_of(url: &str) -> Option<String> {
    let (host, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => {
            let (host, path) = rest.split_once('/')?;
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            (host.rsplit_once(':').map_or(host, |(host, _)| host), path)
        }
        // As in `git@github.com:them/it.git`. Text with a slash before its colon is a path.
        None => {
            let (host, path) = url.split_once(':')?;
            (host.rsplit_once('@').map_or(host, |(_, host)| host), path)
        }
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_path = host.is_empty() || host.contains('/') || path.is_empty();
    (!is_path).then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name_however_it_was_cloned() {
        for (url, expected) in [
            ("https://github.com/them/it.git", Some("github.com/them/it")),
            ("https://me:secret@GitHub.com/them/it/", Some("github.com/them/it")),
            ("git@github.com:them/it.git", Some("github.com/them/it")),
            ("github.com:them/it", Some("github.com/them/it")),
            ("ssh://git@github.com:22/them/it.git", Some("github.com/them/it")),
            ("git://example.org/deep/er/it", Some("example.org/deep/er/it")),
            ("/srv/git/it.git", None),
            ("../it", None),
            ("./a:b", None),
            ("file:///srv/git/it.git", None),
            ("https://github.com/", None),
        ] {
            assert_eq!(name_of(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn origin_counts_or_the_only_remote() {
        let remote = |name: &str, url: &str| format!("[remote \"{name}\"]\n\turl = {url}\n\tfetch = +refs/*\n");
        let core = "[core]\n\turl = https://example.org/not/this\n";
        let (it, other) = (remote("origin", "https://example.org/it"), remote("fork", "https://example.org/fork"));
        for (config, expected) in [
            (format!("{core}{it}{other}"), Some("example.org/it")),
            (format!("{other}{it}"), Some("example.org/it")),
            (format!("{core}{other}"), Some("example.org/fork")),
            (format!("{other}{}", remote("third", "https://example.org/third")), None),
            (core.to_owned(), None),
        ] {
            assert_eq!(fetched_from(&config).as_deref(), expected, "{config}");
        }
    }
}
