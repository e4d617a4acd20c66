//! `relay-mesh plugin sign`: sign an adapter, with the signature inside its file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use adapters::{PublisherKey, Signed, SigningKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Serialize;
use store::Durability;

use super::{package, trust};
use crate::atomic_write;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::runs::permission;

/// The largest file that may be a key, in bytes.
const LARGEST_KEY: u64 = 16 * 1024;

/// Sign an adapter, so that its users know that it is from you
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh plugin sign ./toad.wasm --key ~/keys/adapters.pem\n  \
    relay-mesh plugin sign ./toad.wasm --key - < \"$KEY_FILE\"\n\n\
    The signature is a section of the component, and covers it and its manifest, which becomes a part of it. Any runtime \
    loads it as before. A second key signs beside the first: a version that both have signed leads your users from an old \
    key to a new one without a question.")]
pub(super) struct Args {
    /// The component, or the folder that holds it
    path: PathBuf,
    /// The private half of your key, as `keygen` wrote it; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Write the signed component here [default: in place of the component]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, "sign").await?;
    let package = package::read(context, &args.path)?;
    if package.signed() == Signed::Broken {
        context.printer.say("The signatures that it has do not fit, and are left out.");
    }
    let key = read_key(context, &args.key)?;
    let signed = package.sign(&key).map_err(|error| package::unreadable(&package.from, error))?;
    let target = args.output.map_or_else(|| PathBuf::from(&package.from), |output| context.workdir.join(output));
    atomic_write::replace(&target, &signed.bytes, 0o644, Durability::Synced).map_err(|error| {
        let hint = "name another file by `--output`".to_owned();
        CommandError::caused_by(&format!("`{}` was not written", target.display()), Some(hint), Exit::Failure, error)
    })?;
    context.printer.show(&SignedShape {
        adapter: signed.manifest.name.clone(),
        version: signed.manifest.version.clone(),
        digest: signed.digest.to_string(),
        publishers: signed.signed().keys().to_vec(),
        file: target.display().to_string(),
    })?;
    Ok(Exit::Success)
}

fn read_key(context: &Context, path: &Path) -> Result<SigningKey, CommandError> {
    let hint = "make one by `relay-mesh plugin keygen FILE`, or by `openssl genpkey -algorithm ed25519`";
    let mut pem = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(LARGEST_KEY).read_to_end(&mut pem)
    } else {
        std::fs::File::open(context.workdir.join(path)).and_then(|file| file.take(LARGEST_KEY).read_to_end(&mut pem))
    };
    read.map_err(|error| {
        let what = format!("the key `{}` cannot be read", path.display());
        CommandError::caused_by(&what, Some(hint.to_owned()), Exit::NotFound, error)
    })?;
    let what = || format!("`{}` holds no key to sign with", path.display());
    let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_| CommandError::usage(&what(), hint))?;
    SigningKey::read(pkcs8.secret_pkcs8_der())
        .map_err(|error| CommandError::caused_by(&what(), Some(hint.to_owned()), Exit::Usage, error))
}

/// What `sign` prints.
#[derive(Debug, Serialize)]
struct SignedShape {
    adapter: String,
    version: String,
    /// Digest of component and manifest.
    digest: String,
    /// The keys that have signed it by now.
    publishers: Vec<PublisherKey>,
    /// The signed component.
    file: String,
}

impl Show for SignedShape {
    fn text(&self) -> String {
        let keys = trust::listed(&self.publishers);
        printable_line(&format!("{} {} is signed by {keys}: {}", self.adapter, self.version, self.file))
    }
}
