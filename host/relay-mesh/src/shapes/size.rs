//! Where the bytes are: `store size`.

use mesh::ports::data_files::Amount;
use serde::Serialize;

use crate::render::{Show, table};
use crate::shapes::cleanup::size;

/// `relay-mesh store size`.
#[derive(Debug, Serialize)]
pub(crate) struct SizesShape {
    /// Each kind, largest first.
    pub(crate) sizes: Vec<SizeShape>,
    /// All bytes.
    pub(crate) bytes: u64,
}

/// One kind.
#[derive(Debug, Serialize)]
pub(crate) struct SizeShape {
    /// What it is, or `stream NAME` on servers.
    pub(crate) kind: String,
    /// How many files, or how many messages of a stream.
    pub(crate) count: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
}

impl SizeShape {
    pub(crate) fn of(kind: &str, Amount { count, bytes }: Amount) -> SizeShape {
        SizeShape { kind: kind.to_owned(), count, bytes }
    }
}

impl SizesShape {
    pub(crate) fn of(mut sizes: Vec<SizeShape>) -> SizesShape {
        sizes.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.kind.cmp(&other.kind)));
        SizesShape { bytes: sizes.iter().map(|one| one.bytes).sum(), sizes }
    }
}

impl Show for SizesShape {
    fn text(&self) -> String {
        let row = |one: &SizeShape| vec![one.kind.clone(), one.count.to_string(), size(one.bytes)];
        let total = vec!["total".to_owned(), String::new(), size(self.bytes)];
        let rows: Vec<Vec<String>> = self.sizes.iter().map(row).chain([total]).collect();
        table(&["KIND", "COUNT", "SIZE"], &rows)
    }
}
