//! The record of one adapter: `plugins/NAME.json`. Writing this file installs, grants or disables; everything else in
//! the folder follows from it.

use std::collections::BTreeSet;

use mesh::ports::machine::Instant;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::grants::Consent;
use crate::signature::PublisherKey;

/// The most consents kept for versions in unmanaged folders: those of the last builds.
const MOST_CONSENTS: usize = 16;

/// The record of one adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The name that users type.
    pub name: String,
    /// The version that is installed; none if only consents are kept, for an adapter in an unmanaged folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledVersion>,
    /// What the user granted, and to which version. The newest comes last.
    #[serde(default)]
    pub consents: Vec<Consented>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledVersion {
    /// The adapter's own version.
    pub version: String,
    /// Digest of component and manifest.
    pub digest: Digest,
    /// Digest of the component alone.
    pub component: Digest,
    /// The state of the component's file after the install. While it is unchanged, nothing is hashed.
    pub file: String,
    /// Whether it is enabled.
    pub standing: Enablement,
    /// When it was installed.
    pub at: Instant,
    /// When the first version of it was installed. None in records of before, and where `at` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// Where it came from: a file, or the address that an update asks again.
    pub from: String,
    /// The keys that signed it. An update has to be signed by one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publishers: Vec<PublisherKey>,
}

/// Whether an installed adapter is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enablement {
    Enabled,
    /// It stays installed, but is not used.
    Disabled,
}

/// What the user granted to one version of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consented {
    /// Digest of component and manifest: each version is consented to separately.
    pub digest: Digest,
    /// The grants, by name.
    pub grants: BTreeSet<String>,
    /// Whether it may replace a built-in adapter.
    #[serde(default)]
    pub replaces_built_in: bool,
    pub at: Instant,
}

impl Record {
    pub(crate) fn new(name: &str) -> Record {
        Record { name: name.to_owned(), installed: None, consents: Vec::new() }
    }

    /// Whether a version is installed and used.
    pub fn is_enabled(&self) -> bool {
        self.installed.as_ref().is_some_and(|installed| installed.standing == Enablement::Enabled)
    }

    /// What the user granted to this version.
    pub fn consent(&self, digest: &Digest) -> Consent {
        let given = self.consents.iter().find(|consented| consented.digest == *digest);
        given.map_or_else(Consent::default, |consented| Consent {
            grants: consented.grants.clone(),
            replaces_built_in: consented.replaces_built_in,
        })
    }

    /// Records what the user granted to a version, in place of the earlier grants.
    pub(crate) fn note(&mut self, digest: Digest, consent: Consent, at: Instant) {
        self.consents.retain(|consented| consented.digest != digest);
        let Consent { grants, replaces_built_in } = consent;
        self.consents.push(Consented { digest, grants, replaces_built_in, at });
        let kept = self.installed.as_ref().map(|installed| installed.digest);
        while self.consents.len() > MOST_CONSENTS {
            let oldest = self.consents.iter().position(|consented| Some(consented.digest) != kept).unwrap_or(0);
            self.consents.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(installed: u8) -> Record {
        let digest = Digest::of(&[installed]);
        let installed = InstalledVersion {
            version: "1.0.0".to_owned(),
            digest,
            component: digest,
            file: String::new(),
            standing: Enablement::Enabled,
            at: Instant(1),
            since: None,
            from: "/a.wasm".to_owned(),
            publishers: Vec::new(),
        };
        Record { installed: Some(installed), ..Record::new("toy") }
    }

    #[test]
    fn a_record_is_written_and_read_back() {
        let mut record = record(1);
        let consent = Consent { grants: ["state".to_owned()].into(), replaces_built_in: true };
        record.note(Digest::of(&[1]), consent.clone(), Instant(2));
        let text = serde_json::to_string(&record).expect("JSON");
        assert_eq!(serde_json::from_str::<Record>(&text).expect("a record"), record);
        assert_eq!(record.consent(&Digest::of(&[1])), consent);
        assert_eq!(record.consent(&Digest::of(&[2])), Consent::default(), "consent is for one version");
    }

    #[test]
    fn old_consents_are_forgotten_and_never_that_of_the_installed_version() {
        let mut record = record(0);
        for number in 0..40_u8 {
            record.note(Digest::of(&[number]), Consent::default(), Instant(u64::from(number)));
        }
        let kept: Vec<Digest> = record.consents.iter().map(|consented| consented.digest).collect();
        assert_eq!(kept.len(), MOST_CONSENTS);
        assert!(kept.contains(&Digest::of(&[0])) && kept.contains(&Digest::of(&[39])), "{kept:?}");
        assert!(!kept.contains(&Digest::of(&[1])), "{kept:?}");
    }
}
