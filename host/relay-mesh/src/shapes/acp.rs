//! What is printed of the programs that the user lets be started as agents.

use std::path::Path;

use serde::Serialize;

use crate::config::{AcpProgram, as_typed};
use crate::render::{Show, printable_line};

/// One of them.
#[derive(Debug, Serialize)]
pub(crate) struct AcpProgramShape {
    /// The program, absolute, and its arguments.
    command: Vec<String>,
    /// Variables that it gets.
    environment: Vec<String>,
}

impl AcpProgramShape {
    pub(crate) fn of(program: &AcpProgram) -> AcpProgramShape {
        AcpProgramShape { command: program.command.clone(), environment: program.environment.clone() }
    }
}

impl Show for AcpProgramShape {
    fn text(&self) -> String {
        let variables = match self.environment.as_slice() {
            [] => String::new(),
            names => format!(", with your variables {}", printable_line(&names.join(", "))),
        };
        format!("may be started, as you and unguarded: {}{variables}", printable_line(&as_typed(&self.command)))
    }
}

/// All of them, and where they are kept.
#[derive(Debug, Serialize)]
pub(crate) struct AcpProgramsShape {
    allowed: Vec<AcpProgramShape>,
    file: String,
}

impl AcpProgramsShape {
    pub(crate) fn of(programs: &[AcpProgram], file: &Path) -> AcpProgramsShape {
        AcpProgramsShape {
            allowed: programs.iter().map(AcpProgramShape::of).collect(),
            file: file.display().to_string(),
        }
    }
}

impl Show for AcpProgramsShape {
    fn text(&self) -> String {
        match self.allowed.as_slice() {
            [] => "no program may be started".to_owned(),
            all => all.iter().map(AcpProgramShape::text).collect::<Vec<_>>().join("\n"),
        }
    }
}
