//! Errors about moving a mesh to another store.

use mesh::carrying::CarryError;
use store::StoreError;

use crate::errors::Explain;
use crate::exit::Exit;

impl Explain for CarryError {
    fn exit(&self) -> Exit {
        match self {
            CarryError::Differs(_) | CarryError::To(StoreError::Elsewhere { .. }) => Exit::Refused,
            CarryError::Busy(_) => Exit::Held,
            CarryError::From(error) | CarryError::To(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CarryError::Differs(_) => {
                Some("name an empty target, or say `--add` to keep what is there and add what is missing".to_owned())
            }
            CarryError::Busy(_) => Some("end what serves the mesh there, and run it again".to_owned()),
            CarryError::From(error) => error.hint(),
            CarryError::To(StoreError::Elsewhere { .. }) => Some(
                "another machine has an agent of that name there: move to an empty server, or another `prefix`"
                    .to_owned(),
            ),
            CarryError::To(error) => {
                let then = "; what was moved by then stays, and running it again goes on from there";
                error.hint().map(|hint| format!("{hint}{then}"))
            }
        }
    }
}
