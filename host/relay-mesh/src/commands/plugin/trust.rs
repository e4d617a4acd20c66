//! Whether a publisher is trusted. The key that signed an adapter is pinned when the user consents to it the first time,
//! and an update has to be signed by the same key.

use adapters::installed::InstalledVersion;
use adapters::{InstalledAdapters, Package, PublisherKey, Signed};

use crate::errors::Explain;
use crate::exit::Exit;

// What the user says of a publisher. No doc comment: clap would make it the help of a command that has none of its own.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Unsigned {
    /// Take one that no publisher has signed: anybody may have changed it on its way here
    #[arg(long)]
    pub(super) allow_unsigned: bool,
}

/// What is known of the publisher of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Publisher {
    /// Unsigned, as the user allows.
    Nobody,
    /// Signed by keys that were not seen with this adapter before.
    New(Vec<PublisherKey>),
    /// Signed by a key of the installed version. `further` ones may sign the next version as well: they are pinned already,
    /// the signed version names them, or the user does. Of `strange` ones nothing says that the publisher knows them:
    /// everybody can add a signature to a file.
    Same { known: PublisherKey, further: Vec<PublisherKey>, strange: Vec<PublisherKey> },
    /// Signed by a key that the user named, in the place of the pinned ones.
    Changed(PublisherKey),
}

/// A publisher is not trusted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untrusted {
    #[error("`{0}` is not signed")]
    Unsigned(String),
    #[error(
        "`{0}` is signed, and no signature fits: it was changed after it was signed, or was signed without its key"
    )]
    Broken(String),
    #[error("`{0}` is signed, and the manifest beside it is another one than the signed one")]
    ManifestBeside(String),
    #[error("`{adapter}` is signed by {key} alone, and your settings refuse that key")]
    Refused { adapter: String, key: PublisherKey },
    #[error("`{adapter}` was signed by {pinned}, and this is not signed")]
    NoLongerSigned { adapter: String, pinned: PublisherKey },
    #[error("`{adapter}` was signed by {pinned}, and this is signed by {found}")]
    AnotherKey { adapter: String, pinned: PublisherKey, found: PublisherKey },
    #[error("`{adapter}` is signed by {found}, and not by {named}")]
    NotTheNamed { adapter: String, named: PublisherKey, found: PublisherKey },
}

/// Judges a package by its signatures. `before` is the installed version that it would replace.
pub(super) fn judge(
    installed: &InstalledAdapters,
    package: &Package,
    before: Option<&InstalledVersion>,
    unsigned: &Unsigned,
    new_key: Option<PublisherKey>,
) -> Result<Publisher, Untrusted> {
    let pinned = before.map(|before| before.publishers.as_slice()).unwrap_or_default();
    let name = package.manifest.name.as_str();
    let trusted = |keys: &[PublisherKey]| installed.trusted(keys);
    let named = (package.manifest.publishers.as_slice(), new_key);
    decide(name, &package.signed(), trusted, pinned, unsigned.allow_unsigned, named)
}

fn decide(
    name: &str,
    signed: &Signed,
    trusted: impl Fn(&[PublisherKey]) -> Vec<PublisherKey>,
    pinned: &[PublisherKey],
    may_be_unsigned: bool,
    (of_version, new_key): (&[PublisherKey], Option<PublisherKey>),
) -> Result<Publisher, Untrusted> {
    let adapter = name.to_owned();
    let signers = match signed {
        Signed::Broken => return Err(Untrusted::Broken(adapter)),
        Signed::ManifestBeside => return Err(Untrusted::ManifestBeside(adapter)),
        Signed::No => {
            return match pinned.first() {
                Some(pinned) => Err(Untrusted::NoLongerSigned { adapter, pinned: *pinned }),
                None if may_be_unsigned => Ok(Publisher::Nobody),
                None => Err(Untrusted::Unsigned(adapter)),
            };
        }
        Signed::By(keys) => keys,
    };
    let keys = trusted(signers);
    let Some(found) = keys.first().copied() else {
        return Err(signers
            .first()
            .map_or(Untrusted::Broken(adapter.clone()), |key| Untrusted::Refused { adapter, key: *key }));
    };
    if let Some(known) = keys.iter().copied().find(|key| pinned.contains(key)) {
        let counts =
            |key: &PublisherKey| pinned.contains(key) || of_version.contains(key) || new_key.as_ref() == Some(key);
        if let Some(named) = new_key.filter(|named| !keys.contains(named)) {
            return Err(Untrusted::NotTheNamed { adapter, named, found });
        }
        let (further, strange) = keys.into_iter().filter(|key| *key != known).partition(counts);
        return Ok(Publisher::Same { known, further, strange });
    }
    match (new_key, pinned.first()) {
        (Some(named), _) if keys.contains(&named) => Ok(Publisher::Changed(named)),
        (Some(named), _) => Err(Untrusted::NotTheNamed { adapter, named, found }),
        (None, Some(pinned)) => Err(Untrusted::AnotherKey { adapter, pinned: *pinned, found }),
        (None, None) => Ok(Publisher::New(keys)),
    }
}

impl Publisher {
    /// The keys that may sign the next version.
    pub(super) fn pins(&self) -> Vec<PublisherKey> {
        match self {
            Publisher::Nobody => Vec::new(),
            Publisher::New(keys) => keys.clone(),
            Publisher::Same { known, further, .. } => std::iter::once(known).chain(further).copied().collect(),
            Publisher::Changed(key) => vec![*key],
        }
    }

    /// What the user reads of it before consenting.
    pub(super) fn words(&self, installed: &InstalledAdapters) -> Vec<String> {
        match self {
            Publisher::Nobody => vec!["it is not signed: anybody may have changed it on its way here".to_owned()],
            Publisher::New(keys) => {
                let mut lines: Vec<String> = keys.iter().map(|key| of_new(installed, key)).collect();
                lines.push("With your consent it is pinned: an update has to be signed by the same key.".to_owned());
                lines
            }
            Publisher::Same { known, further, strange } => {
                let mut lines = vec![format!("signed by {known}, as the installed version is")];
                lines.extend(further.iter().map(|key| {
                    format!("signed by {key} as well: from then on that key alone is enough for an update")
                }));
                lines.extend(strange.iter().map(|key| {
                    format!("signed by {key} as well, which counts for nothing: this version does not name it")
                }));
                lines
            }
            Publisher::Changed(key) => vec![format!("signed by {key}, the new key that you named")],
        }
    }
}

/// A key is told from a stranger's by what else it signed.
fn of_new(installed: &InstalledAdapters, key: &PublisherKey) -> String {
    match installed.signed_by(key).unwrap_or_default().as_slice() {
        [] => format!(
            "signed by {key}, which signed nothing that is installed here: compare it with what its publisher says"
        ),
        others => format!("signed by {key}, which also signed {} that you have", quoted(others)),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}

/// Keys in one line.
pub(super) fn listed(keys: &[PublisherKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

impl Explain for Untrusted {
    fn exit(&self) -> Exit {
        Exit::Refused
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Untrusted::Unsigned(_) => {
                "say `--allow-unsigned` if you built it yourself, or trust all who had it in hand; its author signs it by \
                 `relay-mesh plugin sign`"
                    .to_owned()
            }
            Untrusted::Broken(_) => "get it again from its publisher; its author signs by `relay-mesh plugin sign`".to_owned(),
            Untrusted::ManifestBeside(_) => "install the component alone, from a folder without adapter.toml".to_owned(),
            Untrusted::Refused { .. } => {
                "ask its publisher for one that is signed by another key; `adapters.refused-keys` of your settings lists those \
                 that you refuse"
                    .to_owned()
            }
            Untrusted::NoLongerSigned { adapter, .. } => {
                format!("ask its publisher why; `relay-mesh plugin remove {adapter}` forgets the key, and all consents with it")
            }
            Untrusted::AnotherKey { found, .. } => format!(
                "a publisher who changes the key says so: ask in another way than by this file, and if it is right, say \
                 `--new-key {found}`"
            ),
            Untrusted::NotTheNamed { .. } => "name the key as its publisher wrote it".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use adapters::SigningKey;

    use super::*;

    fn key() -> PublisherKey {
        SigningKey::generate().expect("random numbers").0.publisher()
    }

    #[test]
    fn only_the_key_that_was_pinned_signs_an_update() {
        let (old, new, stolen) = (key(), key(), key());
        let by = |keys: &[PublisherKey]| Signed::By(keys.to_vec());
        let trusted = |keys: &[PublisherKey]| keys.iter().copied().filter(|key| *key != stolen).collect();
        let said = |signed: &Signed, pinned: &[PublisherKey], unsigned: bool, named: Option<PublisherKey>| {
            decide("toad", signed, trusted, pinned, unsigned, (&[], named))
        };
        let adapter = || "toad".to_owned();
        // The first time.
        assert_eq!(said(&Signed::No, &[], false, None), Err(Untrusted::Unsigned(adapter())));
        assert_eq!(said(&Signed::No, &[], true, None), Ok(Publisher::Nobody));
        assert_eq!(said(&by(&[old]), &[], false, None), Ok(Publisher::New(vec![old])));
        assert_eq!(said(&by(&[stolen]), &[], true, None), Err(Untrusted::Refused { adapter: adapter(), key: stolen }));
        // What was changed on its way is refused, whatever is allowed.
        assert_eq!(said(&Signed::Broken, &[], true, None), Err(Untrusted::Broken(adapter())));
        assert_eq!(said(&Signed::ManifestBeside, &[], true, None), Err(Untrusted::ManifestBeside(adapter())));
        // An update.
        let same = |further: &[PublisherKey], strange: &[PublisherKey]| {
            Ok(Publisher::Same { known: old, further: further.to_vec(), strange: strange.to_vec() })
        };
        assert_eq!(said(&by(&[old]), &[old], false, None), same(&[], &[]));
        // Everybody can add a signature, so a further key counts only if the version or the user names it.
        assert_eq!(said(&by(&[old, new]), &[old], false, None), same(&[], &[new]));
        assert_eq!(said(&by(&[old, new]), &[old], false, Some(new)), same(&[new], &[]));
        assert_eq!(said(&by(&[old, new]), &[old, new], false, None), same(&[new], &[]));
        let names_it = decide("toad", &by(&[old, new]), trusted, &[old], false, (&[new], None));
        assert_eq!(names_it, same(&[new], &[]));
        let by_itself = decide("toad", &by(&[new]), trusted, &[old], false, (&[new], None));
        assert!(matches!(by_itself, Err(Untrusted::AnotherKey { .. })), "no version names its own key");
        let no_longer = || Err(Untrusted::NoLongerSigned { adapter: adapter(), pinned: old });
        assert_eq!(said(&Signed::No, &[old], true, None), no_longer(), "a flag does not take a pin away");
        let another = || Err(Untrusted::AnotherKey { adapter: adapter(), pinned: old, found: new });
        assert_eq!(said(&by(&[new]), &[old], true, None), another());
        assert_eq!(said(&by(&[new]), &[old], false, Some(new)), Ok(Publisher::Changed(new)));
        let not_named = || Err(Untrusted::NotTheNamed { adapter: adapter(), named: old, found: new });
        assert_eq!(said(&by(&[new]), &[], false, Some(old)), not_named());
        // A stolen key no longer counts, pinned or not.
        let refused = || Err(Untrusted::Refused { adapter: adapter(), key: stolen });
        assert_eq!(said(&by(&[stolen]), &[stolen], false, Some(stolen)), refused());
        let moved = Err(Untrusted::AnotherKey { adapter: adapter(), pinned: stolen, found: new });
        assert_eq!(said(&by(&[stolen, new]), &[stolen], false, None), moved);
        // One that was installed unsigned may be signed from then on.
        assert_eq!(said(&by(&[new]), &[], false, None), Ok(Publisher::New(vec![new])));
    }
}
