//! The manifest's TOML, with strict keys. The parsed manifest is made from it.

use std::collections::BTreeMap;

use mesh::ports::harness::RecordName;
use serde::Deserialize;
use toml::Spanned;

use super::drive::RawDrive;
use super::run::RawRun;
use super::serve::RawServe;
use super::{Access, CommandLine, Endpoint, Framing, Links, Login, Matches, Reaches, Rehearsal, Requests, Root};
use crate::answers::RawAnswers;
use crate::signature::PublisherKey;
use crate::template::{Address, Argument, InvalidTemplate};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawManifest {
    pub(super) name: Spanned<String>,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) wit: Spanned<String>,
    #[serde(default)]
    pub(super) aliases: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) publishers: Vec<PublisherKey>,
    #[serde(default)]
    pub(super) matches: Matches,
    #[serde(default)]
    pub(super) grants: RawGrants,
    #[serde(default)]
    pub(super) runs: BTreeMap<String, RawRun>,
    pub(super) serves: Option<RawServe>,
    #[serde(default)]
    pub(super) drives: BTreeMap<String, RawDrive>,
    #[serde(default)]
    pub(super) limits: RawLimits,
    pub(super) rehearsal: Option<Rehearsal>,
    #[serde(default)]
    pub(super) project: RawProject,
    #[serde(default)]
    pub(super) sessions: RawSessions,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSessions {
    pub(super) terminal: Option<String>,
    pub(super) record: Option<RecordName>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProject {
    #[serde(default)]
    pub(super) reaches: Reaches,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGrants {
    #[serde(default)]
    pub(super) environment: Vec<String>,
    #[serde(default)]
    pub(super) notices: bool,
    #[serde(default)]
    pub(super) arguments: bool,
    #[serde(default)]
    pub(super) roots: BTreeMap<String, RawRoot>,
    #[serde(default)]
    pub(super) origins: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    pub(super) logins: BTreeMap<Spanned<String>, Login>,
    #[serde(default)]
    pub(super) endpoints: BTreeMap<String, RawEndpoint>,
    #[serde(default)]
    pub(super) programs: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    pub(super) answers: RawAnswers,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRoot {
    pub(super) path: Spanned<String>,
    #[serde(default)]
    pub(super) access: Access,
    #[serde(default)]
    pub(super) links: Links,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEndpoint {
    pub(super) unix: Option<Spanned<String>>,
    pub(super) tcp: Option<Spanned<String>>,
    pub(super) framing: Spanned<Framing>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawLimits {
    pub(super) guest_ms: Option<Spanned<u64>>,
    pub(super) memory_mb: Option<Spanned<u64>>,
}

/// A range of the text, and what is wrong there.
pub(super) type Wrong = (std::ops::Range<usize>, InvalidTemplate);

impl RawGrants {
    pub(super) fn parse(self) -> Result<Requests, Wrong> {
        let mut requests = Requests {
            environment: self.environment,
            notices: self.notices,
            arguments: self.arguments,
            ..Requests::default()
        };
        for (name, root) in self.roots {
            crate::template::check_path(root.path.get_ref()).map_err(|error| (root.path.span(), error))?;
            let root = Root { path: root.path.into_inner(), access: root.access, links: root.links };
            requests.roots.insert(name, root);
        }
        for (name, text) in self.origins {
            let origin = text.get_ref().parse().map_err(|error| (text.span(), error))?;
            requests.origins.insert(name, origin);
        }
        for (name, login) in self.logins {
            if !requests.origins.contains_key(name.get_ref()) {
                return Err((name.span(), InvalidTemplate::NoSuchOrigin(name.into_inner())));
            }
            requests.logins.insert(name.into_inner(), login);
        }
        for (name, written) in self.endpoints {
            let address = match (&written.unix, &written.tcp) {
                (Some(path), None) => Address::unix(path.get_ref()).map_err(|error| (path.span(), error))?,
                (None, Some(text)) => Address::tcp(text.get_ref()).map_err(|error| (text.span(), error))?,
                (None, None) | (Some(_), Some(_)) => {
                    return Err((written.framing.span(), InvalidTemplate::NotOneAddress(name)));
                }
            };
            requests.endpoints.insert(name, Endpoint { address, framing: written.framing.into_inner() });
        }
        for (name, words) in self.programs {
            let line = CommandLine::parse(&name, words.get_ref()).map_err(|error| (words.span(), error))?;
            requests.programs.insert(name, line);
        }
        Ok(requests)
    }
}

impl CommandLine {
    fn parse(name: &str, words: &[String]) -> Result<CommandLine, InvalidTemplate> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(InvalidTemplate::NoProgram(name.to_owned()));
        };
        if program.is_empty() || program.contains(['{', '\0']) {
            return Err(InvalidTemplate::NoProgram(name.to_owned()));
        }
        let mut after_separator = false;
        let mut parsed = Vec::with_capacity(arguments.len());
        for argument in arguments {
            parsed.push(Argument::parse(argument, after_separator)?);
            after_separator |= argument == "--";
        }
        Ok(CommandLine { program: program.clone(), arguments: parsed })
    }
}

/// Whether text is a valid adapter name.
pub fn is_name(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

pub(super) fn within(
    written: Option<Spanned<u64>>,
    default: u64,
    ceiling: u64,
) -> Result<u64, (std::ops::Range<usize>, String)> {
    match written {
        None => Ok(default),
        Some(value) if (1..=ceiling).contains(value.get_ref()) => Ok(value.into_inner()),
        Some(value) => Err((value.span(), format!("is {}, and may be 1 to {ceiling}", value.get_ref()))),
    }
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
