//! The server of a harness that `relay-mesh up --with` keeps running: its command line and its environment. Here nothing
//! is started.

use std::path::PathBuf;

use mesh::ports::harness::HarnessError;

use crate::adapters::Adapters;
use crate::host_functions::programs::search;
use crate::launch::passed_on;
use crate::manifest::Serve;

/// A harness's server, as its manifest names it and this user would start it.
#[derive(Clone, Debug)]
pub struct HarnessServer {
    /// The harness's name for display.
    pub title: String,
    /// Where its program is; none if it is not on this machine.
    pub program: Option<PathBuf>,
    serve: Serve,
    /// What the program gets of the user's environment.
    environment: Vec<(String, String)>,
}

impl Adapters {
    /// The server that a harness's sessions need. None if they need none, or the adapter is unknown.
    pub fn server_of(&self, name: &str) -> Result<Option<HarnessServer>, HarnessError> {
        let Some((manifest, grants)) = self.describe(name)? else { return Ok(None) };
        if manifest.requests.serves.is_none() {
            return Ok(None);
        }
        let serve = grants.serves().map_err(|denied| HarnessError::Denied(denied.to_string()))?.clone();
        let surroundings = self.surroundings();
        let mut environment = passed_on(&serve.run, surroundings);
        if let Some(password) = &serve.password
            && let Some(value) = surroundings.environment.get(password).filter(|value| !value.is_empty())
        {
            environment.insert(password.clone(), value.clone());
        }
        let program = search(&serve.run.program, surroundings);
        Ok(Some(HarnessServer {
            title: manifest.title,
            program,
            serve,
            environment: environment.into_iter().collect(),
        }))
    }
}

impl HarnessServer {
    /// The program's name, and the argument by which a running process is known to be such a server.
    pub fn known_by(&self) -> (String, String) {
        let word = self.serve.words.first().map(ToString::to_string).unwrap_or_default();
        (self.serve.run.program.clone(), word)
    }

    /// The port where its users look for it.
    pub fn port(&self) -> u16 {
        self.serve.port
    }

    /// The arguments with which it listens at a port.
    pub fn arguments(&self, port: u16) -> Result<Vec<String>, HarnessError> {
        let word = |word: &crate::template::Slot| word.word(&port.to_string());
        let words: Result<Vec<String>, _> = self.serve.words.iter().map(word).collect();
        words.map_err(|error| HarnessError::Failed(error.to_string()))
    }

    /// Its environment. `secret` is its password, unless the user has set one.
    pub fn environment(&self, secret: &str) -> Vec<(String, String)> {
        let mut environment = self.environment.clone();
        if let Some(password) = &self.serve.password
            && !environment.iter().any(|(name, _)| name == password)
        {
            environment.push((password.clone(), secret.to_owned()));
        }
        environment
    }

    /// What a user types to work in the server at an address, and which variable they need for it, if any.
    pub fn attach(&self, url: &str) -> Option<(String, Option<&str>)> {
        let line = self.serve.attach.as_ref()?.replace("{url}", url);
        Some((line, self.serve.password.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    fn server(set: &[(&str, &str)]) -> HarnessServer {
        let text = "name = \"x\"\ntitle = \"X\"\nversion = \"1\"\nwit = \"0.1\"\n\
            [serves]\nrun = \"task\"\nwords = [\"serve\", \"--port={port}\"]\nport = 4096\npassword = \"X_PASSWORD\"\n\
            attach = \"x attach {url}\"\n[runs.task]\nprogram = \"x\"\n";
        let manifest = Manifest::parse(text).expect("a manifest");
        let environment = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let serve = manifest.requests.serves.expect("a server");
        HarnessServer { title: manifest.title, program: None, serve, environment }
    }

    #[test]
    fn it_listens_where_the_host_says_and_is_known_by_its_first_word() {
        let server = server(&[]);
        assert_eq!(server.arguments(4711).expect("words"), ["serve", "--port=4711"]);
        assert_eq!(server.known_by(), ("x".to_owned(), "serve".to_owned()));
        let told = server.attach("http://127.0.0.1:4711");
        assert_eq!(told, Some(("x attach http://127.0.0.1:4711".to_owned(), Some("X_PASSWORD"))));
    }

    #[test]
    fn it_asks_for_a_password_and_the_users_own_counts() {
        let of = |set: &[(&str, &str)]| server(set).environment("secret");
        assert_eq!(of(&[("HOME", "/h")]).last(), Some(&("X_PASSWORD".to_owned(), "secret".to_owned())));
        assert_eq!(of(&[("X_PASSWORD", "mine")]), [("X_PASSWORD".to_owned(), "mine".to_owned())]);
    }
}
