//! Commands: one agent asks another to run something. Each command is taken once and ends once.

pub(crate) mod order;
pub(crate) mod record;
pub(crate) mod rounds;
pub(crate) mod run;

pub use record::{
    COMMAND_TTL, Command, CommandName, CommandStage, CommandStatus, Ended, InvalidCommand, LONGEST_ARGUMENTS,
    LONGEST_COMMAND, LONGEST_RESULT, Run,
};
