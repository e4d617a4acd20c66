//! What a component imports and exports, read from its sections: nothing is compiled, and nothing of it runs.

use wasmparser::{ComponentExport, ComponentImport, Parser, Payload};

/// The names of a component's imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
}

/// Reads the outline. An error says what is wrong with the bytes; that there is none does not mean that they can run.
pub(crate) fn outline(component: &[u8]) -> Result<Outline, String> {
    let mut outline = Outline::default();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|error| error.to_string())? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(imports) if depth == 0 => {
                for import in imports {
                    let ComponentImport { name, .. } = import.map_err(|error| error.to_string())?;
                    outline.imports.push(name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) if depth == 0 => {
                for export in exports {
                    let ComponentExport { name, .. } = export.map_err(|error| error.to_string())?;
                    outline.exports.push(name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(outline)
}
