//! `relay-mesh plugin keygen`: make a key to sign adapters with.

use std::io::{self, Write as _};
use std::path::PathBuf;

use adapters::{PublisherKey, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::install_channel::shell_word;
use crate::render::Show;
use crate::unix;

/// The length of a line of PEM.
const LINE: usize = 64;

/// Make a key to sign adapters with
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin keygen ~/keys/adapters.pem\n\n\
    The file is the private half, in PKCS#8: keep it secret. What is printed is the public half: put it where \
    your users look, beside your adapters. Who loses the key signs with another one, and each user has to agree to that.")]
pub(super) struct Args {
    /// Where to write the private half
    file: PathBuf,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<Exit, CommandError> {
    let path = context.workdir.join(&args.file);
    let made =
        SigningKey::generate().map_err(|error| CommandError::caused_by("no key was made", None, Exit::Failure, error));
    let (key, pkcs8) = made?;
    write(&path, &pem(&pkcs8)).map_err(|error| {
        let hint = match (error.kind(), args.file.parent()) {
            (io::ErrorKind::AlreadyExists, _) => {
                "a key that is lost cannot be made again: name another file".to_owned()
            }
            (io::ErrorKind::NotFound, Some(folder)) if !folder.as_os_str().is_empty() => {
                format!("make its folder first: `mkdir -p {}`", shell_word(folder))
            }
            _ => "name a file in a folder that is there and that you can write to".to_owned(),
        };
        let what = format!("`{}` was not written", args.file.display());
        CommandError::caused_by(&what, Some(hint), Exit::Failure, error)
    })?;
    context.printer.say(&format!("`{}` is the private half: keep it secret. The public half:", args.file.display()));
    context.printer.show(&Made { key: key.publisher() })?;
    Ok(Exit::Success)
}

/// Never in the place of another file, and readable for nobody else.
fn write(path: &std::path::Path, text: &str) -> io::Result<()> {
    let mut file = unix::create_private_file(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn pem(pkcs8: &[u8]) -> String {
    let text = STANDARD.encode(pkcs8);
    let lines: Vec<&str> = text.as_bytes().chunks(LINE).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

#[derive(Debug, Serialize)]
struct Made {
    /// The public half.
    key: PublisherKey,
}

impl Show for Made {
    fn text(&self) -> String {
        self.key.to_string()
    }
}
