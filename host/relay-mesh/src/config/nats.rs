//! `[nats]`: how to log in to the servers, and options of the streams.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::ConfigError;
use crate::environment::Environment;

/// The `[nats]` values of one origin. Fields are independent: a user may set the credentials in their own file and the
/// domain by a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NatsValues {
    /// File with a JWT and its seed.
    pub(crate) credentials: Option<PathBuf>,
    /// File with the seed of an NKey.
    pub(crate) nkey: Option<PathBuf>,
    pub(crate) user: Option<String>,
    /// File with the password of `user`.
    pub(crate) password: Option<PathBuf>,
    /// File with a token.
    pub(crate) token: Option<PathBuf>,
    /// File with further CA certificates, in PEM.
    pub(crate) ca: Option<PathBuf>,
    /// File with the client certificate, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    /// File with the key of `certificate`, in PEM.
    pub(crate) key: Option<PathBuf>,
    /// JetStream domain.
    pub(crate) domain: Option<String>,
    /// Replicas of each message, if we create the streams.
    pub(crate) replicas: Option<usize>,
    /// Prefix of the names of streams and subjects.
    pub(crate) prefix: Option<String>,
}

/// One `[nats]` value on the command line, such as `domain=relay`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NatsOption {
    key: String,
    value: String,
}

impl FromStr for NatsOption {
    type Err = String;

    fn from_str(text: &str) -> Result<NatsOption, String> {
        let form = || "it is written KEY=VALUE, as in `domain=relay`".to_owned();
        let (key, value) = text.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or_else(form)?;
        let option = NatsOption { key: key.to_owned(), value: value.to_owned() };
        NatsValues::of_options(std::slice::from_ref(&option)).map(|_| option)
    }
}

const REPLICAS: &str = "RELAY_NATS_REPLICAS";

impl NatsValues {
    pub(crate) fn of_options(options: &[NatsOption]) -> Result<NatsValues, String> {
        let mut table = toml::Table::new();
        for NatsOption { key, value } in options {
            let value = match value.parse() {
                Ok(number) if key == "replicas" => toml::Value::Integer(number),
                Ok(_) | Err(_) => toml::Value::String(value.clone()),
            };
            table.insert(key.clone(), value);
        }
        table.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// The values as `--nats-option` arguments.
    pub(crate) fn as_options(&self) -> impl Iterator<Item = String> {
        self.listed().into_iter().filter_map(|(key, value)| Some(format!("{}={value}", key.strip_prefix("nats.")?)))
    }

    pub(super) fn of_environment(environment: &Environment) -> Result<NatsValues, ConfigError> {
        let replicas = match environment.get(REPLICAS).map(|text| (text, text.parse())) {
            None => None,
            Some((_, Ok(replicas))) => Some(replicas),
            Some((text, Err(_))) => {
                let why = "it is the number of servers that keep each message: 1, 3 or 5".to_owned();
                return Err(ConfigError::Variable { name: REPLICAS, value: text.to_owned(), why });
            }
        };
        let path = |name: &str| environment.get(name).map(PathBuf::from);
        let text = |name: &str| environment.get(name).map(str::to_owned);
        Ok(NatsValues {
            credentials: path("RELAY_NATS_CREDENTIALS"),
            nkey: path("RELAY_NATS_NKEY"),
            user: text("RELAY_NATS_USER"),
            password: path("RELAY_NATS_PASSWORD"),
            token: path("RELAY_NATS_TOKEN"),
            ca: path("RELAY_NATS_CA"),
            certificate: path("RELAY_NATS_CERTIFICATE"),
            key: path("RELAY_NATS_KEY"),
            domain: text("RELAY_NATS_DOMAIN"),
            replicas,
            prefix: text("RELAY_NATS_PREFIX"),
        })
    }

    #[must_use]
    pub(super) fn with_paths(self, change: impl Fn(PathBuf) -> PathBuf) -> NatsValues {
        NatsValues {
            credentials: self.credentials.map(&change),
            nkey: self.nkey.map(&change),
            password: self.password.map(&change),
            token: self.token.map(&change),
            ca: self.ca.map(&change),
            certificate: self.certificate.map(&change),
            key: self.key.map(&change),
            ..self
        }
    }

    /// These values, with `weaker` filling the gaps.
    #[must_use]
    pub(super) fn or(self, weaker: NatsValues) -> NatsValues {
        // The login comes from one origin: half of it from each of two would log in nobody.
        let identity = if self.names_somebody() { &self } else { &weaker };
        NatsValues {
            credentials: identity.credentials.clone(),
            nkey: identity.nkey.clone(),
            user: identity.user.clone(),
            password: identity.password.clone(),
            token: identity.token.clone(),
            ca: self.ca.clone().or(weaker.ca),
            certificate: self.certificate.clone().or(weaker.certificate),
            key: self.key.clone().or(weaker.key),
            domain: self.domain.clone().or(weaker.domain),
            replicas: self.replicas.or(weaker.replicas),
            prefix: self.prefix.clone().or(weaker.prefix),
        }
    }

    /// Whether a login is set.
    pub(crate) fn names_somebody(&self) -> bool {
        self.credentials.is_some() || self.nkey.is_some() || self.user.is_some() || self.token.is_some()
    }

    /// Every key that is set, with its value as shown to the user.
    pub(crate) fn listed(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_deref().map(Path::display).map(|path| path.to_string());
        let all = [
            ("nats.credentials", path(&self.credentials)),
            ("nats.nkey", path(&self.nkey)),
            ("nats.user", self.user.clone()),
            ("nats.password", path(&self.password)),
            ("nats.token", path(&self.token)),
            ("nats.ca", path(&self.ca)),
            ("nats.certificate", path(&self.certificate)),
            ("nats.key", path(&self.key)),
            ("nats.domain", self.domain.clone()),
            ("nats.replicas", self.replicas.map(|replicas| replicas.to_string())),
            ("nats.prefix", self.prefix.clone()),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_sets_each_value_by_its_name() {
        for (words, expected) in [
            (&["domain=relay"][..], "domain=relay"),
            (&["user=u", "password=/p", "replicas=3"], "user=u password=/p replicas=3"),
            (&["prefix=A", "prefix=B"], "prefix=B"),
            (&["domain"], "it is written KEY=VALUE, as in `domain=relay`"),
            (&["domain="], "it is written KEY=VALUE, as in `domain=relay`"),
            (&["replicas=many"], "invalid type: string \"many\", expected usize"),
            (&["secret=/p"], "unknown field `secret`, expected one of `credentials`"),
        ] {
            let options: Result<Vec<NatsOption>, String> = words.iter().map(|word| word.parse()).collect();
            let outcome = match options.and_then(|options| NatsValues::of_options(&options)) {
                Ok(values) => values.as_options().collect::<Vec<_>>().join(" "),
                Err(why) => why,
            };
            assert!(outcome.starts_with(expected), "{words:?}: {outcome}");
        }
    }

    #[test]
    fn who_we_are_comes_from_one_place() {
        let user = NatsValues {
            user: Some("u".to_owned()),
            password: Some("/p".into()),
            domain: Some("d".to_owned()),
            ..NatsValues::default()
        };
        let token = NatsValues { token: Some("/t".into()), prefix: Some("P".to_owned()), ..NatsValues::default() };
        let both = token.clone().or(user.clone());
        assert_eq!((both.token, both.user, both.password), (token.token, None, None));
        assert_eq!((both.domain.as_deref(), both.prefix.as_deref()), (Some("d"), Some("P")));
        assert_eq!(NatsValues::default().or(user.clone()), user);
    }
}
