//! Logins, as Docker and Podman keep them: in their files, or with their credential helpers.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use docker_credential::{CredentialRetrievalError as NoCredential, DockerCredential};

use super::error::RegistryError;

/// How long a helper may think: it may ask its user for the key of a keyring.
const HELPER: Duration = Duration::from_secs(60);

/// The files that may hold logins, in the form of Docker's `config.json`. The first that has one for a registry counts.
#[derive(Clone, Debug, Default)]
pub struct Logins(pub Vec<PathBuf>);

/// A login for a registry.
pub(super) enum Login {
    Password {
        user: String,
        password: String,
    },
    /// A token that is exchanged for others.
    Refresh(String),
}

impl Login {
    /// The user that it names.
    pub(super) fn user(&self) -> String {
        match self {
            Login::Password { user, .. } => user.clone(),
            Login::Refresh(_) => "a token".to_owned(),
        }
    }
}

impl Logins {
    /// The login for a registry, if there is one.
    pub(super) async fn of(&self, registry: &str) -> Result<Option<Login>, RegistryError> {
        let server = match registry {
            "registry-1.docker.io" => "https://index.docker.io/v1/".to_owned(),
            other => other.to_owned(),
        };
        let told = |why: String| RegistryError::Login { registry: registry.to_owned(), why };
        let files = self.0.clone();
        // A helper is a program, and waited for.
        let looked = tokio::task::spawn_blocking(move || look(&files, &server));
        let looked = tokio::time::timeout(HELPER, looked).await.map_err(|_| told("its helper is silent".to_owned()))?;
        looked.map_err(|error| told(error.to_string()))?.map_err(told)
    }
}

fn look(files: &[PathBuf], server: &str) -> Result<Option<Login>, String> {
    for path in files {
        let told = |why: String| format!("`{}`: {why}", path.display());
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(told(error.to_string())),
        };
        match docker_credential::get_credential_from_reader(BufReader::new(file), server) {
            Ok(DockerCredential::IdentityToken(token)) => return Ok(Some(Login::Refresh(token))),
            Ok(DockerCredential::UsernamePassword(user, password)) => {
                return Ok(Some(Login::Password { user, password }));
            }
            Err(NoCredential::NoCredentialConfigured) => {}
            // By the protocol of helpers it is the output that says so.
            Err(NoCredential::HelperFailure { stdout, .. }) if stdout.contains("credentials not found") => {}
            Err(NoCredential::HelperFailure { helper, stderr, stdout }) => {
                let said = format!("{stdout} {stderr}");
                return Err(told(format!(
                    "`{helper}` failed: {}",
                    said.split_whitespace().collect::<Vec<_>>().join(" ")
                )));
            }
            Err(NoCredential::HelperCommunicationError) => {
                return Err(told("the credential helper that it names is not to be found".to_owned()));
            }
            Err(NoCredential::ConfigReadError) => return Err(told("it is not in the form of Docker's".to_owned())),
            Err(error) => return Err(told(error.to_string())),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_has_a_login_counts_and_a_damaged_one_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let none = file("none.json", r#"{"auths":{"elsewhere.example":{"auth":"dTpw"}}}"#);
        let has = file("has.json", r#"{"auths":{"r.example:5000":{"auth":"dXNlcjpzZWNyZXQ="}}}"#);
        let torn = file("torn.json", r#"{"auths":{"#);
        let helped = file("helped.json", r#"{"credHelpers":{"r.example:5000":"of-nobody"}}"#);
        let told = |files: &[&PathBuf]| match look(
            &files.iter().map(|path| (*path).clone()).collect::<Vec<_>>(),
            "r.example:5000",
        ) {
            Ok(Some(login)) => login.user(),
            Ok(None) => "nothing".to_owned(),
            Err(why) => why,
        };
        assert_eq!(told(&[&folder.join("absent.json"), &none, &has]), "user");
        assert_eq!(told(&[&none]), "nothing");
        assert!(told(&[&torn, &has]).contains("torn.json`: it is not in the form"), "{}", told(&[&torn, &has]));
        assert!(told(&[&helped]).contains("helper that it names is not to be found"), "{}", told(&[&helped]));
    }
}
