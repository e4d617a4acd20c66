//! Templates of a manifest: paths with variables, origins, addresses and arguments with blanks. Everything here is
//! pure; values are checked before they are filled in, so that none can reach beyond its blank.

mod path;
mod slot;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use path::{OwnInstallation, Surroundings, check_path, fill_path, is_inside};
pub use slot::{Filling, LONGEST_RUN_VALUE, Slot};

/// The longest value that may fill a blank, in bytes: a path or an id, never a long text.
pub const LONGEST_VALUE: usize = 4096;

/// Why a template of a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// A path that depends on the current folder.
    #[error("`{0}` is not an absolute path")]
    Relative(String),
    /// A path with `..`, which names one folder and means another.
    #[error("`{0}` advances by `..`")]
    Advances(String),
    /// The root of the file system.
    #[error("`{0}` is the whole file system")]
    Everything(String),
    /// A variable or a blank that is not closed.
    #[error("`{0}` opens a variable or a blank and does not close it")]
    Unclosed(String),
    /// An origin that is not plain HTTP on this machine.
    #[error("`{0}` is not a loopback origin")]
    NotLoopback(String),
    /// An argument with two blanks.
    #[error("`{0}` has more than one blank")]
    ManyBlanks(String),
    /// An endpoint with no address, or with two.
    #[error("the endpoint `{0}` needs either `unix` or `tcp`")]
    NotOneAddress(String),
    /// A login of an origin that the manifest does not have.
    #[error("`grants.origins` has no `{0}` to log in to")]
    NoSuchOrigin(String),
    /// A server or a drive that names a run which the manifest does not have.
    #[error("the manifest has no `runs.{0}`")]
    NoSuchRun(String),
    /// A server's words without exactly one blank, for the port, behind a first word without any.
    #[error("the server's words take no port")]
    NoPort,
    /// A drive over WebSocket without exactly one word for its socket, or one over lines with such a word.
    #[error("frames over `websocket` need one word with `{{socket}}`, and those over `lines` have none")]
    NoSocket,
    /// Words by which users join that do not name the session.
    #[error("the words by which users join need `{{session}}` as a word of its own behind the first, and a socket")]
    NoSession,
    /// A command line whose program is missing, or has a blank that the guest would fill.
    #[error("the program `{0}` has no fixed program")]
    NoProgram(String),
    /// A blank for a file whose name is not a plain one.
    #[error("`{0}` is not the name of a file in a run's folder")]
    NotAFile(String),
    /// Text that cannot be a variable's name.
    #[error("`{0}` is not a variable's name")]
    NotAVariable(String),
    /// A variable that decides which code a program loads, or one of ours.
    #[error("an adapter may not set `{0}`")]
    NotSettable(String),
}

impl InvalidTemplate {
    /// What to write instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            InvalidTemplate::Relative(_) => Some("begin with `/`, `~/`, `${project}` or `${VARIABLE:-~/default}`"),
            InvalidTemplate::Advances(_) => Some("write the path that is meant"),
            InvalidTemplate::Everything(_) => Some("name the folder of the harness"),
            InvalidTemplate::Unclosed(_) => Some("write `${NAME}`, `${NAME:-default}` or `{blank}`"),
            InvalidTemplate::NotLoopback(_) => Some("write `http://127.0.0.1:PORT`, where PORT may be `{port}`"),
            InvalidTemplate::ManyBlanks(_) => Some("one blank per argument: split it in two"),
            InvalidTemplate::NoSuchRun(_) => Some("name one of its runs, which has the program and its variables"),
            InvalidTemplate::NoPort => Some("write `[\"serve\", \"--port={port}\"]`: a word, and one blank"),
            InvalidTemplate::NoSocket => {
                Some("write `framing = \"lines\"`, or `words = [\"serve\", \"--at={socket}\"]`")
            }
            InvalidTemplate::NoSession => Some("write `join = [\"--remote={socket}\", \"open\", \"{session}\"]`"),
            InvalidTemplate::NoSuchOrigin(_) => Some("name the login as the origin"),
            InvalidTemplate::NotOneAddress(_) => Some("write `{ unix = \"~/x.sock\", framing = \"lines\" }`"),
            InvalidTemplate::NoProgram(_) => Some("the first word is the program's name, without blanks"),
            InvalidTemplate::NotAFile(_) => Some("write `{file:settings.json}`: letters, digits and - _ ."),
            InvalidTemplate::NotAVariable(_) => Some("names are made of letters, digits and _"),
            InvalidTemplate::NotSettable(_) => {
                Some("it decides which code the program loads, or is relay-mesh's own; pass it on by `environment`")
            }
        }
    }
}

/// Why a template could not be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// The values do not match the blanks.
    #[error("{given} values were given for {blanks} blanks")]
    Count {
        /// Number of blanks.
        blanks: usize,
        /// Number of values.
        given: usize,
    },
    /// A value that would reach beyond its blank.
    #[error("`{value}` does not fit the blank `{blank}`: {why}")]
    Unfit {
        /// The blank's name.
        blank: String,
        /// The value, shortened.
        value: String,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// A variable that is not set here.
    #[error("`{0}` has no value here")]
    Unset(String),
    /// The filled path does not begin at the root of the file system.
    #[error("`{0}` is not an absolute path")]
    Relative(String),
}

/// Text with `{blanks}`, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blanks {
    /// Literal text and blanks, in order.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Blank(String),
}

impl Blanks {
    fn parse(text: &str) -> Result<Blanks, InvalidTemplate> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            // `${NAME}` belongs to paths, and is filled after the blanks are.
            let variable = rest[..open].ends_with('$');
            let Some(length) = rest[open..].find('}') else {
                return Err(InvalidTemplate::Unclosed(text.to_owned()));
            };
            let close = open + length;
            if variable {
                pieces.push(Piece::Literal(rest[..=close].to_owned()));
            } else {
                pieces.push(Piece::Literal(rest[..open].to_owned()));
                pieces.push(Piece::Blank(rest[open + 1..close].to_owned()));
            }
            rest = &rest[close + 1..];
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        Ok(Blanks { pieces })
    }

    fn count(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Blank(_))).count()
    }

    fn fill<'v>(
        &self,
        values: &mut impl Iterator<Item = &'v String>,
        fits: impl Fn(&str, &str) -> Result<(), &'static str>,
    ) -> Result<String, FillError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Blank(blank) => {
                    let value = values.next().ok_or(FillError::Count { blanks: self.count(), given: 0 })?;
                    fits(&text, value).map_err(|why| unfit(blank, value, why))?;
                    text.push_str(value);
                }
            }
        }
        Ok(text)
    }
}

impl fmt::Display for Blanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Literal(literal) => f.write_str(literal),
            Piece::Blank(blank) => write!(f, "{{{blank}}}"),
        })
    }
}

/// An HTTP origin on loopback, perhaps with a path prefix for every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The host to dial: never a name that a resolver could redirect.
    host: &'static str,
    port: Blanks,
    path: Blanks,
}

impl FromStr for Origin {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Origin, InvalidTemplate> {
        let refused = || InvalidTemplate::NotLoopback(text.to_owned());
        let rest = text.strip_prefix("http://").ok_or_else(refused)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = loopback(authority).ok_or_else(refused)?;
        Ok(Origin { host, port, path: Blanks::parse(path.trim_end_matches('/'))? })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", Loopback(self.host, &self.port), self.path)
    }
}

/// A host and a port, as written in an address.
struct Loopback<'a>(&'a str, &'a Blanks);

impl fmt::Display for Loopback<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loopback(host, port) = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Origin {
    /// Whether the guest chooses the port.
    pub fn takes_any_port(&self) -> bool {
        self.port.count() > 0
    }

    /// Fills the blanks: the host and port to dial, and the path prefix of the request.
    pub fn fill(&self, values: &[String]) -> Result<(&'static str, u16, String), FillError> {
        exact(self.port.count() + self.path.count(), values)?;
        let mut values = values.iter();
        let port = fill_port(&self.port, &mut values)?;
        let path = self.path.fill(&mut values, |_, value| fits_segment(value))?;
        Ok((self.host, port, path))
    }
}

/// Where an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(Blanks),
    /// A port on loopback.
    Tcp {
        /// The host to dial.
        host: &'static str,
        port: Blanks,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilledAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port on loopback.
    Tcp(&'static str, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{path}"),
            Address::Tcp { host, port } => write!(f, "{}", Loopback(host, port)),
        }
    }
}

impl Address {
    /// Parses the path of a socket in the file system.
    pub fn unix(path: &str) -> Result<Address, InvalidTemplate> {
        let blanks = Blanks::parse(path)?;
        check_path(&path.replace("${", "\u{1}").replace('{', "").replace('\u{1}', "${"))?;
        Ok(Address::Unix(blanks))
    }

    /// Parses the address of a port on loopback.
    pub fn tcp(text: &str) -> Result<Address, InvalidTemplate> {
        let (host, port) = loopback(text).ok_or_else(|| InvalidTemplate::NotLoopback(text.to_owned()))?;
        Ok(Address::Tcp { host, port })
    }

    /// Where the socket is if each blank is filled by a plain word. An error for a port.
    pub(crate) fn socket_of_any_value(&self, from: &Surroundings) -> Result<PathBuf, FillError> {
        let blanks = match self {
            Address::Unix(path) => path.count(),
            Address::Tcp { port, .. } => port.count(),
        };
        match self.fill(&vec!["1".to_owned(); blanks], from)? {
            FilledAddress::Unix(path) => Ok(path),
            FilledAddress::Tcp(host, _) => Err(FillError::Relative(host.to_owned())),
        }
    }

    /// Fills the blanks.
    pub fn fill(&self, values: &[String], from: &Surroundings) -> Result<FilledAddress, FillError> {
        match self {
            Address::Unix(path) => {
                exact(path.count(), values)?;
                let text = path.fill(&mut values.iter(), |_, value| fits_path_segment(value))?;
                fill_path(&text, from).map(FilledAddress::Unix)
            }
            Address::Tcp { host, port } => {
                exact(port.count(), values)?;
                Ok(FilledAddress::Tcp(host, fill_port(port, &mut values.iter())?))
            }
        }
    }
}

/// One argument of a command line, with at most one blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    text: Blanks,
    /// Whether a `--` precedes it, so that a value may begin with `-`.
    after_separator: bool,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Argument {
    /// `after_separator` tells whether a `--` precedes the argument.
    pub(crate) fn parse(text: &str, after_separator: bool) -> Result<Argument, InvalidTemplate> {
        let blanks = Blanks::parse(text)?;
        if blanks.count() > 1 {
            return Err(InvalidTemplate::ManyBlanks(text.to_owned()));
        }
        Ok(Argument { text: blanks, after_separator })
    }

    /// Fills the blanks of a whole command line, in order.
    pub fn fill_all(arguments: &[Argument], values: &[String]) -> Result<Vec<String>, FillError> {
        exact(arguments.iter().map(|argument| argument.text.count()).sum(), values)?;
        let mut values = values.iter();
        let fill = |argument: &Argument| {
            argument.text.fill(&mut values, |before, value| {
                if value.contains('\0') {
                    Err("it holds a zero byte")
                } else if value.len() > LONGEST_VALUE {
                    Err("it is too long for an argument")
                } else if before.is_empty() && value.starts_with('-') && !argument.after_separator {
                    Err("it would be read as an option")
                } else {
                    Ok(())
                }
            })
        };
        arguments.iter().map(fill).collect()
    }
}

fn loopback(authority: &str) -> Option<(&'static str, Blanks)> {
    let (host, port) = authority.rsplit_once(':')?;
    let host = match host {
        "127.0.0.1" | "localhost" => "127.0.0.1",
        "[::1]" => "::1",
        _ => return None,
    };
    let port = Blanks::parse(port).ok()?;
    let plain = |piece: &Piece| match piece {
        Piece::Literal(text) => text.is_empty() || text.parse::<u16>().is_ok_and(|port| port > 0),
        Piece::Blank(_) => true,
    };
    let whole =
        port.count() == 1 || port.pieces.iter().any(|piece| matches!(piece, Piece::Literal(text) if !text.is_empty()));
    (whole && port.pieces.iter().all(plain)).then_some((host, port))
}

fn fill_port<'v>(port: &Blanks, values: &mut impl Iterator<Item = &'v String>) -> Result<u16, FillError> {
    let text = port.fill(values, |_, value| match value.parse::<u16>() {
        Ok(0) | Err(_) => Err("a port is a number from 1 to 65535"),
        Ok(_) => Ok(()),
    })?;
    text.parse().map_err(|_| unfit("port", &text, "a port is a number from 1 to 65535"))
}

fn exact(blanks: usize, values: &[String]) -> Result<(), FillError> {
    if blanks == values.len() { Ok(()) } else { Err(FillError::Count { blanks, given: values.len() }) }
}

fn fits_segment(value: &str) -> Result<(), &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'@' | b':');
    if value.is_empty() || value.len() > 255 {
        Err("a path segment has 1 to 255 bytes")
    } else if value == "." || value == ".." {
        Err("it would lead to another path")
    } else if value.bytes().all(plain) {
        Ok(())
    } else {
        Err("a path segment is made of letters, digits and - _ . ~ @ :")
    }
}

fn fits_path_segment(value: &str) -> Result<(), &'static str> {
    if value.starts_with('~') { Err("it would lead to another path") } else { fits_segment(value) }
}

fn unfit(blank: &str, value: &str, why: &'static str) -> FillError {
    FillError::Unfit { blank: blank.to_owned(), value: value.chars().take(60).collect(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings {
            home: Some("/home/ann".into()),
            environment: [("X_HOME".to_owned(), "/opt/x".to_owned()), ("EMPTY".to_owned(), String::new())].into(),
            ..Surroundings::default()
        }
    }

    fn check_origin(template: &str, values: &[&str], expected: &str) {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let outcome = match template.parse::<Origin>() {
            Ok(origin) => match origin.fill(&values) {
                Ok((host, port, path)) => format!("{host} {port} {path}"),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{template} {values:?}: {outcome}");
    }

    #[test]
    fn an_origin_is_on_loopback_and_its_blanks_take_a_port_or_a_segment() {
        check_origin("http://127.0.0.1:{port}", &["4096"], "127.0.0.1 4096 ");
        check_origin("http://localhost:80/api/", &[], "127.0.0.1 80 /api");
        check_origin("http://[::1]:80", &[], "::1 80");
        check_origin("http://127.0.0.1:{port}/s/{id}", &["80", "ab"], "127.0.0.1 80 /s/ab");
        check_origin("http://127.0.0.1:{port}/s/{id}", &["80", "a/b"], "does not fit the blank `id`");
        check_origin("http://127.0.0.1:{port}/s/{id}", &["80", ".."], "would lead to another path");
        check_origin("http://127.0.0.1:{port}", &["80@evil.example"], "a port is a number");
        check_origin("http://127.0.0.1:{port}", &["0"], "a port is a number");
        check_origin("http://127.0.0.1:{port}", &[], "0 values were given for 1 blanks");
        check_origin("http://127.0.0.1", &[], "is not a loopback origin");
        check_origin("http://127.0.0.1.evil.example:80", &[], "is not a loopback origin");
        check_origin("http://user@127.0.0.1:80", &[], "is not a loopback origin");
    }

    fn check_arguments(template: &[&str], values: &[&str], expected: &str) {
        let mut after = false;
        let mut arguments = Vec::new();
        for text in template {
            arguments.push(Argument::parse(text, after).expect("an argument"));
            after |= *text == "--";
        }
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let outcome = match Argument::fill_all(&arguments, &values) {
            Ok(words) => words.join("|"),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{template:?} {values:?}: {outcome}");
    }

    #[test]
    fn a_value_fills_one_blank_of_one_argument() {
        check_arguments(&["--resume={id}"], &["a b;c"], "--resume=a b;c");
        check_arguments(&["resume", "{id}"], &["-x"], "would be read as an option");
        check_arguments(&["resume", "--", "{id}"], &["-x"], "resume|--|-x");
        check_arguments(&["resume", "{id}"], &["x", "y"], "2 values were given for 1 blanks");
        check_arguments(&["resume", "{id}"], &["x\0"], "zero byte");
    }

    #[test]
    fn a_socket_keeps_its_folder() {
        let address = Address::unix("${X_HOME:-~/.x}/{id}.sock").expect("an address");
        let place = |value: &str| address.fill(&[value.to_owned()], &surroundings());
        assert_eq!(place("a"), Ok(FilledAddress::Unix("/opt/x/a.sock".into())));
        assert!(place("../a").is_err() && place("").is_err() && place("$HOME").is_err() && place("~").is_err());
    }
}
