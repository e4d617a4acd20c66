//! Errors about moving a mesh to another store.

use mesh::storage::migrate::MigrateError;
use store::StoreError;

use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for MigrateError {
    fn exit(&self) -> Exit {
        match self {
            MigrateError::Differs(_) | MigrateError::To(StoreError::Elsewhere { .. }) => Exit::Refused,
            MigrateError::Busy(_) => Exit::Held,
            MigrateError::From(error) | MigrateError::To(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            MigrateError::Differs(_) => {
                Some("name an empty target, or say `--add` to keep what is there and add what is missing".to_owned())
            }
            MigrateError::Busy(_) => Some("stop the relay-mesh processes there, and run it again".to_owned()),
            MigrateError::From(error) => error.hint(),
            MigrateError::To(StoreError::Elsewhere { .. }) => Some(
                "another machine has an agent of that name there: move to an empty server, or another `prefix`"
                    .to_owned(),
            ),
            MigrateError::To(error) => {
                let then = "; what was moved by then stays, and running it again goes on from there";
                error.hint().map(|hint| format!("{hint}{then}"))
            }
        }
    }
}
