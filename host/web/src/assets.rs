//! The files of the page, which are in the program. They hold nothing of the mesh.

use std::path::Path;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::key::digest_of;

struct Asset {
    name: &'static str,
    bytes: &'static [u8],
    /// Changes with its content.
    tag: HeaderValue,
}

macro_rules! assets {
    ($($name:literal)*) => {
        vec![$(Asset::of($name, include_bytes!(concat!("../assets/", $name))),)*]
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    assets![
        "agents.js"
        "api.js"
        "app.js"
        "asks.js"
        "delivery.js"
        "dom.js"
        "favicon.svg"
        "forms.js"
        "index.html"
        "keys.js"
        "lanes.js"
        "lanes_view.js"
        "lists.js"
        "notes.js"
        "pages.js"
        "state.js"
        "stream.js"
        "style.css"
        "thread.js"
        "time.js"
    ]
});

impl Asset {
    fn of(name: &'static str, bytes: &'static [u8]) -> Asset {
        let tag = format!("\"{}\"", &digest_of(bytes)[..16]);
        Asset { name, bytes, tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")) }
    }

    fn kind(&self) -> &'static str {
        match Path::new(self.name).extension().and_then(|ending| ending.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some(_) | None => "application/octet-stream",
        }
    }
}

/// A file by its name; a browser that has it already gets nothing again.
pub(crate) fn asset(name: &str, headers: &HeaderMap) -> Option<Response> {
    let asset = ASSETS.iter().find(|asset| asset.name == name)?;
    let tag = [(header::ETAG, asset.tag.clone())];
    if headers.get(header::IF_NONE_MATCH) == Some(&asset.tag) {
        return Some((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind()))];
    Some((tag, kind, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn every_file_of_the_page_is_in_the_program_and_they_are_few() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let files = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        let names: BTreeSet<String> =
            files.map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
        let embedded: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(embedded, names);
        let size: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(size <= 150 * 1024, "the page has {size} bytes");
        assert!(ASSETS.iter().all(|asset| asset.kind() != "application/octet-stream"));
    }

    #[test]
    fn no_text_is_ever_taken_for_html() {
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            let script = String::from_utf8_lossy(asset.bytes);
            for door in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!script.contains(door), "{} has {door}", asset.name);
            }
        }
    }
}
