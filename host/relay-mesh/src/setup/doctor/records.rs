//! Checks the records that all machines of the mesh share, on files and on servers: each is read as what it is kept for.

use std::io;
use std::path::Path;

use mesh::ports::harness::Finding;
use mesh::{DamagedRecord, Mesh};
use store::{Durability, StoreError, reasons};

use super::data_folder::{Mending, is_aside, not_set_aside, place_aside};
use super::{broken, fine};
use crate::atomic_write;

/// The findings. What is set aside goes into the data folder at `root`, wherever it was.
pub(crate) async fn check(mesh: &Mesh, root: &Path, mending: Mending) -> Vec<Finding> {
    let damaged = match mesh.damaged_records().await {
        Ok(damaged) => damaged,
        Err(error) => {
            let what = format!("the shared records cannot be read: {}", reasons(&error));
            return vec![broken(what, "mend what is told above, and try again")];
        }
    };
    if damaged.is_empty() {
        return vec![fine("the records of agents, reservations and commands are whole".to_owned())];
    }
    let mut findings = Vec::new();
    for record in damaged {
        findings.push(of_record(mesh, root, mending, &record).await);
    }
    findings
}

async fn of_record(mesh: &Mesh, root: &Path, mending: Mending, record: &DamagedRecord) -> Finding {
    let what = format!("{} is damaged: {}", record.key, record.why);
    if mending == Mending::Look {
        return not_set_aside(what);
    }
    // First the copy: what is removed is then kept, also if this is killed in between.
    let copy = || -> io::Result<_> {
        let to = place_aside(root, &format!("{}.json", record.key))?;
        atomic_write::replace(&to, &record.bytes, 0o600, Durability::Synced)?;
        Ok(to)
    };
    let to = match copy() {
        Ok(to) => to,
        Err(error) => return broken(format!("{what}, and could not be copied: {error}"), "make room, and try again"),
    };
    match mesh.remove_damaged(record).await {
        Ok(()) => is_aside(&what, &to),
        Err(StoreError::Elsewhere { .. }) => {
            broken(format!("{what}, and another machine wrote it"), "run `relay-mesh doctor --store --fix` there")
        }
        Err(error) => broken(format!("{what}, and could not be removed: {}", reasons(&error)), "try again"),
    }
}
