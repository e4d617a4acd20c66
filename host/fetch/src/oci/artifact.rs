//! The manifest of an adapter, read and written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::RegistryError;
use crate::Digest;

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const COMPONENT: &str = "application/wasm";
/// What tools wrote before the form was agreed on.
const OLD_COMPONENT: &str = "application/vnd.wasm.content.layer.v1+wasm";
const TITLE: &str = "org.opencontainers.image.title";

/// What is told of an adapter beside its bytes.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub name: String,
    pub title: String,
    pub version: String,
    /// The WIT interfaces that it imports and exports.
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

/// An adapter as a registry stores it: three blobs.
#[derive(Debug)]
pub struct Artifact {
    pub manifest: Vec<u8>,
    pub config: Vec<u8>,
    pub component: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing)]
    platform: Option<Platform>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Platform {
    architecture: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'static str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [String; 1],
    component: Component<'a>,
}

#[derive(Serialize)]
struct Component<'a> {
    exports: &'a [String],
    imports: &'a [String],
    target: Option<String>,
}

impl Artifact {
    /// The artifact of a component. The same component always gives the same bytes.
    pub fn of(component: Vec<u8>, about: &About) -> Artifact {
        let layer = Descriptor {
            annotations: [(TITLE.to_owned(), format!("{}.wasm", about.name))].into(),
            ..descriptor(COMPONENT, &component)
        };
        let config = written(&Config {
            // No time of the day: a second push of the same adapter changes nothing.
            created: "1970-01-01T00:00:00Z",
            architecture: "wasm",
            os: "wasip2",
            layer_digests: [layer.digest.clone()],
            component: Component { exports: &about.exports, imports: &about.imports, target: None },
        });
        let told = [("title", &about.name), ("description", &about.title), ("version", &about.version)];
        let manifest = written(&Manifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            config: descriptor(CONFIG, &config),
            layers: vec![layer],
            annotations: told.map(|(key, text)| (format!("org.opencontainers.image.{key}"), text.clone())).into(),
        });
        Artifact { manifest, config, component }
    }
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes).to_string(),
        size: bytes.len() as u64,
        annotations: BTreeMap::new(),
        platform: None,
    }
}

fn written(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and lists of them always are JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

/// What a manifest leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leads {
    /// The component.
    Component(Descriptor),
    /// Another manifest.
    Manifest(Descriptor),
}

/// Reads a manifest, or an index of manifests.
pub(super) fn leads(registry: &str, bytes: &[u8]) -> Result<Leads, RegistryError> {
    let malformed = |why: String| RegistryError::Malformed { registry: registry.to_owned(), what: "manifest", why };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    if value.get("manifests").is_some() {
        let index: Index = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        return of_index(index).map(Leads::Manifest);
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
    let is_component = |layer: &&Descriptor| [COMPONENT, OLD_COMPONENT].contains(&layer.media_type.as_str());
    let found: Vec<&Descriptor> = manifest.layers.iter().filter(is_component).collect();
    match found.as_slice() {
        [only] => Ok(Leads::Component((*only).clone())),
        [] => {
            let kinds: Vec<&str> = manifest.layers.iter().map(|layer| layer.media_type.as_str()).take(4).collect();
            Err(RegistryError::NoAdapter(format!("its layers are of {}", listed(&kinds))))
        }
        several => Err(RegistryError::NoAdapter(format!("it has {} layers of {COMPONENT}", several.len()))),
    }
}

/// An image for several machines may have a component among its manifests.
fn of_index(index: Index) -> Result<Descriptor, RegistryError> {
    let is_wasm = |one: &&Descriptor| one.platform.as_ref().is_some_and(|platform| platform.architecture == "wasm");
    match index.manifests.as_slice() {
        [only] => Ok(only.clone()),
        several => several
            .iter()
            .find(is_wasm)
            .cloned()
            .ok_or_else(|| RegistryError::NoAdapter("none of its manifests is for `wasm`".to_owned())),
    }
}

fn listed(kinds: &[&str]) -> String {
    if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        About { name: "toad".to_owned(), title: "Toad".to_owned(), version: "1.0.0".to_owned(), ..About::default() }
    }

    #[test]
    fn what_is_written_is_read() {
        let artifact = Artifact::of(b"\0asm".to_vec(), &about());
        let Ok(Leads::Component(layer)) = leads("r", &artifact.manifest) else { panic!("no component") };
        assert_eq!((layer.digest, layer.size), (Digest::of(b"\0asm").to_string(), 4));
        assert_eq!(artifact.manifest, Artifact::of(b"\0asm".to_vec(), &about()).manifest, "the same twice");
        let config: serde_json::Value = serde_json::from_slice(&artifact.config).expect("JSON");
        assert_eq!(config["layerDigests"][0], Digest::of(b"\0asm").to_string());
    }

    #[test]
    fn what_is_no_adapter_is_told() {
        let check = |text: &str, expected: &str| {
            let told = match leads("the registry", text.as_bytes()) {
                Ok(found) => format!("{found:?}"),
                Err(error) => error.to_string(),
            };
            assert!(told.contains(expected), "{text}: {told}");
        };
        let one = |kind: &str| format!(r#"{{"mediaType":"{kind}","digest":"sha256:x","size":1}}"#);
        let manifest = |layers: &str| format!(r#"{{"schemaVersion":2,"config":{},"layers":[{layers}]}}"#, one("c"));
        check("<html>", "what the registry answered is no manifest");
        check("{}", "no manifest: missing field");
        check(&manifest(""), "its layers are of nothing");
        check(&manifest(&one("application/tar")), "its layers are of application/tar");
        check(&manifest(&format!("{0},{0}", one(COMPONENT))), "2 layers of application/wasm");
        check(&manifest(&one(OLD_COMPONENT)), "Component(");
        let other =
            r#"{"mediaType":"m","digest":"sha256:y","size":1,"platform":{"architecture":"amd64","os":"linux"}}"#;
        let wasm = other.replace("amd64", "wasm").replace(":y", ":z");
        check(&format!(r#"{{"manifests":[{other},{wasm}]}}"#), "sha256:z");
        check(&format!(r#"{{"manifests":[{other},{other}]}}"#), "none of its manifests is for `wasm`");
    }
}
